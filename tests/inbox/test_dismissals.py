from __future__ import annotations

import json

import pytest
from django.utils import timezone

from memoryhub.inbox.attention import attention_items
from memoryhub.models import Job
from memoryhub.role_scope import whole_scope
from sessions_app.models import AuditRecord, ImportProblem, ImportReport, Workspace
from tests.hub import run_jobs
from tests.inbox.test_attention import end_job, hold, imported, over_limit

pytestmark = pytest.mark.django_db


def kinds() -> list[str]:
    return [item.kind for item in attention_items(whole_scope(), now=timezone.now())]


@pytest.mark.parametrize("table", ["import", "job"])
def test_a_failure_is_dismissed_and_restored(admin_client, workspace, table):
    failed = imported(workspace, "rejected") if table == "import" else end_job(workspace, "failed")
    address = f"/dismiss/?{table}={failed.pk}"
    assert f'action="{address}"' in admin_client.get("/").content.decode()

    home = admin_client.post(address, {"next": "/?needs=all"}, follow=True)

    assert home.request["QUERY_STRING"] == "needs=all"
    undo = f"/dismiss/undo/?{table}={failed.pk}"
    assert f'action="{undo}"' in home.content.decode()
    assert kinds() == []
    admin_client.post(undo)
    assert len(kinds()) == 1
    made = AuditRecord.objects.filter(object_id=failed.pk, object_kind=table).values_list("action", "workspace")
    assert list(made) == [(f"{table}.dismissed", workspace.pk), (f"{table}.restored", workspace.pk)]


def test_the_pages_of_an_import_and_a_job_offer_to_dismiss_it(admin_client, workspace):
    for page, model in (
        (f"/imports/{imported(workspace, 'rejected').pk}/", ImportReport),
        (f"/imports/{imported(None, status='failed').pk}/", ImportReport),
        (f"/work/{end_job(workspace, 'failed').pk}/", Job),
    ):
        assert 'action="/dismiss/?' in admin_client.get(page).content.decode()
        model.objects.filter(pk=page.split("/")[2]).update(dismissed_at=timezone.now())
        shown = admin_client.get(page).content.decode()
        assert "Dismissed <time" in shown
        assert 'action="/dismiss/?' not in shown


def test_only_those_who_see_a_failure_may_dismiss_it(editor, viewer_client, stranger_client, workspace):
    report, job, hub_job = imported(workspace, "held"), end_job(workspace, "failed"), end_job(None, "failed")
    running = Job.objects.create(workspace=workspace, kind="export", status="running")

    for client, pks in (
        (editor, {"import": report.pk}),
        (editor, {"job": hub_job.pk}),
        (editor, {"job": running.pk}),
        (viewer_client, {"job": job.pk}),
        (stranger_client, {"job": job.pk}),
    ):
        [(table, pk)] = pks.items()
        assert client.post(f"/dismiss/?{table}={pk}").status_code == 404
    assert editor.get(f"/dismiss/?job={job.pk}").status_code == 405
    assert not AuditRecord.objects.filter(action__endswith="dismissed").exists()
    assert editor.post(f"/dismiss/?job={job.pk}", {"next": "//evil.example"})["Location"] == "/"


def test_a_dismissed_import_returns_only_with_other_notes(admin_client, settings, tmp_path):
    settings.MEMORYHUB_ROOTS = [tmp_path]
    sessions = tmp_path / "agent" / "sessions"
    sessions.mkdir(parents=True)
    lines = [json.dumps({"_type": "metadata", "key": "cli:a"}), '{"role": 1}']
    file = sessions / "cli_a.jsonl"
    file.write_text("\n".join(lines) + "\n")
    admin_client.post("/import/", {"path": str(tmp_path / "agent")})
    run_jobs()
    again = f"/w/{Workspace.objects.get().slug}/imports/again/"
    admin_client.post(f"/dismiss/?import={ImportReport.objects.get().pk}")

    admin_client.post(again)
    run_jobs()
    assert ImportReport.objects.latest("id").problem_count
    assert kinds() == []

    file.write_text("\n".join([*lines, '{"role": 2}']) + "\n")
    admin_client.post(again)
    run_jobs()
    assert kinds() == ["note"]


def test_notes_of_several_imports_share_the_last_row(admin_client, workspace):
    for number in range(3):
        other = Workspace.objects.create(slug=f"agent-{number}", name=f"Agent {number}", auto_compress=False)
        imported(other, "rejected")
    over_limit(other)
    change = hold(workspace)

    page = admin_client.get("/")
    [held, budget, notes] = page.context["attention_items"]
    listed = admin_client.get("/?needs=note").context

    assert (held.action, held.url) == ("Review", f"/w/atlas/review/{change.pk}/")
    assert (budget.action, budget.kind) == ("Compress now", "budget")
    assert (notes.text, notes.url, notes.action) == ("3 imports have warnings.", "?needs=note#needs-you", "Show")
    assert [item.name for item in listed["attention_items"]] == ["Agent 0", "Agent 1", "Agent 2"]
    assert listed["attention_hidden"] == 2
    ImportReport.objects.update(dismissed_at=timezone.now())
    assert len(admin_client.get("/?needs=note").context["attention_items"]) == 2


def test_a_conversation_over_budget_shows_its_messages_and_tokens(admin_client, workspace):
    over_limit(workspace, entry_count=312, active_entry_count=312, active_tokens=2_655)
    Workspace.objects.update(auto_compress=False, max_entries=100)

    page = admin_client.get("/w/atlas/inbox/").content.decode()

    assert "312 messages, 2,655 tokens" in page


def test_the_inbox_names_what_could_not_be_imported_as_the_report_does(admin_client, workspace):
    report = imported(workspace, "rejected")
    faults = {"file": "sessions/Y2xpOmRpcmVjdA.jsonl", "line": 5, "what": "column 34: not JSON: Unterminated string"}
    ImportProblem.objects.filter(report=report).update(**faults)

    for address in ("/inbox/", f"/imports/{report.pk}/"):
        page = admin_client.get(address).content.decode()
        assert "<bdi>cli:direct</bdi>" in page
        assert "Line 5 couldn&#x27;t be read. Not valid JSON: unterminated string, column 34." in page
