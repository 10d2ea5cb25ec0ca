"""Pages that change sessions: each action works, needs its role, and changes nothing on a wrong request."""

from __future__ import annotations

import json

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.utils import timezone

from memoryhub.integrity import check_memory
from memoryhub.lib.tokens import count_tokens
from memoryhub.runs.executing import execute
from sessions_app.models import AuditRecord, DeletedSession, Entry, Run, Session, Summary, Workspace
from sessions_app.services.transfer import export_session
from tests.hub import NOW, add, compress, open_at, talk, url

pytestmark = pytest.mark.django_db


def text_of(response) -> str:
    return response.content.decode()


FOR_EDITORS = ["append-entry", "rename-session", "clear-session", "prune-session", "compress-session"]


@pytest.mark.parametrize("name", FOR_EDITORS)
def test_viewer_cannot_change_a_session(name, session, viewer_client):
    response = viewer_client.post(url(name, session.pk), {"kind": "user", "content": "x", "title": "x"})

    assert response.status_code == 404
    assert Entry.objects.count() == 40
    assert not Run.objects.exists()


@pytest.mark.parametrize("name", ["cancel-run", "retry-run", "fold-run", "dismiss-run", "undo-run", "approve-run"])
def test_viewer_cannot_decide_about_a_run(name, session, viewer_client):
    run = compress(session)

    assert viewer_client.post(url(name, run.pk)).status_code == 404
    assert viewer_client.get(url(name, run.pk)).status_code == 405
    assert Run.objects.get().status == "done"


def test_editor_cannot_delete_a_session(session, editor):
    assert editor.post(url("delete-session", session.pk), {"confirmation": session.key}).status_code == 404
    assert Session.objects.exists()


def test_compression_plan_is_shown_and_run_is_requested(session, editor):
    shown = editor.get(url("compress-session", session.pk))
    assert "#0 to #27" in text_of(shown)
    assert not Run.objects.exists()

    response = editor.post(url("compress-session", session.pk), {"keep": 10, "method": "heuristic"})

    run = Run.objects.get()
    assert response["Location"] == url("run", run.pk)
    page = editor.get(url("run", run.pk))
    assert "every 1s" in text_of(page)
    execute(run.pk, now=timezone.now)
    assert "every 1s" not in text_of(editor.get(url("run", run.pk)))
    assert editor.get(url("run", run.pk), {"poll": 1}).status_code == 286


def test_plan_follows_the_number_of_entries_to_keep(session, editor):
    response = editor.get(url("compress-session", session.pk), {"keep": 30}, headers={"HX-Request": "true"})

    assert "#0 to #7" in text_of(response)
    assert "<html" not in text_of(response)


def test_the_plan_is_estimated_from_the_summary_shown_and_names_what_is_lost(workspace, editor):
    session = open_at(workspace, "cli:figures")
    for number in range(20):
        text = f"Invoice {number} of 2026-03-{number + 1:02} costs {number}.50. " * 9
        add(session, [{"role": "user", "content": text}])

    response = editor.get(url("compress-session", session.pk), {"keep": 10})

    preview = response.context["preview"]
    session.refresh_from_db()
    assert preview.summary_tokens == count_tokens(preview.text)
    assert preview.after == session.active_tokens - preview.original_tokens + preview.summary_tokens
    assert preview.lost_figures > 20
    assert f"keep no facts: {preview.lost_figures} figures leave the context." in text_of(response)


def test_with_a_model_the_plan_is_estimated_from_its_target(session, editor, settings):
    settings.MEMORYHUB_LLM_MODEL, settings.MEMORYHUB_LLM_BASE_URL = "small", "http://127.0.0.1:9/v1"
    options = {"keep": 10, "method": "llm"}

    by_model = editor.get(url("compress-session", session.pk), options).context["preview"]
    by_rule = editor.get(url("compress-session", session.pk), options | {"method": "heuristic"}).context["preview"]

    assert (by_model.requests, by_model.lost_figures) == (1, 0)
    assert by_model.summary_tokens == round(by_model.original_tokens * session.workspace.compression_ratio)
    assert (by_rule.requests, by_rule.summary_tokens) == (0, count_tokens(by_rule.text))


