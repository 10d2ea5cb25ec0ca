"""What was forgotten and revoked in the database that a restore replaces, to be re-applied to the restored one.

Plain SQL, because either database may lack migrations.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from django.db import DatabaseError
from django.db.backends.base.base import BaseDatabaseWrapper
from django.utils.translation import gettext, ngettext

from memoryhub.backups.ended_methods import Again, Methods, end_methods, read_methods

TABLES = {
    "knowledge_app_forgotten",
    "sessions_app_workspace",
    "memoryhub_apitoken",
    "memoryhub_invitation",
    "auth_user",
    "sessions_app_membership",
    "sessions_app_auditrecord",
}
READ_GRANTS = "memoryhub_readgrant"  # a table that older hubs lack
RANKS = {"viewer": 1, "editor": 2, "operator": 3}
_RECEIPTS = """
    SELECT f.*, w.slug FROM knowledge_app_forgotten f LEFT JOIN sessions_app_workspace w ON w.id = f.workspace_id
    WHERE f.lifted_at IS NULL ORDER BY f.id
"""
_ACCOUNTS = "SELECT username, date_joined, id, password FROM auth_user"
_WORKSPACES = "SELECT id, created_at FROM sessions_app_workspace"
_ROLES = """
    SELECT u.username, u.date_joined, w.id, w.created_at, m.role, m.id
    FROM sessions_app_membership m
    JOIN auth_user u ON u.id = m.user_id
    JOIN sessions_app_workspace w ON w.id = m.workspace_id
"""
_READ_GRANTS = """
    SELECT g.ended_at, t.token_hash, g.workspace_id FROM memoryhub_readgrant g
    JOIN memoryhub_apitoken t ON t.id = g.token_id WHERE g.ended_at IS NOT NULL
"""
_END_READ_GRANT = """
    UPDATE memoryhub_readgrant SET ended_at = %s WHERE ended_at IS NULL
    AND token_id IN (SELECT id FROM memoryhub_apitoken WHERE token_hash = %s) AND workspace_id = %s
"""
CONNECTIONS = "memoryhub_oauthconnection"  # a table that older hubs lack
# Tokens of connections change their hash, so a connection is found by its key. One whose refresh token was used
# since the backup is revoked: the present token isn't in the backup, and the earlier one must stay used.
_CONNECTIONS = """
    SELECT c.refresh_hash, t.revoked_at, c.refresh_key FROM memoryhub_oauthconnection c
    JOIN memoryhub_apitoken t ON t.id = c.token_id
"""
_REVOKE_CONNECTION = """
    UPDATE memoryhub_apitoken SET revoked_at = %s WHERE revoked_at IS NULL
    AND id IN (SELECT token_id FROM memoryhub_oauthconnection WHERE refresh_key = %s AND (refresh_hash <> %s OR %s))
"""
PASSKEYS = "memoryhub_passkey"  # a table that older hubs lack
_PASSKEYS = """
    SELECT u.username, u.date_joined, p.credential_id, p.id FROM memoryhub_passkey p
    JOIN auth_user u ON u.id = p.user_id
"""
_NEWEST_RECORD = "SELECT max(at) FROM sessions_app_auditrecord"
_OF_ACCOUNTS = """
    WHERE object_kind IN ('user', 'webhook')
    OR action IN ('hub.configured', 'workspace.configured', 'workspace.folder_removed', 'workspace.folder_unfollowed')
"""


@dataclass(frozen=True)
class Receipt:
    """A receipt of forgetting that wasn't lifted; of the whole hub if it has no workspace."""

    id: int
    workspace_id: int | None
    workspace: str  # its slug
    kind: str
    digests: list[dict[str, Any]]
    counts: dict[str, int]
    reason: str
    forgotten_by: str
    forgotten_at: datetime
    workspaces: list[dict[str, Any]] = field(default_factory=list)

    @property
    def is_of_hub(self) -> bool:
        """Whether rows of no workspace were searched, too."""
        return any(place["workspace"] is None for place in self.workspaces)


