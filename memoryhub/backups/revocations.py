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
from django.utils.translation import gettext

TABLES = {
    "knowledge_app_forgotten",
    "sessions_app_workspace",
    "memoryhub_apitoken",
    "memoryhub_invitation",
    "auth_user",
}
_RECEIPTS = """
    SELECT f.id, f.workspace_id, w.slug, f.kind, f.digests, f.counts, f.reason, f.forgotten_by, f.forgotten_at
    FROM knowledge_app_forgotten f JOIN sessions_app_workspace w ON w.id = f.workspace_id
    WHERE f.lifted_at IS NULL ORDER BY f.id
"""


@dataclass(frozen=True)
class Receipt:
    """A receipt of forgetting that wasn't lifted."""

    id: int
    workspace_id: int
    workspace: str  # its slug
    kind: str
    digests: list[dict[str, Any]]
    counts: dict[str, int]
    reason: str
    forgotten_by: str
    forgotten_at: datetime


@dataclass(frozen=True)
class Revocations:
    """Rows as the database returns them: hash and times of tokens and of links, and names of users."""

    receipts: list[Receipt] = field(default_factory=list)
    tokens: list[tuple[Any, ...]] = field(default_factory=list)
    invitations: list[tuple[Any, ...]] = field(default_factory=list)
    inactive: list[str] = field(default_factory=list)
    no_operators: list[str] = field(default_factory=list)


def read_revocations(database: BaseDatabaseWrapper) -> Revocations | None:
    """Return what was forgotten and revoked; None if the database can't be read."""
    try:
        with database.cursor() as cursor:
            if not set(database.introspection.table_names(cursor)) >= TABLES:
                return Revocations()

            def rows(sql: str) -> list[tuple[Any, ...]]:
                cursor.execute(sql)
                return [tuple(row) for row in cursor.fetchall()]

            return Revocations(
                [_receipt(row) for row in rows(_RECEIPTS)],
                rows("SELECT revoked_at, token_hash FROM memoryhub_apitoken WHERE revoked_at IS NOT NULL"),
                rows(
                    "SELECT used_at, revoked_at, token_hash FROM memoryhub_invitation "
                    "WHERE used_at IS NOT NULL OR revoked_at IS NOT NULL"
                ),
                [name for (name,) in rows("SELECT username FROM auth_user WHERE NOT is_active")],
                [name for (name,) in rows("SELECT username FROM auth_user WHERE NOT is_superuser")],
            )
    except (DatabaseError, ValueError):
        return None
    finally:
        database.close()


def _receipt(row: tuple[Any, ...]) -> Receipt:
    pk, workspace_id, slug, kind, digests, counts, reason, forgotten_by, at = row
    forgotten_at = at if at.tzinfo else at.replace(tzinfo=UTC)  # naive on SQLite
    return Receipt(
        pk, workspace_id, slug, kind, json.loads(digests), json.loads(counts), reason, forgotten_by, forgotten_at
    )


def apply_revocations(database: BaseDatabaseWrapper, revocations: Revocations) -> list[str]:
    """Revoke tokens and links, and deactivate and demote accounts; return what couldn't be applied."""
    try:
        with database.cursor() as cursor:
            if not set(database.introspection.table_names(cursor)) >= TABLES:
                return []
            return _apply(cursor, revocations)
    except DatabaseError as error:
        first_line = str(error).strip().partition("\n")[0]
        return [gettext("revoked tokens and accounts: %(error)s") % {"error": first_line}]
    finally:
        database.close()


def _apply(cursor: Any, revocations: Revocations) -> list[str]:
    revoke = "UPDATE memoryhub_apitoken SET revoked_at = %s WHERE token_hash = %s AND revoked_at IS NULL"
    end_link = "UPDATE memoryhub_invitation SET used_at = %s, revoked_at = %s WHERE token_hash = %s"
    for row in revocations.tokens:
        cursor.execute(revoke, row)
    for row in revocations.invitations:
        cursor.execute(end_link, row)
    changes = [("is_active = false", name) for name in revocations.inactive]
    changes += [("is_superuser = false, is_staff = false", name) for name in revocations.no_operators]
    only_operators = [name for change, name in changes if not _restrict(cursor, change, name)]
    message = gettext("%(name)s stays an active hub operator, because the backup has no other one")
    return [message % {"name": name} for name in dict.fromkeys(only_operators)]


def _restrict(cursor: Any, change: str, username: str) -> bool:
    """Change an account, unless it is the only hub operator; return whether that was possible."""
    cursor.execute("SELECT count(*) FROM auth_user WHERE is_superuser AND is_active AND username <> %s", [username])
    others = cursor.fetchone()[0]
    cursor.execute("SELECT count(*) FROM auth_user WHERE is_superuser AND is_active AND username = %s", [username])
    if cursor.fetchone()[0] and not others:
        return False
    cursor.execute(f"UPDATE auth_user SET {change} WHERE username = %s", [username])  # noqa: S608  our own columns
    return True