def test_compression_is_undone_from_its_page(session, editor):
    run = compress(session)
    assert "Undo…" in text_of(editor.get(url("run", run.pk)))

    editor.post(url("undo-run", run.pk))

    assert Run.objects.get().status == "undone"
    assert not Summary.objects.exists()


def test_a_held_summary_is_shown_and_approved(session, editor):
    run = compress(session, hold=True)
    assert "Use this summary" in text_of(editor.get(url("run", run.pk)))

    editor.post(url("approve-run", run.pk))

    assert Summary.objects.count() == 1


def test_actions_that_do_not_fit_a_run_are_refused(session, editor):
    run = compress(session)

    response = editor.post(url("cancel-run", run.pk))

    assert response.status_code == 422
    assert "can&#x27;t be cancelled" in text_of(response)


def test_parked_run_offers_three_actions(session, editor):
    run = compress(session)
    Run.objects.update(status="parked", error="The model said nothing.")

    page = text_of(editor.get(url("run", run.pk)))

    for words in ("The model said nothing.", "Try again", "Summarise by rule", "Don't compress"):
        assert words in page


def test_runs_are_listed_by_state(session, viewer_client):
    compress(session)

    assert "Compression" in text_of(viewer_client.get(url("runs")))
    assert "No matching runs" in text_of(viewer_client.get(url("runs"), {"state": "failed"}))


def test_an_entry_is_added(session, editor):
    editor.post(url("append-entry", session.pk), {"kind": "context", "name": "a.ts", "content": "code\n"})

    entry = Entry.objects.get(position=40)
    assert (entry.kind, entry.name, entry.content) == ("context", "a.ts", "code\n")


def test_an_empty_entry_is_not_added(session, editor):
    response = editor.post(url("append-entry", session.pk), {"kind": "user", "content": ""}, follow=True)

    assert "Nothing was added" in text_of(response)
    assert Entry.objects.count() == 40


def test_a_session_gets_a_title_and_keeps_its_key(session, editor):
    editor.post(url("rename-session", session.pk), {"title": "Labels"})

    session.refresh_from_db()
    assert (session.title, session.key) == ("Labels", "cli:main")


def test_clearing_starts_an_epoch_and_keeps_the_old_one_readable(session, editor):
    editor.post(url("clear-session", session.pk))

    session.refresh_from_db()
    assert session.epoch == 1
    assert "request 9" in text_of(editor.get(url("sessions:detail", session.pk), {"epoch": 0}))
    assert not check_memory().broken


def test_cleared_session_links_to_its_earlier_epoch(session, editor):
    editor.post(url("clear-session", session.pk))

    page = text_of(editor.get(url("sessions:detail", session.pk)))

    assert 'href="?epoch=0"' in page
    assert "No messages" in page


def test_clearing_with_an_archive_goes_through_a_run(session, editor):
    response = editor.post(url("clear-session", session.pk), {"archive": "1"})

    run = Run.objects.get()
    assert response["Location"] == url("run", run.pk)
    session.refresh_from_db()
    assert session.epoch == 0
    execute(run.pk, now=timezone.now)
    session.refresh_from_db()
    assert session.epoch == 1


def test_clearing_is_refused_during_a_run(session, editor):
    run = compress(session)
    Run.objects.update(status="running", lease_owner="elsewhere:1:x", lease_expires_at=NOW)

    response = editor.post(url("clear-session", session.pk))

    assert response.status_code == 422
    assert f"Run {run.pk} is running" in text_of(response)


def test_pruning_folds_all_but_the_window(session, editor, workspace):
    Workspace.objects.update(memory_window=8)
    editor.post(url("prune-session", session.pk))
    execute(Run.objects.get().pk, now=timezone.now)

    session.refresh_from_db()
    assert session.active_entry_count == 8
    assert Entry.objects.count() == 40


