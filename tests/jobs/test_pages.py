from __future__ import annotations

import io
from zipfile import ZipFile

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from knowledge_app.models import Forgotten, KnowledgeEntry
from knowledge_app.services.rows.knowledge import add_knowledge
from memoryhub.forgetting.erasure import ErasureRequest
from memoryhub.forgetting.requests import request_forgetting
from memoryhub.jobs.queue import do_next_job, request_job
from memoryhub.models import Job
from memoryhub.processes import this_process
from memoryhub.sync.import_requests import request_import
from memoryhub.sync.views import export
from sessions_app.models import AuditRecord, Membership, Workspace
from sessions_app.services.audit import By
from tests.hub import PERSON, client_of, member, open_at, talk

pytestmark = pytest.mark.django_db
PAGE = "/work/"


@pytest.fixture(autouse=True)
def home(settings, tmp_path):
    settings.MEMORYHUB_HOME, settings.MEMORYHUB_BACKUP_DIR = tmp_path, tmp_path / "backups"


@pytest.fixture
def operator(workspace) -> Client:
    """A person with the role operator in this workspace only."""
    return client_of(member(workspace, "opal", Membership.Role.OPERATOR))


@pytest.fixture
def large(workspace, monkeypatch) -> Workspace:
    monkeypatch.setattr(export, "LARGE_ENTRIES", 2)
    talk(open_at(workspace), 2)
    return workspace


def ask(workspace, kind="export") -> Job:
    return request_job(kind, workspace, {}, by=By(PERSON, timezone.now()))[0]


def text(response) -> str:
    return response.content.decode()


def test_a_large_workspace_is_exported_by_a_job(editor: Client, large):
    answer = editor.post("/w/atlas/export/download/", {"layout": "hub"})
    again = editor.post("/w/atlas/export/download/", {"layout": "hub"})
    waiting = text(editor.get(answer["Location"]))
    do_next_job(clock=timezone.now)
    over = text(editor.get(answer["Location"]))
    file = editor.post(f"{answer['Location']}download/")

    assert answer["Location"] == again["Location"]
    assert 'hx-trigger="every 1s"' in waiting
    assert "Download atlas-hub.zip" in over
    assert 'hx-trigger="every' not in over
    assert file["Content-Disposition"] == 'attachment; filename="atlas-hub.zip"'
    assert file["Content-Security-Policy"] == "sandbox"
    assert ZipFile(io.BytesIO(b"".join(file.streaming_content))).namelist()
    assert AuditRecord.objects.get(action="job.downloaded").actor_name == "edda"


def test_a_viewer_can_only_see_a_job(viewer_client: Client, large):
    job = ask(large)
    do_next_job(clock=timezone.now)
    page = text(viewer_client.get(f"/work/{job.pk}/"))

    assert "Done" in page
    assert "Download" not in page
    for verb in ("download", "cancel", "retry"):
        assert viewer_client.post(f"/work/{job.pk}/{verb}/").status_code == 404


def test_jobs_of_other_workspaces_are_hidden(stranger_client: Client, editor: Client, workspace):
    job, of_hub = ask(workspace), ask(None, "rebuild")
    request_import(path="/secret/place", user=User.objects.create_user("olga"))

    for pk in (job.pk, of_hub.pk):
        assert stranger_client.get(f"/work/{pk}/").status_code == 404
    assert editor.get(f"/work/{of_hub.pk}/").status_code == 404
    mine = text(editor.get(PAGE))
    assert f'id="job-{job.pk}"' in mine
    assert "/secret/place" not in mine
    assert "Background jobs (1)" in mine
    assert "No background jobs" in text(stranger_client.get(PAGE))


def test_the_list_polls_only_while_jobs_are_live(admin_client: Client, workspace):
    idle = text(admin_client.get(PAGE))
    job = ask(workspace)
    part = text(admin_client.get(PAGE, {"part": "1"}, headers={"HX-Request": "true"}))

    assert 'hx-trigger="every' not in idle
    assert part.lstrip().startswith('<div id="work-list"')
    assert 'hx-trigger="every 1s"' in part
    assert f'id="cancel-job-{job.pk}"' in part


