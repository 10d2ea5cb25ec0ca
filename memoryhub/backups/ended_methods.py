"""Ways to sign in, webhooks, folders and settings of the database that a restore replaces: second factors, recovery
codes and sign-ins with a provider. What ended since the backup ends again, of two states of a setting the stricter
one counts, and texts are sent to the models of the present.

Rows begin with the keys of what they belong to: name and creation time of an account, id and creation time of a
workspace or a folder. Plain SQL, because either database may lack migrations.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlsplit

from django.db.backends.base.base import BaseDatabaseWrapper
from django.utils.translation import gettext

FACTORS, CODES = "memoryhub_secondfactor", "memoryhub_recoverycode"
IDENTITIES, WEBHOOKS = "memoryhub_identity", "sessions_app_webhook"
WORKSPACES, FOLDERS, SETTINGS = "sessions_app_workspace", "sessions_app_sourcefolder", "memoryhub_storedsetting"
STRICTNESS = ("accept", "hold_risky", "hold_all")  # of agent_changes
_SWITCHES = (  # off is stricter; restoring turns write_back off in any case
    "is_followed write_instructions auto_consolidate auto_compress auto_extract dense_search persist_memory "
    "knowledge_in_context cache_enabled"
)
_MODELS = (
    "model model_base_url consolidation_model extraction_model embedding_provider embedding_model embedding_base_url"
)
SWITCHES, MODELS = tuple(_SWITCHES.split()), tuple(_MODELS.split())
OF_WORKSPACE = ("agent_changes", *SWITCHES, "daily_token_budget", *MODELS)  # new ones last: they are in kept files
_OF_USER = "SELECT u.username, u.date_joined, {} FROM {} t JOIN auth_user u ON u.id = t.user_id"
_OF_WORKSPACE = "SELECT w.id, w.created_at, {} FROM {} t JOIN sessions_app_workspace w ON w.id = t.workspace_id"
_INSERT_FACTOR = "INSERT INTO memoryhub_secondfactor (user_id, secret, last_step, created_at) VALUES (%s, %s, %s, %s)"
_INSERT_IDENTITY = """
    INSERT INTO memoryhub_identity (user_id, issuer, subject, email, created_at, ended_at)
    VALUES (%s, %s, %s, %s, %s, %s)
"""
_END_IDENTITY = """
    UPDATE memoryhub_identity SET ended_at = %s
    WHERE user_id = %s AND issuer = %s AND subject = %s AND ended_at IS NULL
"""
_FOLDERS = """
    SELECT f.id, f.created_at, w.slug, f.label, f.is_followed, f.removed_at FROM sessions_app_sourcefolder f
    JOIN sessions_app_workspace w ON w.id = f.workspace_id
"""
_SETTINGS = "SELECT name, value, updated_by, updated_at FROM memoryhub_storedsetting"
_INSERT_SETTING = "INSERT INTO memoryhub_storedsetting (name, value, updated_by, updated_at) VALUES (%s, %s, %s, %s)"
_DELETE_IDENTITY = "DELETE FROM memoryhub_identity WHERE user_id = %s AND issuer = %s AND subject = %s"
Key = tuple[Any, Any]
Methods = dict[str, list[tuple[Any, ...]]]


@dataclass
class Again:
    """What was applied again, and what couldn't be, in words."""

    ended: list[str] = field(default_factory=list)
    unapplied: list[str] = field(default_factory=list)


def read_methods(database: BaseDatabaseWrapper, cursor: Any) -> Methods:
    """Return the rows of each table that the database has."""
    found: Methods = {}
    tables = {FACTORS, CODES, IDENTITIES, WEBHOOKS, WORKSPACES, FOLDERS, SETTINGS}
    for table in tables.intersection(database.introspection.table_names(cursor)):
        cursor.execute(_query(table, _columns(database, cursor, table)))
        found[table] = [tuple(row) for row in cursor.fetchall()]
    return found


def _columns(database: BaseDatabaseWrapper, cursor: Any, table: str) -> set[str]:
    return {column.name for column in database.introspection.get_table_description(cursor, table)}