@dataclass(frozen=True)
class Revocations:
    """Rows as the database returns them: hash and times of tokens, their grants and links, and names of users."""

    receipts: list[Receipt] = field(default_factory=list)
    tokens: list[tuple[Any, ...]] = field(default_factory=list)
    read_grants: list[tuple[Any, ...]] = field(default_factory=list)
    connections: list[tuple[Any, ...]] = field(default_factory=list)
    invitations: list[tuple[Any, ...]] = field(default_factory=list)
    inactive: list[str] = field(default_factory=list)
    no_operators: list[str] = field(default_factory=list)
    permissions: Permissions | None = None


@dataclass(frozen=True)
class Permissions:
    """Passwords, roles and passkeys, and the time of the newest audit record.

    An account is identified by name and creation time, a workspace by id and creation time: another hub may use the
    same names. ``roles``: by account and workspace. ``passkeys``: account and credential id; None without the table.
    ``accounts_changed``: the time of the newest audit record about accounts, roles and settings. ``methods``: other
    ways to sign in, webhooks, folders and settings.
    """

    newest_record: Any
    passwords: dict[tuple[Any, ...], str]
    workspaces: frozenset[tuple[Any, ...]]
    roles: dict[tuple[Any, ...], str]
    passkeys: frozenset[tuple[Any, ...]] | None
    accounts_changed: Any = None
    methods: Methods = field(default_factory=dict)


def read_revocations(database: BaseDatabaseWrapper) -> Revocations | None:
    """Return what was forgotten and revoked; None if the database can't be read."""
    try:
        with database.cursor() as cursor:
            tables = set(database.introspection.table_names(cursor))
            if not tables >= TABLES:
                return Revocations()

            def rows(sql: str) -> list[tuple[Any, ...]]:
                cursor.execute(sql)
                return [tuple(row) for row in cursor.fetchall()]

            return Revocations(
                _receipts(cursor),
                rows("SELECT revoked_at, token_hash FROM memoryhub_apitoken WHERE revoked_at IS NOT NULL"),
                rows(_READ_GRANTS) if READ_GRANTS in tables else [],
                rows(_CONNECTIONS) if CONNECTIONS in tables else [],
                rows(
                    "SELECT used_at, revoked_at, token_hash FROM memoryhub_invitation "
                    "WHERE used_at IS NOT NULL OR revoked_at IS NOT NULL"
                ),
                [name for (name,) in rows("SELECT username FROM auth_user WHERE NOT is_active")],
                [name for (name,) in rows("SELECT username FROM auth_user WHERE NOT is_superuser")],
                _permissions(database, cursor, has_passkeys=PASSKEYS in tables),
            )
    except (DatabaseError, ValueError):
        return None
    finally:
        database.close()


def _permissions(database: BaseDatabaseWrapper, cursor: Any, *, has_passkeys: bool) -> Permissions:
    cursor.execute(_NEWEST_RECORD)
    newest = cursor.fetchone()[0]
    cursor.execute(_ACCOUNTS)
    passwords = {(name, joined): password for name, joined, _id, password in cursor.fetchall()}
    cursor.execute(_WORKSPACES)
    workspaces = frozenset(tuple(row) for row in cursor.fetchall())
    cursor.execute(_ROLES)
    roles = {tuple(row[:4]): row[4] for row in cursor.fetchall()}
    passkeys = None
    if has_passkeys:
        cursor.execute(_PASSKEYS)
        passkeys = frozenset(tuple(row[:3]) for row in cursor.fetchall())
    cursor.execute(_NEWEST_RECORD + _OF_ACCOUNTS)
    changed = cursor.fetchone()[0]
    return Permissions(newest, passwords, workspaces, roles, passkeys, changed, read_methods(database, cursor))


