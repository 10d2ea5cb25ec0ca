"""Bulk edits on lists, and undo."""

from __future__ import annotations

import io
import zipfile

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from knowledge_app.models import Fact, HeldChange, HistoryEntry, KeyValue, KnowledgeEntry, MemoryDocument, Observation
from knowledge_app.services.documents.fact_edits import recategorise_facts, undo_revision
from knowledge_app.services.documents.proposals import propose_text
from knowledge_app.services.documents.revisions import open_document, revise_document
from knowledge_app.services.rows import undoable_edits
from knowledge_app.services.rows.cached_responses import keep
from knowledge_app.services.rows.key_values import write_value
from knowledge_app.services.rows.knowledge import add_knowledge
from memoryhub import sweeps
from memoryhub.models import AccessRecord
from memoryhub.runs.executing import execute, undo_run
from sessions_app.models import AuditRecord, DeletedSession, Membership, Run, Session, Workspace
from sessions_app.services.audit import By
from tests.hub import NOW, PERSON, open_at, talk
from tests.searches import log

pytestmark = pytest.mark.django_db
BY = By(PERSON, NOW)
ACTION_OF = {"edit-runs": "retry", "decide-changes": "approve", "knowledge:edit-knowledge": "verify"}


def url(name: str, *args: object) -> str:
    return reverse(name, args=["atlas", *args])


def act(client: Client, address: str, rows=(), **values) -> str:
    response = client.post(address, {"row": [row.pk for row in rows], **values}, follow=True)
    assert response.status_code == 200
    return response.content.decode()


def undo(client: Client) -> str:
    """Press Undo for the newest edit."""
    run = Run.objects.filter(kind=Run.Kind.EDIT).latest("pk")
    return client.post(url("undo-run", run.pk), {"next": url("runs")}, follow=True).content.decode()


@pytest.fixture
def operator(workspace: Workspace) -> Client:
    user = User.objects.create_user("olga")
    Membership.objects.create(workspace=workspace, user=user, role=Membership.Role.OPERATOR)
    client = Client()
    client.force_login(user)
    return client


@pytest.fixture
def sessions(workspace: Workspace) -> list[Session]:
    return [open_at(workspace, key) for key in ("cli:one", "cli:two", "telegram:three")]


@pytest.fixture
def document(workspace: Workspace) -> MemoryDocument:
    found = open_document(workspace, "MEMORY.md")
    revise_document(found, "# Pool\n\n- tea\n* [drink] milk\n- rum\n", base=None, reason="r", by=BY)
    return found


def keys(client: Client, query: str = "") -> set[str]:
    return {session.key for session, _ in client.get(url("sessions:list") + query).context["rows"]}


def test_archived_sessions_leave_the_list_and_return(workspace, editor, sessions):
    before = [session.updated_at for session in sessions]

    html = act(editor, url("edit-sessions"), sessions[:2], action="archive")

    assert "2 sessions archived." in html
    assert keys(editor) == {"telegram:three"}
    assert keys(editor, "?state=archived") == {"cli:one", "cli:two"}
    assert [row.updated_at for row in Session.objects.order_by("pk")] == before
    assert AuditRecord.objects.filter(action="rows.edited", text="2 sessions archived").count() == 1
    assert editor.get(url("sessions:detail", sessions[0].pk)).status_code == 200
    undo(editor)
    assert len(keys(editor)) == 3


def test_selecting_all_means_the_filtered_sessions_counted_again(editor, sessions):
    address = url("edit-sessions") + "?channel=cli"

    assert "2 rows match now instead of 3" in act(editor, address, action="archive", all="1", expected="3")
    assert keys(editor) == {session.key for session in sessions}
    act(editor, address, action="archive", all="1", expected="2")
    assert keys(editor) == {"telegram:three"}


def test_a_session_is_archived_on_its_page_and_unarchived(workspace, editor, sessions):
    page = url("sessions:detail", sessions[0].pk)
    assert url("archive-session", sessions[0].pk) in editor.get(page).content.decode()

    archived = act(editor, url("archive-session", sessions[0].pk))
    again = act(editor, url("archive-session", sessions[0].pk))
    back = act(editor, url("unarchive-session", sessions[0].pk))

    undo = url("undo-run", Run.objects.order_by("id").first().pk)
    assert all(words in archived for words in ("1 session archived.", undo, page, "Archived <time", "Take back"))
    assert "Nothing changed." in again
    assert "1 session unarchived." in back
    assert not Session.objects.exclude(archived_at=None).exists()


def test_the_worker_ignores_archived_sessions(workspace, sessions):
    Workspace.objects.update(max_entries=2, recent_window=1, min_entries_to_compress=1)
    for session in sessions[:2]:
        talk(session, 3)
    Session.objects.filter(pk=sessions[0].pk).update(archived_at=NOW)

    assert [session.key for session in sweeps._sessions_over_limits()] == ["cli:two"]