def test_deleting_needs_the_typed_key_and_leaves_a_tombstone(session, operator):
    shown = text_of(operator.get(url("delete-session", session.pk)))
    assert "40 messages" in shown
    refused = operator.post(url("delete-session", session.pk), {"confirmation": "cli"})
    assert refused.status_code == 422
    assert Session.objects.exists()

    operator.post(url("delete-session", session.pk), {"confirmation": "cli:main", "reason": "a test"})

    assert not Entry.objects.exists()
    tombstone = DeletedSession.objects.get()
    assert (tombstone.entry_count, tombstone.reason, tombstone.deleted_by) == (40, "a test", "operator-person")
    assert not check_memory().broken
    operator.post(url("allow-session", tombstone.pk))
    assert not DeletedSession.objects.exists()


def test_an_export_downloads_and_imports_elsewhere(session, editor, workspace):
    response = editor.get(url("export-session", session.pk), {"layout": "nanobot"})
    assert response["Content-Disposition"] == 'attachment; filename="cli_main.jsonl"'
    assert response["Content-Security-Policy"] == "sandbox"
    Session.objects.update(key="cli:other")

    upload = SimpleUploadedFile("cli_main.jsonl", response.getvalue())
    editor.post(url("new-session") + "?import=1", {"file": upload})

    assert Session.objects.get(key="cli:main").entry_count == 40


def test_file_that_is_not_a_session_is_refused(workspace, editor):
    response = editor.post(url("new-session") + "?import=1", {"file": SimpleUploadedFile("x.json", b"{}")})

    assert response.status_code == 422
    assert "a session of nanobot, Grip or AgTerm" in text_of(response)


def test_unknown_export_format_is_refused(session, editor):
    assert editor.get(url("export-session", session.pk), {"layout": "eliza"}).status_code == 422


def test_session_is_created_on_its_page(workspace, editor):
    response = editor.post(url("new-session"), {"key": "cli:new", "title": "New"})

    session = Session.objects.get(key="cli:new")
    assert response["Location"] == url("sessions:detail", session.pk)


def test_open_page_is_notified_of_changes(session, viewer_client):
    newest = AuditRecord.objects.order_by("-id").values_list("id", flat=True).first()
    known = {"after": newest, "length": session.next_position}
    assert "new messages" not in text_of(viewer_client.get(url("session-live", session.pk), known))
    talk(session, 1, first=10)

    response = viewer_client.get(url("session-live", session.pk), known)

    assert "4 new messages" in text_of(response)


def test_activity_lists_runs_and_can_hide_appends(session, viewer_client):
    compress(session)

    assert "summarised" in text_of(viewer_client.get(url("activity"), headers={"HX-Request": "true"}))
    assert "entry.added" not in text_of(viewer_client.get(url("activity"), {"kind": "changes"}))


def test_stored_markup_is_escaped_on_action_pages(workspace, editor):
    session = open_at(workspace, "<script>alert(1)</script>")
    talk(session, 10)
    run = compress(session)
    Run.objects.filter(pk=run.pk).update(proposal=run.proposal | {"text": '<img src=x onerror="a()" hx-get="/">'})

    for address in (url("run", run.pk), url("runs"), url("activity"), url("compress-session", session.pk)):
        page = text_of(editor.get(address))
        assert "<script>alert" not in page
        assert "<img src=x" not in page


@pytest.mark.slow
@pytest.mark.postgres
def test_lists_run_the_same_queries_for_ten_rows_and_thirty(workspace, viewer_client, django_assert_num_queries):
    from django.db import connection
    from django.test.utils import CaptureQueriesContext

    def cost(name: str) -> int:
        with CaptureQueriesContext(connection) as seen:
            assert viewer_client.get(url(name)).status_code == 200
        return len(seen)

    def fill(first: int, count: int) -> None:
        for number in range(first, first + count):
            session = open_at(workspace, f"cli:{number}")
            talk(session, 5)
            compress(session)

    fill(0, 5)
    few = [cost(name) for name in ("runs", "activity")]
    fill(5, 15)

    assert [cost(name) for name in ("runs", "activity")] == few


def test_export_is_valid_json(session):
    name, text = export_session(session, "agterm")

    assert name == "cli_main.json"
    assert len(json.loads(text)["entries"]) == 40
