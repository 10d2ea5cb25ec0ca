"""What was forgotten and revoked since a backup is forgotten and revoked again after restoring it."""

from __future__ import annotations

import shutil
from dataclasses import replace

import pytest
from django.contrib.auth.models import User
from django.db import connection

from knowledge_app.models import Forgotten
from memoryhub.agents.api_tokens import issue_token
from memoryhub.agents.oauth.clients import register_client
from memoryhub.agents.oauth.connections import connect, find_code, redeem
from memoryhub.backups.revocations import read_revocations
from memoryhub.forgetting.erasure import ErasureRequest, plan_forget
from memoryhub.forgetting.forget import forget
from memoryhub.forgetting.import_filter import hash_key
from memoryhub.forgetting.matching import digest_of
from memoryhub.forgetting.reapply import reapply_receipts
from memoryhub.integrity import check_memory
from memoryhub.models import Invitation, Passkey, RecentSearch
from sessions_app.models import Entry, Session, Workspace
from sessions_app.services.audit import By
from tests.backups.databases import ON_POSTGRES, back_up, restore
from tests.hub import AGENT, NOW, PERSON, add, member, open_at, raises_code

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.skipif(
        ON_POSTGRES and not shutil.which("pg_dump"), reason="PostgreSQL's client programs are missing"
    ),
    pytest.mark.usefixtures("home"),
]
BY = By(PERSON, NOW)
TEXT = "The quicksilver key is under the mat"


@pytest.fixture
def backup(workspace, tmp_path):
    """Return a backup with a token, a link, three users and an entry."""
    team = Workspace.objects.create(slug="team", name="Team")
    issue_token(workspace, by=By(AGENT, NOW), name="agent", scopes=["read"], reads=[team])
    Invitation.objects.create(token_hash="link", created_by="olga", expires_at=NOW)
    User.objects.create_superuser("olga")
    User.objects.create_superuser("vera")
    User.objects.create_user("edda")
    return back_up(tmp_path / "out")


def change(database, *statements: str) -> None:
    with database.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)
    database.close()


def rows(database, sql: str) -> list[tuple]:
    with database.cursor() as cursor:
        cursor.execute(sql)
        found = [tuple(map(bool, row)) for row in cursor.fetchall()]
    database.close()
    return found


@pytest.mark.slow
def test_tokens_links_and_accounts_are_revoked_again(backup, elsewhere):
    restore(backup, elsewhere)
    change(
        elsewhere,
        "UPDATE memoryhub_apitoken SET revoked_at = '2026-04-02 00:00:00'",
        "UPDATE memoryhub_readgrant SET ended_at = '2026-04-02 00:00:00'",
        "UPDATE memoryhub_invitation SET revoked_at = '2026-04-02 00:00:00'",
        "UPDATE auth_user SET is_active = false WHERE username = 'edda'",
        "UPDATE auth_user SET is_superuser = false WHERE username = 'vera'",
    )

    restored = restore(backup, elsewhere, replace=True)

    assert restored.unapplied == []
    assert rows(elsewhere, "SELECT revoked_at FROM memoryhub_apitoken") == [(True,)]
    assert rows(elsewhere, "SELECT ended_at FROM memoryhub_readgrant") == [(True,)]
    assert rows(elsewhere, "SELECT revoked_at FROM memoryhub_invitation") == [(True,)]
    accounts = rows(elsewhere, "SELECT is_active, is_superuser FROM auth_user ORDER BY username")
    assert accounts == [(False, False), (True, True), (True, False)]


HASHES = "SELECT name, revoked_at FROM memoryhub_apitoken WHERE name LIKE 'Client%' ORDER BY name"


@pytest.mark.slow
def test_oauth_connections_that_were_ended_or_renewed_do_not_come_back(workspace, tmp_path, elsewhere):
    user = User.objects.create_superuser("olga")
    for name in ("Client kept", "Client revoked", "Client used", "Client used and revoked"):
        client = register_client(name, name, ["https://claude.example/"], NOW)
        code = connect(client, user, workspace, ["read"], redirect_uri="x", code_challenge="x", now=NOW)
        assert redeem(find_code(name, code, NOW), NOW)
    backup = back_up(tmp_path / "out")
    restore(backup, elsewhere)
    of = "WHERE token_id IN (SELECT id FROM memoryhub_apitoken WHERE name LIKE '%s%%')"
    change(
        elsewhere,
        "UPDATE memoryhub_oauthconnection SET refresh_hash = 'new' " + of % "Client used",
        "UPDATE memoryhub_apitoken SET token_hash = 'other' || id WHERE name LIKE 'Client used%'",
        "UPDATE memoryhub_apitoken SET revoked_at = '2026-04-02 00:00:00' WHERE name LIKE '%revoked'",
    )

    restored = restore(backup, elsewhere, replace=True)

    assert restored.unapplied == []
    found = {name: bool(revoked) for name, revoked in texts(elsewhere, HASHES).items()}
    assert found == {
        "Client kept": False,
        "Client revoked": True,
        "Client used": True,
        "Client used and revoked": True,
    }