def _receipts(cursor: Any) -> list[Receipt]:
    cursor.execute(_RECEIPTS)
    columns = [column[0] for column in cursor.description]
    return [_receipt(dict(zip(columns, row, strict=True))) for row in cursor.fetchall()]


def _receipt(row: dict[str, Any]) -> Receipt:
    at = row["forgotten_at"]
    return Receipt(
        row["id"],
        row["workspace_id"],
        row["slug"] or "the whole hub",
        row["kind"],
        json.loads(row["digests"]),
        json.loads(row["counts"]),
        row["reason"],
        row["forgotten_by"],
        at if at.tzinfo else at.replace(tzinfo=UTC),  # naive on SQLite
        json.loads(row.get("workspaces") or "[]"),  # a column that older hubs lack
    )


def apply_revocations(database: BaseDatabaseWrapper, revocations: Revocations) -> Again:
    """Revoke tokens, links, roles and ways to sign in, deactivate and demote accounts, and keep changed passwords."""
    try:
        with database.cursor() as cursor:
            tables = set(database.introspection.table_names(cursor))
            if not tables >= TABLES:
                return Again()
            if READ_GRANTS in tables:
                cursor.executemany(_END_READ_GRANT, revocations.read_grants)
            if CONNECTIONS in tables:
                _revoke_connections(cursor, revocations.connections)
            return _apply(database, cursor, revocations, has_passkeys=PASSKEYS in tables)
    except DatabaseError as error:
        first_line = str(error).strip().partition("\n")[0]
        return Again(unapplied=[gettext("revoked tokens and accounts: %(error)s") % {"error": first_line}])
    finally:
        database.close()


def newest_record(database: BaseDatabaseWrapper) -> Any:
    """Return the time of the newest audit record, as the database returns it; None without any."""
    try:
        with database.cursor() as cursor:
            if not set(database.introspection.table_names(cursor)) >= TABLES:
                return None
            cursor.execute(_NEWEST_RECORD)
            return cursor.fetchone()[0]
    except DatabaseError:
        return None
    finally:
        database.close()


def what_is_lacking(database: BaseDatabaseWrapper, revocations: Revocations) -> list[str]:
    """Return in words what was revoked, but isn't in the database."""
    try:
        with database.cursor() as cursor:
            if not set(database.introspection.table_names(cursor)) >= TABLES:
                return []

            def column(sql: str) -> set[Any]:
                cursor.execute(sql)
                return {row[0] for row in cursor.fetchall()}

            names = column("SELECT username FROM auth_user")
            workspaces = column("SELECT id FROM sessions_app_workspace")
            tokens = {row[-1] for row in revocations.tokens} - column("SELECT token_hash FROM memoryhub_apitoken")
            links = {row[-1] for row in revocations.invitations}
            links -= column("SELECT token_hash FROM memoryhub_invitation")
    except DatabaseError:
        return []
    finally:
        database.close()
    accounts = [name for name in revocations.inactive if name not in names]
    lost = [one for one in revocations.receipts if one.workspace_id and one.workspace_id not in workspaces]
    words = [ngettext("%(count)d revoked token", "%(count)d revoked tokens", len(tokens)) % {"count": len(tokens)}]
    words += [ngettext("%(count)d ended link", "%(count)d ended links", len(links)) % {"count": len(links)}]
    named = [f"receipt {one.id} of {one.workspace}: {one.kind}" for one in lost]
    named += [gettext("the deactivated account %(name)s") % {"name": name} for name in accounts]
    return [text for text, ended in zip(words, (tokens, links), strict=True) if ended] + named


def _revoke_connections(cursor: Any, connections: list[tuple[Any, ...]]) -> None:
    now = datetime.now(UTC).isoformat(sep=" ")
    for refresh_hash, revoked_at, key in connections:
        cursor.execute(_REVOKE_CONNECTION, [revoked_at or now, key, refresh_hash, revoked_at is not None])


