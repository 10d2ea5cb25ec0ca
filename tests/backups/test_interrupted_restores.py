"""A restore that is killed loses nothing that was revoked or forgotten, and the hub waits for the next one."""

from __future__ import annotations

import shutil

import pytest
from django.contrib.auth.models import User
from django.core.management import CommandError
from django.db import connection
from django.utils import timezone

from knowledge_app.models import Forgotten
from memoryhub.agents.api_tokens import issue_token
from memoryhub.backups.errors import RestoreUnderWay
from memoryhub.backups.in_use_lock import unfinished_file, using_database
from memoryhub.backups.kept_revocations import read_kept
from memoryhub.forgetting.erasure import ErasureRequest, plan_forget
from memoryhub.forgetting.forget import forget
from memoryhub.integrity import check_memory
from memoryhub.lib.errors import Refused
from memoryhub.management.restore_guard import in_use
from memoryhub.models import ApiToken
from sessions_app.models import Entry, Workspace
from sessions_app.services.workspaces import create_workspace
from tests.backups.databases import ON_POSTGRES, back_up
from tests.hub import add, by, open_at
from tests.other_hub import manage

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.skipif(
        ON_POSTGRES and not shutil.which("pg_dump"), reason="PostgreSQL's client programs are missing"
    ),
    pytest.mark.usefixtures("home"),
]
KILLED_AT = (
    "memoryhub.backups.restore._delete_sessions",  # the backup is in place
    "memoryhub.backups.restore.stop_writing",
    "memoryhub.management.commands.restore.reapply_receipts",
    "memoryhub.management.commands.restore.vacuum",
)


def forget_phrase(workspace: Workspace) -> None:
    erasure = ErasureRequest("phrase", ("quicksilver",))
    forget(workspace, erasure, expected=plan_forget(workspace, erasure).total, reason="", by=by())


@pytest.fixture
def backup(workspace, tmp_path):
    """Return a backup with a token and an entry."""
    User.objects.create_superuser("olga")
    add(open_at(workspace), [{"role": "user", "content": "The quicksilver key is under the mat"}])
    issue_token(workspace, by=by(), name="bot", scopes=["read"])
    return back_up(tmp_path / "out", timezone.now())


@pytest.fixture
def revoked(backup, hub):
    """Restore the backup into another hub, revoke its token and forget the entry's words there."""
    hub.restore(backup)
    with hub.use():
        ApiToken.objects.update(revoked_at=timezone.now())
        forget_phrase(ApiToken.objects.get().workspace)
        later = create_workspace("Later", by=by())
        issue_token(later, by=by(), name="later", scopes=["read"])
        ApiToken.objects.filter(name="later").update(revoked_at=timezone.now())


def kill(place: str, hub, backup) -> None:
    def stop(*_arguments, **_options):
        raise KeyboardInterrupt

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(place, stop)
        with pytest.raises(SystemExit):
            hub.restore(backup)


def check_restored(hub) -> None:
    with hub.use():
        assert not Entry.objects.filter(content__contains="quicksilver").exists()
        assert ApiToken.objects.get().revoked_at is not None
        assert Forgotten.objects.count() == 1
        assert check_memory().broken == []
        with using_database(connection):
            pass


@pytest.mark.slow
@pytest.mark.postgres
@pytest.mark.usefixtures("revoked")
@pytest.mark.parametrize("place", KILLED_AT)
def test_the_next_restore_applies_what_was_revoked_before_the_killed_one(place, backup, hub):
    kill(place, hub, backup)

    with hub.use():
        with pytest.raises(RestoreUnderWay, match="Run `restore` again"), using_database(connection):
            pass
        with pytest.raises(CommandError, match="interrupted"), in_use(connection):
            pass
    hub.restore(backup)

    check_restored(hub)


@pytest.mark.slow
@pytest.mark.postgres
@pytest.mark.usefixtures("revoked")
def test_two_killed_restores_lose_nothing(backup, hub):
    kill(KILLED_AT[0], hub, backup)
    kill(KILLED_AT[2], hub, backup)

    hub.restore(backup)

    check_restored(hub)
    tokens = {name for one in read_kept(hub.kept) for name in one.revocations.tokens}
    assert len(tokens) == 2  # also the one that the backup lacks, for a later restore


@pytest.mark.slow
@pytest.mark.usefixtures("revoked")
def test_a_refused_backup_lets_the_hub_start(backup, hub, monkeypatch):
    monkeypatch.setattr("memoryhub.backups.restore._compare", refuse)

    with pytest.raises(SystemExit):
        hub.restore(backup)

    with hub.use():
        assert not unfinished_file(connection).exists()
        if not ON_POSTGRES:
            assert Workspace.objects.filter(slug="later").exists()


def refuse(_contents, _manifest, roll_back) -> None:
    roll_back()
    raise Refused("The restored rows don't match the backup.", code="restore_refused")


@pytest.mark.slow
@pytest.mark.usefixtures("revoked")
def test_mcp_over_standard_input_waits_for_the_restore(backup, hub, settings):
    kill(KILLED_AT[0], hub, backup)
    settings.MEMORYHUB_TOKEN = "mh_any"

    with pytest.raises(CommandError, match="interrupted"):
        manage(hub.home, hub.name, "mcp_server")