def texts(database, sql: str) -> dict:
    with database.cursor() as cursor:
        cursor.execute(sql)
        found = dict(cursor.fetchall())
    database.close()
    return found


OLDER = (
    "INSERT INTO sessions_app_mutationguard (reason, opened_at) VALUES ('test', '2026-04-01 00:00:00')",
    "UPDATE sessions_app_auditrecord SET at = '2025-01-01 00:00:00'",
    "DELETE FROM sessions_app_mutationguard",
)
ROLES = "SELECT u.username, m.role FROM sessions_app_membership m JOIN auth_user u ON u.id = m.user_id"
PASSWORDS = "SELECT username, password FROM auth_user"


@pytest.fixture
def backup_of_members(workspace, tmp_path):
    """Return a backup in which two people are editors of a workspace, and all have old passwords."""
    session = open_at(workspace)  # writes an audit record
    for name in ("edda", "emil", "erik"):
        member(session.workspace, name, "editor")
    User.objects.create_superuser("olga")
    User.objects.update(password="old")
    return back_up(tmp_path / "out")


@pytest.mark.slow
@pytest.mark.parametrize("is_newer", [True, False])
def test_removed_roles_and_old_passwords_do_not_come_back(backup_of_members, elsewhere, is_newer):
    restore(backup_of_members, elsewhere)
    change(
        elsewhere,
        "DELETE FROM sessions_app_membership WHERE user_id = (SELECT id FROM auth_user WHERE username = 'edda')",
        "UPDATE sessions_app_membership SET role = 'viewer' WHERE user_id = "
        "(SELECT id FROM auth_user WHERE username = 'emil')",
        "UPDATE auth_user SET password = 'new' WHERE username = 'emil'",
        *(() if is_newer else OLDER),
    )

    restored = restore(backup_of_members, elsewhere, replace=True)

    assert restored.unapplied == []
    kept = {"emil": "viewer", "erik": "editor"}
    everything = {"edda": "editor", "emil": "editor", "erik": "editor"}
    assert texts(elsewhere, ROLES) == (kept if is_newer else everything)
    assert texts(elsewhere, PASSWORDS)["emil"] == ("new" if is_newer else "old")
    assert texts(elsewhere, PASSWORDS)["edda"] == "old"


@pytest.mark.slow
@pytest.mark.parametrize("is_newer", [True, False])
def test_removed_passkeys_do_not_come_back(workspace, tmp_path, elsewhere, is_newer):
    open_at(workspace)  # writes an audit record
    for name in ("kept", "removed"):
        user = User.objects.get_or_create(username="edda")[0]
        Passkey.objects.create(user=user, name=name, credential_id=name)
    User.objects.create_superuser("olga")
    other = User.objects.create_user("vera")
    Passkey.objects.create(user=other, name="of another account", credential_id="other")
    backup = back_up(tmp_path / "out")
    restore(backup, elsewhere)
    change(
        elsewhere,
        "DELETE FROM memoryhub_passkey WHERE name <> 'kept'",
        "UPDATE auth_user SET date_joined = '2026-05-01 00:00:00' WHERE username = 'vera'",
        *(() if is_newer else OLDER),
    )

    restored = restore(backup, elsewhere, replace=True)

    assert restored.unapplied == []
    found = texts(elsewhere, "SELECT name, credential_id FROM memoryhub_passkey")
    assert set(found) == {"kept", "of another account"} | (set() if is_newer else {"removed"})


@pytest.mark.slow
def test_a_database_without_passkeys_removes_none(workspace, tmp_path, elsewhere):
    user = User.objects.create_superuser("olga")
    Passkey.objects.create(user=user, name="Laptop", credential_id="x")
    backup = back_up(tmp_path / "out")
    restore(backup, elsewhere)
    change(elsewhere, "DROP TABLE memoryhub_passkey")  # as in an older hub

    restore(backup, elsewhere, replace=True)

    assert texts(elsewhere, "SELECT name, credential_id FROM memoryhub_passkey") == {"Laptop": "x"}


