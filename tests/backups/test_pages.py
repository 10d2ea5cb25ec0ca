import io
import tarfile

import pytest
from django.conf import settings as hub
from django.urls import reverse
from django.utils import timezone

from memoryhub.backups import folder
from memoryhub.backups.errors import BackupFailed
from memoryhub.models import Job
from memoryhub.processes import this_process
from sessions_app.models import AuditRecord
from sessions_app.services.audit import By
from tests.backups import test_backups
from tests.hub import PERSON, run_jobs

pytestmark = [pytest.mark.django_db, *test_backups.pytestmark[1:]]
URL = "/backups/"


@pytest.fixture(autouse=True)
def home(settings, tmp_path):
    settings.MEMORYHUB_HOME, settings.MEMORYHUB_BACKUP_DIR = tmp_path, tmp_path / "backups"
    (tmp_path / "secret_key").write_text(hub.SECRET_KEY)


@pytest.fixture
def made(admin_client):
    """Return a backup that was requested on the page."""
    assert admin_client.post(reverse("make-backup")).status_code == 302
    run_jobs()
    (kept,) = folder.list_backups()
    return kept


def test_the_empty_page(admin_client):
    html = admin_client.get(URL).content.decode()

    assert "No backups yet" in html
    assert "MEMORYHUB_BACKUP_KEY is not set" in html


def test_a_requested_backup_is_created_listed_and_downloaded(admin_client, made):
    html = admin_client.get(URL).content.decode()
    response = admin_client.post(reverse("download-backup", args=[made.name]))

    assert made.name in html
    assert "restore --yes" in html
    assert made.checked_at is not None
    with tarfile.open(fileobj=io.BytesIO(b"".join(response.streaming_content))) as archive:
        assert archive.getnames()[0] == "manifest.json"
    assert response["Content-Disposition"] == f'attachment; filename="{made.name}"'
    assert response["X-Content-Type-Options"] == "nosniff"
    assert list(AuditRecord.objects.order_by("id").values_list("action", "actor_name")) == [
        ("backup.made", "admin"),
        ("backup.downloaded", "admin"),
    ]


def test_deleting_asks_for_confirmation(admin_client, made):
    url = reverse("delete-backup", args=[made.name])

    assert made.name in admin_client.get(url).content.decode()
    assert folder.find_backup(made.name)
    assert admin_client.post(url).status_code == 302

    assert folder.list_backups() == []
    assert AuditRecord.objects.latest("id").action == "backup.deleted"
    assert admin_client.post(url).status_code == 404


def test_the_page_shows_why_a_check_failed(admin_client, made):
    file = folder.backup_folder() / made.name
    file.write_bytes(file.read_bytes()[:-5])

    admin_client.post(reverse("check-backup", args=[made.name]))
    run_jobs()

    assert "damaged or truncated" in admin_client.get(URL).content.decode()


@pytest.mark.slow
def test_a_failure_is_shown_until_one_succeeds(admin_client, settings, monkeypatch):
    settings.MEMORYHUB_BACKUP_KEY = "short"
    admin_client.post(reverse("make-backup"))
    run_jobs()
    failed = admin_client.get(URL).content.decode()
    settings.MEMORYHUB_BACKUP_KEY = "a calm sea at dawn"
    admin_client.post(reverse("make-backup"))
    run_jobs()
    made = admin_client.get(URL).content.decode()

    assert "Last backup failed" in failed
    assert "12 characters" in failed
    assert "Last backup failed" not in made
    assert ">encrypted<" in made
    assert folder.list_backups()[0].rows is not None


def test_the_page_polls_until_the_job_is_done(admin_client):
    admin_client.post(reverse("make-backup"))
    waiting = admin_client.get(f"{URL}?poll=1", headers={"HX-Request": "true"})
    run_jobs()
    over = admin_client.get(f"{URL}?poll=1", headers={"HX-Request": "true"})

    assert (waiting.status_code, over.status_code) == (200, 286)
    assert b'hx-trigger="every 1s"' in waiting.content
    assert b'hx-trigger="every' not in over.content


def test_the_commands_name_the_newest_backup_once_it_is_made(admin_client):
    admin_client.post(reverse("make-backup"))
    waiting = admin_client.get(f"{URL}?poll=1", headers={"HX-Request": "true"}).content.decode()
    run_jobs()
    over = admin_client.get(f"{URL}?poll=1", headers={"HX-Request": "true"}).content.decode()

    [made] = folder.list_backups()
    assert "/backups/FILE\n" in waiting
    assert f"/backups/{made.name}\n" in over


def test_only_one_backup_or_check_is_queued(admin_client, made):
    admin_client.post(reverse("make-backup"))

    for name, arguments in (("make-backup", []), ("check-backup", [made.name])):
        response = admin_client.post(reverse(name, args=arguments), follow=True)
        assert "already being created or verified" in response.content.decode()

    assert Job.objects.filter(status="queued").count() == 1


def test_a_queued_backup_can_be_cancelled(admin_client):
    admin_client.post(reverse("make-backup"))
    assert reverse("cancel-backup") in admin_client.get("/work/").content.decode()

    admin_client.post(reverse("cancel-backup"))
    again = admin_client.post(reverse("cancel-backup"), follow=True).content.decode()
    run_jobs()

    assert "already being verified or has finished" in again
    assert folder.list_backups() == []
    assert AuditRecord.objects.get().action == "backup.cancelled"


@pytest.mark.slow
def test_a_requested_backup_is_created_after_a_scheduled_one(admin_client):
    admin_client.post(reverse("make-backup"))
    folder.create_in_folder(actor=folder.SCHEDULE, clock=timezone.now)
    run_jobs()

    assert len(folder.list_backups()) == 2


def test_a_backup_being_verified_cannot_be_cancelled(admin_client):
    folder.request_backup(by=By(PERSON, timezone.now()))
    for stage, is_offered in (("packing", True), ("checking", False)):
        Job.objects.update(status="running", lease_owner=this_process(), stage=stage)
        for page in ("/work/", URL):
            assert (reverse("cancel-backup") in admin_client.get(page).content.decode()) is is_offered


@pytest.mark.parametrize("name", ["secret_key", "state.json", "memoryhub-20260401T120000Z.tar.gz", ".."])
def test_other_files_cannot_be_downloaded(name, admin_client):
    folder.update_state(failure="")

    assert admin_client.post(f"{URL}{name}/download/").status_code == 404


def test_only_hub_operators_see_the_menu_item(admin_client, stranger_client):
    assert f'href="{URL}"' in admin_client.get("/").content.decode()
    assert f'href="{URL}"' not in stranger_client.get("/").content.decode()


def test_the_job_has_the_error_of_a_failed_backup(monkeypatch, caplog, admin_client):
    def fail(**_options):
        raise BackupFailed("No.")

    monkeypatch.setattr(folder, "create_in_folder", fail)
    admin_client.post(reverse("make-backup"))
    run_jobs()

    job = Job.objects.get()
    assert (job.status, job.error) == ("failed", "No.")
    assert f"Backup {job.pk} failed: No." in caplog.text