def test_rows_selected_on_other_pages_are_included(editor, sessions):
    act(editor, url("edit-sessions"), sessions[:1], action="archive", kept=f"{sessions[2].pk},x")

    assert keys(editor) == {"cli:two"}


def test_runs_are_requested_once_a_session_and_undo_cancels_them(editor, sessions):
    act(editor, url("edit-sessions"), sessions[:1], action="compress")
    html = act(editor, url("edit-sessions"), sessions, action="compress")

    assert "2 sessions queued for compression. 1 was skipped" in html
    undo(editor)
    states = Run.objects.filter(kind=Run.Kind.COMPRESSION).order_by("pk").values_list("status", flat=True)
    assert list(states) == ["queued", "cancelled", "cancelled"]


def test_many_sessions_are_changed_by_the_worker(editor, sessions, monkeypatch):
    monkeypatch.setattr(undoable_edits, "STEPS_AT_ONCE", 1)

    act(editor, url("edit-sessions"), sessions, action="prune")

    edit = Run.objects.get(kind=Run.Kind.EDIT)
    assert edit.status == "queued"
    execute(edit.pk, now=timezone.now)
    edit.refresh_from_db()
    assert (edit.status, edit.steps_done, edit.proposal["changed"]) == ("done", 3, 3)
    assert Run.objects.filter(kind=Run.Kind.COMPRESSION, options__contains="keep").count() == 3


def test_sessions_are_exported_as_an_archive_of_files(editor, sessions):
    talk(sessions[1], 2)

    response = editor.post(url("edit-sessions"), {"row": [sessions[0].pk, sessions[1].pk], "action": "export"})

    names = zipfile.ZipFile(io.BytesIO(b"".join(response.streaming_content))).namelist()
    assert len(names) == 2
    assert AuditRecord.objects.filter(action="sessions.exported").exists()
    assert AccessRecord.objects.get(action="session.exported").rows.get().parent == sessions[1].pk


def test_deleting_requires_the_current_number_of_sessions(operator, sessions):
    address = url("delete-sessions") + "?channel=cli"
    chosen = {"all": "1", "expected": "2"}

    page = operator.post(address, chosen).content.decode()
    assert "Delete 2 sessions" in page
    assert operator.post(address, chosen | {"typed": "3", "shown": "2"}).status_code == 422
    open_at(Workspace.objects.get(), "cli:late")
    html = act(operator, address, typed="2", shown="2", **chosen)
    assert "3 rows match now instead of 2" in html
    assert Session.objects.count() == 4

    act(operator, address, typed="3", shown="3", all="1", expected="3", text="old")
    assert Session.objects.get().key == "telegram:three"
    assert set(DeletedSession.objects.values_list("reason", flat=True)) == {"old"}
    assert "can't be undone here" in operator.get(url("run", Run.objects.latest("pk").pk)).content.decode()


def test_a_selection_that_shrank_before_deletion_is_shown_again(operator, sessions):
    gone, *_others = sessions
    shown = {"kept": ",".join(str(session.pk) for session in sessions), "typed": "3", "shown": "3"}
    gone.delete()

    assert operator.post(url("delete-sessions"), shown).status_code == 422
    assert Session.objects.count() == 2


def test_deleting_can_not_be_undone(operator, sessions):
    act(operator, url("delete-sessions"), sessions[:1], typed="1", shown="1")
    edit = Run.objects.get(kind=Run.Kind.EDIT)

    undo(operator)

    edit.refresh_from_db()
    assert edit.status == "done"
    assert Session.objects.count() == 2


def test_editors_do_not_delete_sessions(editor, sessions):
    assert editor.post(url("delete-sessions"), {"row": sessions[0].pk}).status_code == 404
    assert "delete-sessions" not in editor.get(url("sessions:list")).content.decode()


def test_facts_are_pinned_and_dated_and_that_is_undone(editor, document):
    facts = list(Fact.objects.order_by("line"))
    address = url("documents:curate-facts", document.pk)

    assert "2 facts pinned." in act(editor, address, facts[:2], action="pin")
    act(editor, address, facts[:1], action="review", **{"review-value": "2026-12-24"})
    assert list(Fact.objects.order_by("line").values_list("pinned", flat=True)) == [True, True, False]
    undo(editor)
    assert Fact.objects.filter(review_by__isnull=False).count() == 0
    assert "Enter a valid date." in act(editor, address, facts, action="review", **{"review-value": "soon"})