@pytest.mark.slow
def test_deleted_accounts_come_back_deactivated_and_others_of_the_same_name_unchanged(backup_of_members, elsewhere):
    restore(backup_of_members, elsewhere)
    change(
        elsewhere,
        "DELETE FROM sessions_app_membership",
        "DELETE FROM auth_user WHERE username = 'edda'",
        "UPDATE auth_user SET password = 'new', date_joined = '2026-05-01 00:00:00' WHERE username = 'erik'",
    )

    restore(backup_of_members, elsewhere, replace=True)

    accounts = rows(elsewhere, "SELECT is_active, is_superuser FROM auth_user ORDER BY username")
    assert accounts == [(False, False), (True, False), (False, False), (True, True)]
    assert texts(elsewhere, PASSWORDS)["erik"] == "old"


@pytest.mark.slow
def test_the_only_operator_is_not_removed_but_named(backup, elsewhere):
    restore(backup, elsewhere)
    change(elsewhere, "UPDATE auth_user SET is_active = false")

    restored = restore(backup, elsewhere, replace=True)

    assert len(restored.unapplied) == 1
    assert (True, True) in rows(elsewhere, "SELECT is_active, is_superuser FROM auth_user")


@pytest.mark.slow
def test_receipts_without_hashes_need_confirmation(backup, elsewhere):
    restore(backup, elsewhere)
    change(
        elsewhere,
        "INSERT INTO knowledge_app_forgotten (workspace_id, kind, digests, counts, workspaces, reason, "
        "forgotten_by, forgotten_at) "
        "SELECT id, 'phrase', '[]', '{}', '[]', '', 'olga', '2026-04-02' FROM sessions_app_workspace",
    )

    with raises_code("restore_unapplied", match=r"atlas, phrase"):
        restore(backup, elsewhere, replace=True)
    assert restore(backup, elsewhere, replace=True, accept_unapplied=True).revocations.receipts


@pytest.fixture
def session(workspace) -> Session:
    session = open_at(workspace)
    add(session, [{"role": "user", "content": TEXT}])
    return session


def forget_and_bring_back(session, erasure: ErasureRequest) -> list:
    """Forget something, restore what was there before, and return the receipts."""
    workspace = session.workspace
    forget(workspace, erasure, expected=plan_forget(workspace, erasure).total, reason="", by=BY)
    revocations = read_revocations(connection)
    assert revocations is not None
    Forgotten.objects.all().delete()
    session = Session.objects.filter(pk=session.pk).first() or open_at(workspace)
    add(session, [{"role": "user", "content": TEXT}])
    assert Entry.objects.filter(content__contains="quicksilver").exists()
    return revocations.receipts


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["phrase", "person"])
def test_forgotten_words_are_forgotten_again(kind, session):
    receipts = forget_and_bring_back(session, ErasureRequest(kind, ("quicksilver",)))

    assert reapply_receipts(receipts, by=BY) == []

    assert not Entry.objects.filter(content__contains="quicksilver").exists()
    assert Forgotten.objects.get().digests == receipts[0].digests
    assert [row for row in check_memory().broken if row.invariant.startswith(("append_only", "audit"))] == []


@pytest.mark.parametrize("is_kept", [True, False])
def test_words_in_rows_of_no_workspace_are_forgotten_again(session, is_kept):
    user = User.objects.create_user("edda")
    RecentSearch.objects.create(user=user, query="quicksilver")
    receipts = forget_and_bring_back(session, ErasureRequest("phrase", ("quicksilver",), everywhere=True))
    assert not RecentSearch.objects.exists()
    RecentSearch.objects.create(user=user, query="quicksilver")
    if not is_kept:
        digest = digest_of(("quicksilver",), hash_key(Workspace(pk=99)))
        receipts = [replace(one, workspace_id=99, digests=[vars(digest)]) for one in receipts]

    assert reapply_receipts(receipts, by=BY) == []

    assert not RecentSearch.objects.exists()


def test_an_erasure_in_a_workspace_alone_stays_there(session):
    user = User.objects.create_user("edda")
    RecentSearch.objects.create(user=user, query="quicksilver")
    receipts = forget_and_bring_back(session, ErasureRequest("phrase", ("quicksilver",)))

    reapply_receipts(receipts, by=BY)

    assert RecentSearch.objects.exists()


@pytest.mark.slow
def test_a_forgotten_session_is_forgotten_again(session):
    workspace, key = session.workspace, session.key
    receipts = forget_and_bring_back(session, ErasureRequest("session", session=session))
    assert Session.objects.filter(workspace=workspace, key=key).exists()

    reapply_receipts(receipts, by=BY)

    assert not Session.objects.filter(workspace=workspace, key=key).exists()


def test_receipts_of_renamed_workspaces_are_reported(session):
    receipts = forget_and_bring_back(session, ErasureRequest("phrase", ("quicksilver",)))
    type(session.workspace).objects.update(slug="other")

    (unapplied,) = reapply_receipts(receipts, by=BY)

    assert "of atlas: phrase" in unapplied
