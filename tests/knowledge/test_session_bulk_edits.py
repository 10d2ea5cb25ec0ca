"""Bulk edits of sessions: archiving, runs, export and deletion, and undo."""

from __future__ import annotations

import io
import zipfile

import pytest
from django.test import Client
from django.utils import timezone

from knowledge_app.services.rows import undoable_edits
from memoryhub import sweeps
from memoryhub.models import AccessRecord
from memoryhub.runs.executing import execute, undo_run
from sessions_app.models import AuditRecord, DeletedSession, Membership, Run, Session, Workspace
from sessions_app.services.audit import By
from tests.hub import NOW, PERSON, client_of, member, open_at, talk
from tests.knowledge.test_bulk_edits import act, undo, url

pytestmark = pytest.mark.django_db


@pytest.fixture
def operator(workspace: Workspace) -> Client:
    return client_of(member(workspace, "olga", Membership.Role.OPERATOR))


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
    assert all(words in archived for words in ("1 session archived.", undo, page, "Archived <time", "Unarchive"))
    assert "No changes." in again
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
    assert "Delete 2 conversations" in page
    assert operator.post(address, chosen | {"typed": "3", "shown": "2"}).status_code == 422
    open_at(Workspace.objects.get(), "cli:late")
    html = act(operator, address, typed="2", shown="2", **chosen)
    assert "3 rows match now instead of 2" in html
    assert Session.objects.count() == 4

    act(operator, address, typed="3", shown="3", all="1", expected="3", text="old")
    assert Session.objects.get().key == "telegram:three"
    assert set(DeletedSession.objects.values_list("reason", flat=True)) == {"old"}
    assert "can't be undone" in operator.get(url("run", Run.objects.latest("pk").pk)).content.decode()


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
    assert "2 of 3 rows were changed" in html
    run.refresh_from_db()
    monkeypatch.setattr(undoable_edits, "AT_ONCE", 2)
    monkeypatch.setattr(undoable_edits, "_change_batch", batch)
    undo_run(run, by=By(PERSON, timezone.now()))
    assert not Session.objects.filter(archived_at__isnull=False).exists()


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
    assert "No changes" in among
    assert url("retry-run", run.pk) not in editor.get(url("run", run.pk)).content.decode()
