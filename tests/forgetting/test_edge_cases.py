"""Forgetting together with running work, tombstones, edits and later imports."""

import json

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import User
from django.contrib.contenttypes.models import ContentType

from knowledge_app.models import CachedResponse, EditedRow, HistoryEntry, KeyValue, KnowledgeEntry, Observation
from knowledge_app.services.documents.history import append_history
from knowledge_app.services.rows.cached_responses import keep
from knowledge_app.services.rows.key_values import write_value
from knowledge_app.services.rows.knowledge import add_knowledge
from knowledge_app.services.rows.observations import NewObservation, store
from knowledge_app.services.rows.undoable_edits import edit_rows, undo_edit
from memoryhub.forgetting.erasure import ErasureRequest, apply_forget, plan_forget
from memoryhub.integrity import check_memory
from memoryhub.lib.layouts.records import HistoryRecord
from memoryhub.sync.importing import import_workspace
from sessions_app.models import AuditRecord, DeletedSession, Entry, ImportProblem, Run, Session, SourceFile, Workspace
from sessions_app.services.audit import By
from sessions_app.services.lifecycle import delete_session
from sessions_app.services.runs import LeaseLost, claim_run, finish_run, request_run
from tests.forgetting.test_forgetting import holding
from tests.hub import NOW, PERSON, add, open_at, raises_code

pytestmark = pytest.mark.django_db
BY = By(PERSON, NOW)


def forget(workspace, kind, *words, session=None):
    wish = ErasureRequest(kind, words, session=session)
    return apply_forget(workspace, wish, expected=plan_forget(workspace, wish).total, reason="", by=BY)


def test_forgetting_a_session_erases_what_its_runs_stored_and_audited(workspace):
    session = open_at(workspace, "cli:a")
    run = Run.objects.create(workspace=workspace, session=session, kind="extraction", status="done")
    store(workspace, [NewObservation("finding", "tea is hot", "GOAL:step")], run=run, by=BY)
    append_history(workspace, [HistoryRecord("Told of tea.", "", session_key="cli:a")], now=NOW)

    forget(workspace, "session", session=session)

    assert not Observation.objects.exists()
    assert HistoryEntry.objects.get().content == "[forgotten]"
    assert not AuditRecord.objects.filter(text__contains="cli:a").exists()
    assert check_memory().broken == []


def test_a_sessions_key_is_not_erased_from_other_texts(workspace):
    session = open_at(workspace, "main")
    other = open_at(workspace, "cli:b")
    add(other, [{"role": "user", "content": "int main() is the main entry"}])
    write_value(workspace, "main", "x", by=BY)

    forget(workspace, "session", session=session)

    assert Entry.objects.get().content == "int main() is the main entry"
    assert KeyValue.objects.get().key == "main"


def test_rows_of_no_workspace_are_for_operators_of_the_whole_hub(workspace):
    user = User.objects.create_user("boss")
    kind = ContentType.objects.get_for_model(User)
    LogEntry.objects.create(user=user, content_type=kind, object_id="1", object_repr="zorro", action_flag=1)

    assert plan_forget(workspace, ErasureRequest("phrase", ("zorro",))).total == 0
    assert plan_forget(workspace, ErasureRequest("phrase", ("zorro",), everywhere=True)).total == 1


def test_the_hubs_own_texts_are_not_redacted(workspace):
    Workspace.objects.update(model="gpt-4o")
    entry = add_knowledge(workspace, "withdraw the gpt knowledge", category="learned_fact", by=BY).entry
    run = edit_rows(workspace, "knowledge", "withdraw", [entry.pk], values={"reason": "gpt"}, by=BY)

    for word in ("withdraw", "gpt", "knowledge"):
        forget(workspace, "phrase", word)

    run.refresh_from_db()
    assert (run.options["table"], run.options["action"]) == ("knowledge", "withdraw")
    assert run.options["values"] == {"reason": "[forgotten]"}
    assert Workspace.objects.get().model == "gpt-4o"
    assert KnowledgeEntry.objects.get().content == "[forgotten] the [forgotten] [forgotten]"
    assert undo_edit(run, by=BY).status == "done"


def test_edits_keep_nothing_of_erased_rows(workspace):
    entry = add_knowledge(workspace, "Olga lives in Rome", category="learned_fact", source="mail", by=BY).entry
    edit_rows(workspace, "knowledge", "assign", [entry.pk], values={"content": "Olga lives in Paris"}, by=BY)

    forget(workspace, "source", "mail")

    assert not EditedRow.objects.exists()
    assert "Paris" not in json.dumps(Run.objects.get().options)


def test_undoing_a_removal_does_not_restore_a_forgotten_response(workspace):
    row = keep(workspace, "q", "m", "It is Anna, born 1970.", now=NOW)
    run = edit_rows(workspace, "cached", "remove", [row.pk], by=BY)

    forget(workspace, "phrase", "Anna")

    assert undo_edit(run, by=BY).proposal["changed"] == 0