def test_facts_get_a_category_in_the_text_and_keep_their_identity(workspace, document):
    facts = list(Fact.objects.order_by("line"))

    revised = recategorise_facts(document, [fact.pk for fact in facts], "drink", by=BY)

    document.refresh_from_db()
    assert revised.count == 2
    assert document.head.content == "# Pool\n\n- [drink] tea\n* [drink] milk\n- [drink] rum\n"
    assert set(Fact.objects.filter(died=None)) == set(facts)
    recategorise_facts(document, [facts[1].pk], "", by=BY)
    document.refresh_from_db()
    assert "* milk\n" in document.head.content


def test_restored_facts_keep_their_pins_and_later_additions(editor, document):
    tea = Fact.objects.get(text="tea")
    Fact.objects.filter(pk=tea.pk).update(pinned=True)

    html = act(editor, url("documents:curate-facts", document.pk), [tea], action="remove")
    assert f'action="{url("documents:undo-revision", document.pk, 2)}"' in html
    document.refresh_from_db()
    revise_document(document, document.head.content + "- gin\n", base=document.head, reason="r", by=BY)
    editor.post(url("documents:undo-revision", document.pk, 2))

    document.refresh_from_db()
    assert document.head.content == "# Pool\n\n- tea\n* [drink] milk\n- rum\n- gin\n"
    assert Fact.objects.get(text="tea", died=None).pinned


def test_the_first_revision_can_not_be_undone(document):
    with pytest.raises(Exception, match="no revision before revision 1"):
        undo_revision(document, 1, by=BY)


def test_history_is_archived_and_unarchived(workspace, editor):
    entries = [log(workspace, f"happened {number}") for number in range(2)]

    assert "2 history entries archived." in act(editor, url("documents:edit-history"), entries, action="archive")
    assert HistoryEntry.objects.filter(is_archived=True).count() == 2
    undo(editor)
    assert not HistoryEntry.objects.filter(is_archived=True).exists()


def test_selected_rows_are_exported_without_secrets(workspace, editor):
    write_value(workspace, "api_key", "sk-live-4f9a8b7c6d5e4f3a2b1c0d9e8f7a6b5c", by=BY)
    write_value(workspace, "colour", "blue", by=BY)

    response = editor.post(url("knowledge:edit-key-values"), {"all": "1", "expected": "2", "action": "export:csv"})

    assert response["Content-Disposition"].startswith("attachment")
    assert "blue" in response.content.decode()
    assert "sk-live" not in response.content.decode()
    assert editor.post(url("knowledge:edit-key-values"), {"row": "1", "action": "export:exe"}).status_code == 404


def test_duplicates_among_the_selected_rows_are_merged(workspace, editor):
    said = ["The pool is two metres deep", "The pool is two metres deep!", "The tea is cold"]
    rows = [add_knowledge(workspace, text, category="learned_fact", by=BY).entry for text in said]

    html = act(editor, url("knowledge:edit-knowledge"), rows, action="merge")

    assert "1 knowledge entry merged. 1 is not a duplicate." in html
    assert "No duplicates among the selected" in act(
        editor, url("knowledge:edit-knowledge"), rows[2:], action="merge"
    )


@pytest.mark.parametrize(
    ("page", "values", "model"),
    [
        ("new-knowledge", {"content": "likes tea", "category": "learned_fact"}, KnowledgeEntry),
        ("new-observation", {"content": "the courier is late", "category": "finding"}, Observation),
        ("new-key-value", {"key": "colour", "value": "blue"}, KeyValue),
    ],
)
def test_undoing_an_addition_withdraws_it_and_undoing_that_restores_it(workspace, editor, page, values, model):
    html = editor.post(url(f"knowledge:{page}"), values, follow=True).content.decode()

    run = Run.objects.get(kind=Run.Kind.EDIT)
    assert f'action="{url("undo-run", run.pk)}"' in html
    undo(editor)
    assert model.objects.get().withdrawn_at is not None
    undo(editor)
    assert model.objects.get().withdrawn_at is None


def test_overwriting_a_value_can_be_undone(workspace, editor):
    write_value(workspace, "colour", "blue", by=BY)

    editor.post(url("knowledge:new-key-value"), {"key": "colour", "value": "green"})
    undo(editor)

    assert KeyValue.objects.get().value == "blue"


def test_held_changes_are_decided_together_except_unfit_ones(workspace, editor, document):
    names = ("SOUL.md", "USER.md")
    for name in names:
        propose_text(open_document(workspace, name), "- sun\n", base_number=None, reason="r", by=BY)
    changes = list(HeldChange.objects.filter(status="pending"))
    if not changes:
        pytest.skip("nothing is held")
    HeldChange.objects.filter(pk=changes[0].pk).update(status="rejected")

    html = act(editor, url("decide-changes"), changes, action="approve")

    assert f"{len(changes) - 1} change" in html
    assert not HeldChange.objects.filter(status="pending").exists()