def _apply(database: BaseDatabaseWrapper, cursor: Any, revocations: Revocations, *, has_passkeys: bool) -> Again:
    revoke = "UPDATE memoryhub_apitoken SET revoked_at = %s WHERE token_hash = %s AND revoked_at IS NULL"
    end_link = "UPDATE memoryhub_invitation SET used_at = %s, revoked_at = %s WHERE token_hash = %s"
    for row in revocations.tokens:
        cursor.execute(revoke, row)
    for row in revocations.invitations:
        cursor.execute(end_link, row)
    deleted, again = [], Again()
    if (present := revocations.permissions) and not _is_newer(cursor, present):
        if has_passkeys and present.passkeys is not None:
            _remove_passkeys(cursor, present, present.passkeys)
        deleted = _apply_permissions(cursor, present)
        again = end_methods(database, cursor, present.methods, present.passwords, present.workspaces)
    changes = [("is_active = false", name) for name in (*revocations.inactive, *deleted)]
    changes += [("is_superuser = false, is_staff = false", name) for name in revocations.no_operators]
    only_operators = [name for change, name in changes if not _restrict(cursor, change, name)]
    message = gettext("%(name)s stays an active hub operator, because the backup has no other one")
    again.unapplied += [message % {"name": name} for name in dict.fromkeys(only_operators)]
    return again


def _is_newer(cursor: Any, present: Permissions) -> bool:
    """Return whether the backup is newer than the database that it replaced."""
    cursor.execute(_NEWEST_RECORD)
    newest = cursor.fetchone()[0]
    return newest is not None and (present.newest_record is None or present.newest_record < newest)


def _remove_passkeys(cursor: Any, present: Permissions, kept: frozenset[tuple[Any, ...]]) -> None:
    cursor.execute(_PASSKEYS)
    for *key, pk in cursor.fetchall():
        if tuple(key[:2]) in present.passwords and tuple(key) not in kept:
            cursor.execute("DELETE FROM memoryhub_passkey WHERE id = %s", [pk])


def _apply_permissions(cursor: Any, present: Permissions) -> list[str]:
    """Keep present passwords, and remove or lower roles; return the names of accounts that were deleted.

    Roles are never raised.
    """
    cursor.execute(_ACCOUNTS)
    accounts = cursor.fetchall()
    for name, joined, pk, password in accounts:
        kept = present.passwords.get((name, joined), password)
        if kept != password:
            cursor.execute("UPDATE auth_user SET password = %s WHERE id = %s", [kept, pk])
    cursor.execute(_ROLES)
    for *key, role, pk in cursor.fetchall():
        account, workspace = tuple(key[:2]), tuple(key[2:])
        if account not in present.passwords or workspace not in present.workspaces:
            continue
        kept = present.roles.get(tuple(key), "")
        if not kept:
            cursor.execute("DELETE FROM sessions_app_membership WHERE id = %s", [pk])
        elif RANKS.get(kept, 0) < RANKS.get(role, 0):
            cursor.execute("UPDATE sessions_app_membership SET role = %s WHERE id = %s", [kept, pk])
    is_same_hub = any((name, joined) in present.passwords for name, joined, *_ in accounts)
    return [name for name, joined, *_ in accounts if is_same_hub and (name, joined) not in present.passwords]


def _restrict(cursor: Any, change: str, username: str) -> bool:
    """Change an account, unless it is the only hub operator; return whether that was possible."""
    cursor.execute("SELECT count(*) FROM auth_user WHERE is_superuser AND is_active AND username <> %s", [username])
    others = cursor.fetchone()[0]
    cursor.execute("SELECT count(*) FROM auth_user WHERE is_superuser AND is_active AND username = %s", [username])
    if cursor.fetchone()[0] and not others:
        return False
    cursor.execute(f"UPDATE auth_user SET {change} WHERE username = %s", [username])  # noqa: S608  our own columns
    return True