def test_a_response_is_erased_by_the_name_that_an_agent_gave_its_model(workspace):
    keep(workspace, "q", "Anna Weber", "It is late.", now=NOW)

    forget(workspace, "person", "Anna Weber")

    assert not CachedResponse.objects.exists()
    assert holding("weber") == set()


def test_a_corrected_value_without_the_words_is_kept(workspace):
    write_value(workspace, "owner", "Anna Weber", by=BY)
    write_value(workspace, "owner", "the office", by=BY)

    forget(workspace, "phrase", "Anna Weber")

    row = KeyValue.objects.get()
    assert row.value == "the office"
    assert "Anna" not in json.dumps(row.corrected)


def test_an_existing_tombstone_of_the_same_key_is_replaced(workspace):
    session = open_at(workspace, "cli:anna weber")
    delete_session(session, confirmation=session.key, reason="", by=BY)
    open_at(workspace, "cli:anna weber")

    forget(workspace, "phrase", "anna weber")

    assert Session.objects.get().key.startswith("forgotten:")
    assert DeletedSession.objects.get().is_forgotten


def test_running_work_writes_nothing_that_it_read_before(workspace):
    session = open_at(workspace, "cli:a")
    add(session, [{"role": "user", "content": "I am Anna Weber"}])
    run, _ = request_run(session, "extraction", options={"text": "Anna Weber"}, by=BY)
    claimed = claim_run(run.pk, owner="w", now=NOW)

    forget(workspace, "phrase", "Anna Weber")

    with pytest.raises(LeaseLost):
        finish_run(claimed, status="done", now=NOW)
    run.refresh_from_db()
    assert (run.status, run.options["text"]) == ("queued", "[forgotten]")


def nanobot(tmp_path, name="cli_anna weber", said="hello", history="", memory=""):
    (tmp_path / "sessions").mkdir()
    (tmp_path / "memory").mkdir()
    lines = [{"_type": "metadata", "key": "cli:anna weber", "metadata": {}}, {"role": "user", "content": said}]
    text = "".join(f"{json.dumps(line)}\n" for line in lines) + "{damaged\n"
    (tmp_path / "sessions" / f"{name}.jsonl").write_text(text)
    (tmp_path / "memory" / "HISTORY.md").write_text(history)
    (tmp_path / "memory" / "MEMORY.md").write_text(memory)
    return tmp_path


def test_a_running_run_is_cancelled_if_another_one_is_queued(workspace):
    session = open_at(workspace)
    add(session, [{"role": "user", "content": "zorro was here"}])
    running, _ = request_run(session, "compression", options={}, by=BY)
    claim_run(running.pk, owner="worker", now=NOW)
    queued, _ = request_run(session, "compression", options={}, by=BY)

    forget(workspace, "phrase", "zorro")

    assert dict(Run.objects.values_list("pk", "status")) == {running.pk: "cancelled", queued.pk: "queued"}


def test_forgetting_a_source_needs_a_source(workspace):
    open_at(workspace, "cli:a")

    with raises_code("nothing_to_forget"):
        forget(workspace, "source", " ")
    assert Session.objects.exists()


@pytest.mark.parametrize("kind", ["phrase", "session"])
def test_file_names_do_not_reveal_forgotten_content(tmp_path, kind, settings):
    settings.MEMORYHUB_QUIET_SECONDS = 0
    folder = nanobot(tmp_path)
    workspace = import_workspace(folder, by=BY).workspace
    session = Session.objects.get() if kind == "session" else None
    forget(workspace, kind, *(["anna weber"] if kind == "phrase" else []), session=session)

    import_workspace(folder, by=BY)

    assert not SourceFile.objects.filter(path__icontains="anna").exists()
    assert not ImportProblem.objects.filter(file__icontains="anna").exists()


def test_content_forgotten_twice_is_recognised(tmp_path, settings):
    settings.MEMORYHUB_QUIET_SECONDS = 0
    history = "[2026-03-01 10:00] Anna Weber street is long.\n\n[2026-03-02 10:00] Quiet.\n\n"
    folder = nanobot(tmp_path, name="one", history=history)
    workspace = import_workspace(folder, by=BY).workspace
    forget(workspace, "phrase", "Anna Weber")
    forget(workspace, "phrase", "street is")

    again = import_workspace(folder, by=BY)

    assert +again.tally.added == {}
    assert [entry.content for entry in HistoryEntry.objects.order_by("position")] == [
        "[forgotten] [forgotten] long.",
        "Quiet.",
    ]


def test_a_forgotten_log_stays_forgotten(tmp_path, settings):
    settings.MEMORYHUB_QUIET_SECONDS = 0
    folder = nanobot(tmp_path, name="one", history="[2026-03-01 10:00] Tea.\n\n")
    workspace = import_workspace(folder, by=BY).workspace
    forget(workspace, "source", "memory/HISTORY.md")

    again = import_workspace(folder, by=BY)

    assert +again.tally.added == {}
    assert HistoryEntry.objects.get().content == "[forgotten]"