def _query(table: str, columns: Collection[str]) -> str:
    if table == WORKSPACES:
        named = [name if name in columns else "NULL" for name in ("slug", *OF_WORKSPACE)]
        return f"SELECT id, created_at, {', '.join(named)} FROM {WORKSPACES}"  # noqa: S608  our own names
    if table == WEBHOOKS:
        return _OF_WORKSPACE.format("t.url, t.id, t.salt, t.actions, t.is_enabled", WEBHOOKS)
    if table in (FOLDERS, SETTINGS):
        return _FOLDERS if table == FOLDERS else _SETTINGS
    ended_at = "t.ended_at" if "ended_at" in columns else "NULL"  # a column that older hubs lack
    wanted = {
        FACTORS: "t.secret, t.last_step, t.created_at",
        CODES: "t.code_hash",
        IDENTITIES: f"t.issuer, t.subject, t.email, t.created_at, {ended_at}",
    }
    return _OF_USER.format(wanted[table], table)


def end_methods(
    database: BaseDatabaseWrapper,
    cursor: Any,
    present: Methods,
    accounts: Collection[Key],
    workspaces: Collection[Key],
) -> Again:
    """Bring a restored database's rows to the present state, of the accounts and workspaces that both contain."""
    again, restored = Again(), read_methods(database, cursor)
    cursor.execute("SELECT username, date_joined, id FROM auth_user")
    people = {(name, joined): pk for name, joined, pk in cursor.fetchall() if (name, joined) in accounts}
    _apply_factors(cursor, present, restored, people, again)
    keeps_ended = IDENTITIES in restored and "ended_at" in _columns(database, cursor, IDENTITIES)
    _end_identities(cursor, present, restored, people, again, keeps_ended=keeps_ended)
    _end_webhooks(cursor, present, restored, workspaces, again)
    _restrict_workspaces(cursor, present, restored, again)
    _end_folders(cursor, present, restored, again)
    if people:  # of the same hub
        _keep_settings(cursor, present, restored, again)
    return again


def _by_key(rows: list[tuple[Any, ...]]) -> dict[Key, list[tuple[Any, ...]]]:
    found: dict[Key, list[tuple[Any, ...]]] = {}
    for row in rows:
        found.setdefault((row[0], row[1]), []).append(row[2:])
    return found


def _apply_factors(cursor: Any, present: Methods, restored: Methods, people: dict[Key, int], again: Again) -> None:
    """Give everybody the present second factor and recovery codes, or none."""
    if FACTORS not in present:
        return
    now, before = _by_key(present[FACTORS]), _by_key(restored.get(FACTORS, []))
    codes, old_codes = _by_key(present[CODES]), _by_key(restored.get(CODES, []))
    for key, pk in people.items():
        factor, kept = now.get(key, []), sorted(codes.get(key, []))
        old, old_kept = before.get(key, []), sorted(old_codes.get(key, []))
        if (factor, kept) == (old, old_kept):
            continue
        if FACTORS in restored:
            _replace_factor(cursor, pk, factor, kept)
        if [row[0] for row in factor] != [row[0] for row in old]:
            texts = again.ended if FACTORS in restored else again.unapplied
            texts.append(gettext("the two-factor authentication of %(name)s") % {"name": key[0]})
        elif kept != old_kept:
            again.ended.append(gettext("recovery codes of %(name)s") % {"name": key[0]})


def _replace_factor(cursor: Any, pk: int, factor: list[tuple[Any, ...]], codes: list[tuple[Any, ...]]) -> None:
    cursor.execute("DELETE FROM memoryhub_secondfactor WHERE user_id = %s", [pk])
    cursor.execute("DELETE FROM memoryhub_recoverycode WHERE user_id = %s", [pk])
    for row in factor:
        cursor.execute(_INSERT_FACTOR, [pk, *row])
    for (code,) in codes:
        cursor.execute("INSERT INTO memoryhub_recoverycode (user_id, code_hash) VALUES (%s, %s)", [pk, code])


def _end_identities(
    cursor: Any, present: Methods, restored: Methods, people: dict[Key, int], again: Again, *, keeps_ended: bool
) -> None:
    """End what isn't connected any more, and bring back the rows that keep an address from connecting again."""
    now = _by_key(present.get(IDENTITIES, []))
    before = _by_key(restored.get(IDENTITIES, []))
    for key, pk in people.items() if IDENTITIES in present else ():
        rows, old = now.get(key, []), before.get(key, [])
        living = {row[:2] for row in rows if row[-1] is None}
        over = [row for row in old if row[-1] is None and row[:2] not in living]
        _end_all(cursor, pk, over, keeps_ended=keeps_ended)
        again.ended += [_sign_in(key, row[0]) for row in over]
        there = {row[:2] for row in old} if keeps_ended else set()
        for row in (row for row in rows if row[-1] is not None and row[:2] not in there):
            if keeps_ended:
                cursor.execute(_INSERT_IDENTITY, [pk, *row])
            else:
                again.unapplied.append(_sign_in(key, row[0]))


