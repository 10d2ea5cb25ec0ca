"""Two hubs with different homes and one storage: what one stores, the other reads."""

from __future__ import annotations

import io
import json
import socket
from datetime import timedelta
from zipfile import ZipFile

import pytest
from django.conf import settings as hub
from django.core.files.base import ContentFile
from django.core.files.storage import Storage, default_storage
from django.db.models.functions import Now
from django.urls import reverse
from django.utils import timezone

from knowledge_app.models import KnowledgeEntry
from memoryhub.backups import folder
from memoryhub.jobs.queue import request_job
from memoryhub.models import Job, Process
from memoryhub.processes import this_home
from memoryhub.sync import other_machines, watching
from memoryhub.sync.import_requests import request_import
from sessions_app.models import ImportReport, Session, Workspace
from sessions_app.services.audit import By
from tests.admin.test_tables import confirm, upload
from tests.backups import test_backups
from tests.hub import PERSON, open_at, run_jobs, talk

pytestmark = [pytest.mark.django_db, *test_backups.pytestmark[1:]]


class Bucket(Storage):
    """A storage in memory that has no local paths and replaces files, as S3 does."""

    def __init__(self):
        self.files: dict[str, bytes] = {}

    def get_available_name(self, name, max_length=None):
        return name

    def _open(self, name, mode="rb"):
        if name not in self.files:
            raise FileNotFoundError(name)
        return ContentFile(self.files[name], name)

    def _save(self, name, content):
        self.files[name] = b"".join(content.chunks())
        return name

    def delete(self, name):
        self.files.pop(name, None)

    def exists(self, name):
        return name in self.files

    def listdir(self, path):
        prefix = f"{path}/" if path else ""
        names = [name.removeprefix(prefix) for name in self.files if name.startswith(prefix)]
        return [], [name for name in names if "/" not in name]

    def size(self, name):
        return len(self.files[name])

    def get_modified_time(self, name):
        return timezone.now()


@pytest.fixture(params=["folder", "bucket"])
def machine(request, settings, tmp_path, monkeypatch):
    """Return a function that continues the test on another machine."""
    settings.MEMORYHUB_FILES = "s3://bucket" if request.param == "bucket" else str(tmp_path / "shared")
    settings.MEMORYHUB_BACKUP_DIR = tmp_path / "shared" / "backups"
    if request.param == "bucket":
        bucket = f"{__name__}.Bucket"
        settings.STORAGES = hub.STORAGES | {"default": {"BACKEND": bucket}, "backups": {"BACKEND": bucket}}

    def move_to(name: str) -> None:
        settings.MEMORYHUB_HOME = tmp_path / name
        settings.MEMORYHUB_HOME.mkdir(exist_ok=True)
        (settings.MEMORYHUB_HOME / "secret_key").write_text(hub.SECRET_KEY)
        monkeypatch.setattr(socket, "gethostname", lambda: name)

    move_to("a")
    return move_to


def content_of(response) -> bytes:
    return b"".join(response.streaming_content)


def test_an_upload_is_imported_by_another_machine(admin_client, machine):
    export = {"sessionId": "s-1", "entries": [{"id": "a", "type": "message", "role": "user", "content": "hi"}]}
    file = io.BytesIO(json.dumps(export).encode())
    file.name = "desk.json"
    admin_client.post(reverse("import"), {"upload": file, "layout": "auto"})

    machine("b")
    run_jobs()

    assert Session.objects.get().key == "s-1"
    workspace = Workspace.objects.get()
    admin_client.post(reverse("import-again", args=[workspace.slug]))
    machine("a")
    run_jobs()
    assert ImportReport.objects.latest("id").unchanged["entries"] == 1
    assert list(Workspace.objects.all()) == [workspace]


