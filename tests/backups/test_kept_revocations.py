"""Restoring a backup that is too old, and then the right one, loses nothing that was revoked or forgotten."""

from __future__ import annotations

import json
import shutil

import pytest
from django.contrib.auth.models import User
from django.utils import timezone

from memoryhub.accounts.people import RoleChange, change_roles, deactivate
from memoryhub.accounts.sign_ins import change_password
from memoryhub.agents.api_tokens import issue_token
from memoryhub.backups.errors import BackupFailed
from memoryhub.backups.kept_revocations import read_kept
from memoryhub.forgetting.erasure import ErasureRequest, plan_forget
from memoryhub.forgetting.forget import forget
from memoryhub.models import ApiToken
from sessions_app.models import Entry, Membership
from sessions_app.services.workspaces import create_workspace
from tests.backups.databases import ON_POSTGRES, back_up, restore
from tests.hub import add, by, open_at, raises_code
from tests.other_hub import manage

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.skipif(
        ON_POSTGRES and not shutil.which("pg_dump"), reason="PostgreSQL's client programs are missing"
    ),
    pytest.mark.usefixtures("home"),
]


@pytest.fixture
def backups(workspace, tmp_path):
    """Return two backups: one of a workspace and some people, and one with another workspace and what is in it."""
    User.objects.create_superuser("olga")
    edda = User.objects.create_user("edda", password="of the first backup")
    Membership.objects.create(workspace=workspace, user=edda, role="editor")
    create_workspace("First", by=by())
    first = back_up(tmp_path / "out", timezone.now())
    other = create_workspace("Beta", by=by())
    add(open_at(other), [{"role": "user", "content": "The quicksilver key is under the mat"}])
    issue_token(other, by=by(), name="bot", scopes=["read"])
    Membership.objects.create(workspace=other, user=edda, role="editor")
    User.objects.create_user("frank", password="frank's")
    change_password(edda, "of the second backup", keep=None, by=by())
    return first, back_up(tmp_path / "out", timezone.now())


def revoke_everything() -> None:
    """Forget a phrase, revoke the token, remove the role and deactivate the account of the second backup."""
    edda, frank = User.objects.get(username="edda"), User.objects.get(username="frank")
    token = ApiToken.objects.get()
    erasure = ErasureRequest("phrase", ("quicksilver",))
    expected = plan_forget(token.workspace, erasure).total
    forget(token.workspace, erasure, expected=expected, reason="", by=by())
    ApiToken.objects.update(revoked_at=timezone.now())
    change_roles([RoleChange(edda.pk, token.workspace_id, "editor", "")], by=by())
    deactivate(frank, by=by())


def check_revoked() -> None:
    assert not Entry.objects.filter(content__contains="quicksilver").exists()
    assert ApiToken.objects.get().revoked_at is not None
    assert not Membership.objects.filter(user__username="edda", workspace__slug="beta").exists()
    assert not User.objects.get(username="frank").is_active


@pytest.mark.slow
@pytest.mark.postgres
@pytest.mark.parametrize("times", [1, 2])
def test_the_right_backup_after_older_ones_is_revoked_again(times, backups, hub):
    first, second = backups
    hub.restore(second)
    with hub.use():
        revoke_everything()

    for _ in range(times):
        output = hub.restore(first)
        assert "re-applied" not in output
        for words in ("of beta: phrase", "1 revoked token", "the deactivated account frank"):
            assert words in output.partition("Kept for the next restore")[2]
    output = hub.restore(second)

    assert "1 receipts re-applied" in output
    assert "Kept" not in output
    with hub.use():
        check_revoked()
        assert User.objects.get(username="edda").check_password("of the second backup")
        assert Membership.objects.filter(user__username="edda").count() == 1


@pytest.mark.slow
def test_what_the_older_backup_lacks_is_not_taken_as_deleted(backups, hub):
    first, second = backups
    hub.restore(second)
    hub.restore(first)

    output = hub.restore(second)

    assert "Not re-applied" not in output
    with hub.use():
        assert User.objects.get(username="frank").is_active
        assert Membership.objects.filter(user__username="edda").count() == 2
        assert User.objects.get(username="edda").check_password("of the second backup")


@pytest.mark.slow
def test_changes_after_the_older_backup_was_restored_are_named(backups, hub):
    first, second = backups
    hub.restore(second)
    hub.restore(first)
    with hub.use():
        change_password(User.objects.get(username="edda"), "of the restored hub", keep=None, by=by())

    assert "Not re-applied: changes of roles, passwords" in hub.restore(second)


@pytest.mark.slow
def test_a_backup_made_later_needs_nothing_of_what_was_kept(backups, hub, tmp_path):
    first, second = backups
    hub.restore(second)
    with hub.use():
        User.objects.filter(username="edda").update(is_active=False)
        revoke_everything()
    hub.restore(first)
    with hub.use():
        User.objects.filter(username="edda").update(is_active=True)
        create_workspace("Gamma", by=by())
    made = manage(hub.home, hub.name, "backup", str(tmp_path / "later"), "--json")

    manage(hub.home, hub.name, "restore", json.loads(made)["file"], "--yes")

    with hub.use():
        assert User.objects.get(username="edda").is_active


@pytest.mark.slow
def test_only_the_owner_reads_what_is_kept_and_a_damaged_file_is_not_ignored(backups, hub):
    first, second = backups
    hub.restore(second)
    hub.restore(first)
    assert hub.kept.stat().st_mode & 0o777 == 0o600
    assert [one.revocations.permissions is None for one in read_kept(hub.kept)] == [False]
    hub.kept.write_text("[]")

    with raises_code("restore_unapplied", match="can't be read"):
        restore(second, hub.database, replace=True)
    restore(second, hub.database, replace=True, accept_unapplied=True)


@pytest.mark.slow
def test_a_full_disk_is_named(backups, hub, monkeypatch):
    def fail(*_args):
        raise OSError("No space left on device")

    first, second = backups
    hub.restore(second)
    monkeypatch.setattr("memoryhub.backups.restore.write_kept", fail)

    assert "Not re-applied: nothing could be kept for later restores: No space left" in hub.restore(first)


@pytest.mark.slow
@pytest.mark.postgres
def test_a_failed_restore_keeps_nothing(backups, hub, monkeypatch):
    def fail(*_args):
        raise BackupFailed("out of memory")

    first, second = backups
    hub.restore(second)
    before = hub.kept.exists()
    name = "postgres.replace_database" if ON_POSTGRES else "sqlite.replace_database"
    monkeypatch.setattr(f"memoryhub.backups.{name}", fail)

    with pytest.raises(SystemExit):
        hub.restore(first)

    assert hub.kept.exists() == before