def test_a_job_is_cancelled_and_requested_again(editor: Client, workspace):
    job = ask(workspace)

    cancelled = text(editor.post(f"/work/{job.pk}/cancel/", follow=True))
    again = editor.post(f"/work/{job.pk}/retry/")

    assert "Cancelled" in cancelled
    assert again["Location"] == f"/work/{Job.objects.latest('id').pk}/"
    assert Job.objects.count() == 2
    assert "already finished" in text(editor.post(f"/work/{job.pk}/cancel/", follow=True))


def test_a_cancelled_erasure_leaves_no_receipt(editor: Client, operator: Client, workspace):
    add_knowledge(workspace, "Anna likes tea", category="learned_fact", by=By(PERSON, timezone.now()))
    wish = ErasureRequest("person", ("Anna",))
    job = request_forgetting(workspace, wish, expected=1, reason="", by=By(PERSON, timezone.now()))

    assert editor.post(f"/work/{job.pk}/cancel/").status_code == 404
    assert f"/work/{job.pk}/cancel/" not in text(editor.get(PAGE))
    assert Forgotten.objects.filter(workspace=workspace).exists()
    assert f"/work/{job.pk}/cancel/" in text(operator.get(PAGE))
    assert "Cancelled" in text(operator.post(f"/work/{job.pk}/cancel/", follow=True))
    assert not Forgotten.objects.exists()
    assert KnowledgeEntry.objects.get().content == "Anna likes tea"
    operator.post(f"/work/{job.pk}/retry/")
    do_next_job(clock=timezone.now)
    assert "job_without_receipt" in Job.objects.latest("id").error_code
    assert KnowledgeEntry.objects.get().content == "Anna likes tea"


def test_a_stranded_job_says_how_to_start_a_worker(editor: Client, workspace):
    job = ask(workspace)
    Job.objects.update(created_at="2026-04-01T12:00:00Z")

    assert "python3 manage.py worker" in text(editor.get(f"/work/{job.pk}/"))


def test_due_sessions_are_previewed_and_compressed(editor: Client, workspace):
    Workspace.objects.update(max_entries=20)
    talk(open_at(workspace), 6)

    preview = text(editor.get("/w/atlas/compress/"))
    answer = editor.post("/w/atlas/compress/", {"method": "heuristic"})
    do_next_job(clock=timezone.now)

    assert "24 messages in their contexts" in preview
    assert "1 compressed" in text(editor.get(answer["Location"]))
    assert "No conversations over budget" in text(editor.get("/w/atlas/compress/"))


def test_the_runs_page_lists_jobs_of_its_workspace(viewer_client: Client, workspace):
    job, other = ask(workspace), ask(Workspace.objects.create(slug="other", name="Other"))

    page = text(viewer_client.get("/w/atlas/runs/"))

    assert f'id="job-{job.pk}"' in page
    assert f'id="job-{other.pk}"' not in page
    assert viewer_client.get("/w/atlas/work/").status_code == 302


def test_only_hub_operators_can_rebuild_search(admin_client: Client, editor: Client):
    assert editor.post("/work/rebuild/").status_code == 403
    answer = admin_client.post("/work/rebuild/", {"table": "sessions_app_entry"})
    do_next_job(clock=timezone.now)

    page = text(admin_client.get(answer["Location"]))
    assert "1 index rebuilt" in page


def test_only_editors_can_cancel_an_import(editor: Client, viewer_client: Client, workspace):
    Workspace.objects.update(path="/x")
    report = request_import(path="/x", user=User.objects.create_user("olga"))
    running = {"status": "running", "lease_owner": this_process(), "steps_done": 1, "steps_total": 4}
    Job.objects.filter(pk=report.job_id).update(**running)

    assert viewer_client.post(f"/imports/{report.pk}/cancel/").status_code == 404
    page = text(editor.post(f"/imports/{report.pk}/cancel/", follow=True))

    assert "1 of 4 files" in page
    assert "Cancelling" in page
