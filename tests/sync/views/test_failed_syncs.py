"""A sync that fails unexpectedly says so, on every surface, and is tried again later."""

import time
from collections.abc import Callable
from threading import Event

import pytest
from django.core.management import call_command
from django.db import IntegrityError, OperationalError
from django.test import Client
from django.utils import timezone

from memoryhub.lib.errors import MemoryHubError
from memoryhub.sync import source_folders, syncing, watching
from memoryhub.sync.source_folders import add_folder, sync_folder
from memoryhub.sync.watching import POLL_SECONDS, FollowedWorkspace
from sessions_app.models import Membership, SourceFolder, SyncState, Workspace
from sessions_app.services.audit import By
from tests.hub import PERSON, client_of, member, raises_code
from tests.sync.followed_folders import ACTOR, followed, sync

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("_no_waiting")]
WORDS = "Unexpected error: IntegrityError. See the hub's log."


@pytest.fixture
def status(capsys) -> Callable[[], str]:
    def shown() -> str:
        capsys.readouterr()
        call_command("sync", "atlas", "--status")
        return capsys.readouterr().out

    return shown


@pytest.fixture
def operator(atlas) -> Client:
    return client_of(member(atlas, "olga", Membership.Role.OPERATOR))


@pytest.fixture
def broken(monkeypatch):
    def fail(*_args: object, **_values: object) -> None:
        raise IntegrityError("UNIQUE constraint failed: held_change_once")

    def make(workspace: Workspace) -> None:
        real = syncing.import_files

        def import_files(folder, result, *args, **values):
            return fail() if result.workspace == workspace else real(folder, result, *args, **values)

        monkeypatch.setattr(syncing, "import_files", import_files)
        monkeypatch.setattr(source_folders, "import_files", import_files)

    return make


def test_an_unexpected_error_is_stored_logged_and_shown(atlas, broken, caplog, command, status, operator):
    broken(atlas)

    with raises_code("unexpected"):
        sync(atlas)

    state = SyncState.objects.get()
    assert (state.error_code, state.error) == ("unexpected", WORDS)
    assert state.failed_at is not None
    (logged,) = [one for one in caplog.records if one.levelname == "ERROR"]
    assert logged.exc_info[0] is IntegrityError
    assert f"last sync failed: {WORDS}" in status()
    assert command("sync", "atlas", "--status")["last_error"] == {"code": "unexpected", "message": WORDS}
    assert "Unexpected error: IntegrityError" in operator.get("/w/atlas/sync/").content.decode()


def test_the_next_sync_that_succeeds_forgets_the_error(atlas, monkeypatch, status):
    with monkeypatch.context() as patch:
        patch.setattr(syncing, "detect", lambda *_: 1 / 0)
        with raises_code("unexpected"):
            sync(atlas)

    sync(atlas)

    assert SyncState.objects.get().error_code == ""
    assert "failed" not in status()


def test_a_database_that_is_away_is_no_failure_of_the_sync(atlas, monkeypatch):
    def away(*_args: object, **_values: object) -> None:
        raise OperationalError("database is locked")

    monkeypatch.setattr(syncing, "import_files", away)

    with pytest.raises(OperationalError):
        sync(atlas)

    assert not SyncState.objects.exclude(error_code="").exists()


def test_a_further_folder_says_so_too_and_the_others_are_synced(atlas, broken, tmp_path, status):
    (tmp_path / "more" / "memory").mkdir(parents=True)
    (tmp_path / "more" / "memory" / "MEMORY.md").write_text("- more\n")
    add_folder(atlas, tmp_path / "more", layout="nanobot", label="more", by=By(PERSON, timezone.now()))
    broken(atlas)

    with raises_code("unexpected"):
        sync_folder(SourceFolder.objects.get(), by=By(ACTOR, timezone.now()))

    folder = SourceFolder.objects.get()
    assert (folder.error_code, folder.error) == ("unexpected", WORDS)
    assert WORDS in status()


def test_the_command_goes_on_with_other_workspaces(atlas, broken, tmp_path, command):
    (tmp_path / "other" / "memory").mkdir(parents=True)
    (tmp_path / "other" / "memory" / "MEMORY.md").write_text("- other\n")
    other = followed(tmp_path / "other")
    broken(atlas)

    found = command("sync", status=1)["workspaces"]

    assert [one["workspace"] for one in found] == [atlas.slug, other.slug]
    assert [one.get("error") for one in found] == [{"code": "unexpected", "message": WORDS}, None]


@pytest.mark.django_db(transaction=True)
def test_the_worker_waits_before_it_tries_again_whatever_the_agent_writes(atlas, broken):
    broken(atlas)
    one = FollowedWorkspace(atlas, due_at=watching.NEVER)
    outcomes: list[object] = []

    watching._sync_one(one, ACTOR, lambda _, outcome: outcomes.append(outcome), Event())
    watching._schedule_sync(one, Event())

    assert [type(outcome) for outcome in outcomes] == [MemoryHubError]
    assert one.due_at - time.monotonic() > POLL_SECONDS - 5


@pytest.mark.django_db(transaction=True)
def test_the_worker_logs_once_why_a_folder_cannot_be_synced(atlas, folder, caplog):
    folder.rename(folder.with_name("gone"))
    one = FollowedWorkspace(atlas)

    for _ in range(2):
        watching._sync_one(one, ACTOR, lambda *_: None, Event())

    assert len([record for record in caplog.records if "sync of" in record.message]) == 1