def test_an_export_is_downloaded_from_another_machine(admin_client, machine, workspace):
    talk(open_at(workspace), 2)
    request_job("export", workspace, {"layout": "hub"}, by=By(PERSON, timezone.now()))
    run_jobs()
    job = Job.objects.get()

    machine("b")
    page = admin_client.get(reverse("job", args=[job.pk])).content.decode()
    response = admin_client.post(reverse("download-job", args=[job.pk]))

    assert "The archive is ready" in page
    assert "another machine" not in page
    assert ZipFile(io.BytesIO(content_of(response))).testzip() is None


def test_a_table_is_previewed_and_imported_on_different_machines(admin_client, machine, workspace):
    row = {"workspace": workspace.slug, "category": "learned_fact", "content": "likes tea"}
    preview = upload(admin_client, [row], model=KnowledgeEntry)

    machine("b")
    response = confirm(admin_client, preview)

    assert response.status_code == 302
    assert KnowledgeEntry.objects.get().content == "likes tea"
    assert default_storage.listdir("tables")[1] == []


def test_a_backup_is_listed_verified_and_downloaded_on_another_machine(admin_client, machine):
    folder.request_backup(by=By(PERSON, timezone.now()))
    run_jobs()
    (made,) = folder.list_backups()

    machine("b")
    folder.update_state(checked={})
    folder.request_check(made.name, by=By(PERSON, timezone.now()))
    run_jobs()

    (listed,) = folder.list_backups()
    assert (listed.name, listed.fault, listed.size) == (made.name, "", made.size)
    assert listed.checked_at is not None
    assert len(content_of(admin_client.post(reverse("download-backup", args=[made.name])))) == made.size
    assert made.name in admin_client.get(reverse("backups")).content.decode()
    admin_client.post(reverse("delete-backup", args=[made.name]))
    machine("a")
    assert folder.list_backups() == []


def worker_on(host: str) -> None:
    values = {"kind": "worker", "host": host, "pid": 1, "home": f"{host}:/home", "seen_at": Now()}
    Process.objects.create(name=f"{host}:1:1", **values)


@pytest.mark.parametrize("machine", ["folder"], indirect=True)
def test_a_folder_of_another_machine_is_left_to_its_worker(admin_user, machine, tmp_path):
    missing = str(tmp_path / "agent")
    job = request_import(path=missing, user=admin_user).job
    worker_on("b")
    run_jobs()
    job.refresh_from_db()
    assert (job.status, job.attempt_count) == ("queued", 1)

    (tmp_path / "agent").mkdir()
    (tmp_path / "agent" / "kv.json").write_text('{"a": "1"}')
    Job.objects.update(not_before=timezone.now())
    run_jobs()
    job.refresh_from_db()
    assert (job.status, Workspace.objects.get().path) == ("done", missing)
    assert this_home().startswith("a:")


@pytest.mark.parametrize("machine", ["folder"], indirect=True)
def test_a_folder_that_no_machine_has_fails_after_the_last_attempt(admin_user, machine, tmp_path):
    job = request_import(path=str(tmp_path / "agent"), user=admin_user).job
    worker_on("b")
    Job.objects.update(attempt_count=len(other_machines.PAUSES))
    run_jobs()

    job.refresh_from_db()
    assert (job.status, job.error_code) == ("failed", "folder_missing")


@pytest.mark.parametrize("machine", ["folder"], indirect=True)
def test_a_folder_is_followed_by_a_machine_that_has_it(machine, tmp_path, workspace):
    workspace.path = str(tmp_path / "agent")
    watched: dict = {}
    worker_on("b")
    assert watching._update_watched(watched, [workspace], watching.Event()) == [workspace]

    (tmp_path / "agent").mkdir()
    assert watching._update_watched(watched, [workspace], watching.Event()) == []
    (tmp_path / "agent").rmdir()
    assert watching._update_watched(watched, [workspace], watching.Event()) == []  # its next sync fails
    workspace.unavailable_since = timezone.now() - timedelta(seconds=1)
    assert watching._update_watched(watched, [workspace], watching.Event()) == [workspace]
    assert watched == {}