def _end_all(cursor: Any, pk: int, rows: list[tuple[Any, ...]], *, keeps_ended: bool) -> None:
    time = datetime.now(UTC).isoformat(sep=" ")
    for issuer, subject, *_rest in rows:
        if keeps_ended:
            cursor.execute(_END_IDENTITY, [time, pk, issuer, subject])
        else:
            cursor.execute(_DELETE_IDENTITY, [pk, issuer, subject])


def _sign_in(key: Key, issuer: str) -> str:
    words = gettext("the sign-in of %(name)s with %(provider)s")
    return words % {"name": key[0], "provider": urlsplit(issuer).netloc}


def _end_webhooks(
    cursor: Any, present: Methods, restored: Methods, workspaces: Collection[Key], again: Again
) -> None:
    """Delete webhooks that were removed, and switch off and sign the others as at present."""
    hooks = {row[:3]: row[3:] for row in present.get(WEBHOOKS, [])}
    for *key, url, pk, salt, actions, is_enabled in restored.get(WEBHOOKS, []):
        if WEBHOOKS not in present or tuple(key) not in workspaces:
            continue
        now = hooks.get((*key, url))
        if now is None:
            cursor.execute("DELETE FROM sessions_app_webhookdelivery WHERE webhook_id = %s", [pk])
            cursor.execute("DELETE FROM sessions_app_webhook WHERE id = %s", [pk])
        elif now[1:] != (salt, actions, is_enabled):
            change = "UPDATE sessions_app_webhook SET salt = %s, actions = %s, is_enabled = %s WHERE id = %s"
            cursor.execute(change, [*now[1:3], bool(now[3] and is_enabled), pk])
        else:
            continue
        again.ended.append(gettext("the webhook to %(host)s") % {"host": urlsplit(url).netloc})


def _restrict_workspaces(cursor: Any, present: Methods, restored: Methods, again: Again) -> None:
    """Give workspaces the stricter settings of the two databases, and the present models."""
    known = {row[:2]: row[3:] for row in present.get(WORKSPACES, [])}
    for *key, slug, was in ((*row[:3], row[3:]) for row in restored[WORKSPACES]):
        settings = zip(OF_WORKSPACE, was, known.get(tuple(key), ()), strict=False)  # older hubs kept fewer
        for name, before, now in settings:
            if (value := _stricter(name, before, now)) == before:
                continue
            sql = f"UPDATE sessions_app_workspace SET {name} = %s WHERE id = %s"  # noqa: S608  our own columns
            cursor.execute(sql, [value, key[0]])
            again.ended.append(f"{slug}: {name}={value}")


def _stricter(name: str, before: Any, now: Any) -> Any:
    """Return the value to use of two; None is of a database without the column, or no limit."""
    if before is None or now is None:
        return before if name != "daily_token_budget" or now is None else now
    if name == "agent_changes":
        return max(before, now, key=STRICTNESS.index)
    if name in MODELS:
        return now
    return min(before, now)


def _end_folders(cursor: Any, present: Methods, restored: Methods, again: Again) -> None:
    """Remove additional folders that were removed, and don't follow those that aren't followed any more."""
    known = {row[:2]: row[4:] for row in present.get(FOLDERS, [])}
    for *key, slug, label, was_followed, was_removed in restored.get(FOLDERS, []):
        is_followed, removed_at = known.get(tuple(key), (True, None))
        if (was_removed or not removed_at) and (is_followed or not was_followed):
            continue
        change = "UPDATE sessions_app_sourcefolder SET is_followed = %s, removed_at = %s WHERE id = %s"
        cursor.execute(change, [False, was_removed or removed_at, key[0]])
        again.ended.append(gettext("the folder %(label)s of %(workspace)s") % {"label": label, "workspace": slug})


def _keep_settings(cursor: Any, present: Methods, restored: Methods, again: Again) -> None:
    """Give the hub its present settings, among them addresses and API keys of models."""
    if SETTINGS not in present or SETTINGS not in restored:
        return
    now, before = ({row[0]: row for row in found[SETTINGS]} for found in (present, restored))
    cursor.execute("DELETE FROM memoryhub_storedsetting")
    cursor.executemany(_INSERT_SETTING, list(now.values()))
    changed = sorted(name for name in now.keys() | before.keys() if now.get(name) != before.get(name))
    again.ended += [gettext("the setting %(name)s") % {"name": name} for name in changed]