def test_failed_runs_are_retried_and_others_reported(workspace, editor):
    runs = [
        Run.objects.create(workspace=workspace, kind=Run.Kind.EXTRACTION, status=status, created_at=NOW)
        for status in ("failed", "done", "parked")
    ]

    html = act(editor, url("edit-runs"), runs, action="retry")

    assert "2 runs queued again. 1 left: only runs that failed" in html
    assert [Run.objects.get(pk=run.pk).status for run in runs] == ["queued", "done", "queued"]
    assert "2 runs cancelled." in act(
        editor, url("edit-runs") + "?state=live", all="1", expected="2", action="cancel"
    )


def test_a_cancelled_edit_reports_its_progress_and_can_be_undone(workspace, editor, sessions, monkeypatch):
    monkeypatch.setattr(undoable_edits, "AT_ONCE", 1)
    act(editor, url("edit-sessions"), sessions, action="archive")
    run = Run.objects.get(kind=Run.Kind.EDIT)
    batch = undoable_edits._change_batch
    monkeypatch.setattr(undoable_edits, "BATCH_ROWS", 2)

    def cancelled_after_one(*args):
        batch(*args)
        editor.post(url("cancel-run", run.pk))

    monkeypatch.setattr(undoable_edits, "_change_batch", cancelled_after_one)
    execute(run.pk, now=timezone.now)

    html = editor.get(url("run", run.pk)).content.decode()
    assert "2 of 3 rows are done" in html
    run.refresh_from_db()
    monkeypatch.setattr(undoable_edits, "AT_ONCE", 2)
    monkeypatch.setattr(undoable_edits, "_change_batch", batch)
    undo_run(run, by=By(PERSON, timezone.now()))
    assert not Session.objects.filter(archived_at__isnull=False).exists()


@pytest.mark.parametrize(
    "name", ["edit-sessions", "edit-runs", "decide-changes", "documents:edit-history", "knowledge:edit-knowledge"]
)
def test_an_empty_or_too_large_selection_is_refused(workspace, editor, name, monkeypatch):
    assert 'data-level="problem"' in act(editor, url(name), action="archive")
    monkeypatch.setattr("memoryhub.lib.bulk_selection.MAX_BOXES", 1)
    action = ACTION_OF.get(name, "archive")
    assert "at most 1 rows" in act(editor, url(name), action=action, kept="1,2")
    assert not Run.objects.exists()


def test_lists_offer_actions_only_to_editors(workspace, editor, viewer_client, sessions):
    keep(workspace, "How deep?", "small", "Two metres", now=NOW)

    for name in ("sessions:list", "knowledge:cached-responses"):
        assert "choosing-actions" in editor.get(url(name)).content.decode()
        assert 'name="row"' not in viewer_client.get(url(name)).content.decode()


def test_commands_archive_several_sessions_and_curate_facts(workspace, sessions, document, command):
    done = command("session", "archive", "atlas", "cli:one", "cli:two")

    assert done["run"]["changed"] == 2
    assert [row["key"] for row in command("session", "list", "atlas")["sessions"]] == ["telegram:three"]
    assert len(command("session", "list", "atlas", "--archived")["sessions"]) == 2
    command("session", "unarchive", "atlas", "cli:one")
    assert command("session", "archive", "atlas", "nowhere", status=1)["error"]["code"] == "not_found"
    facts = command("facts", "list", "atlas")["facts"]
    assert command("facts", "pin", "atlas", str(facts[0]["id"]))["run"]["changed"] == 1
    removed = command("facts", "withdraw", "atlas", str(facts[0]["id"]))
    assert removed == {"changed": 1, "revision": 2}
    assert command("facts", "undo", "atlas", "2") == {"revision": 3}
    place = log(workspace, "happened").position
    assert command("history", "archive", "atlas", str(place))["run"]["changed"] == 1
    assert command("history", "list", "atlas")["entries"][0]["archived"]


def test_an_interrupted_deletion_is_not_retried(workspace, editor, sessions):
    run = Run.objects.create(
        workspace=workspace,
        kind=Run.Kind.EDIT,
        status=Run.Status.CANCELLED,
        options={"table": "sessions", "action": "delete", "units": [[sessions[0].pk]], "values": {}},
        created_at=NOW,
        not_before=NOW,
    )

    alone = editor.post(url("retry-run", run.pk))
    among = act(editor, url("edit-runs"), [run], action="retry")

    run.refresh_from_db()
    assert run.status == Run.Status.CANCELLED
    assert (alone.status_code, "Ask an operator to select" in alone.content.decode()) == (422, True)
    assert "Nothing changed" in among
    assert url("retry-run", run.pk) not in editor.get(url("run", run.pk)).content.decode()
