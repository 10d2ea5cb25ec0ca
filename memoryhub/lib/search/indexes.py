"""Describe the search index of a table.

The database maintains the index, so no bulk edit, cascade or raw update makes it stale. It contains the words of the
rows ("content"), the parts of camelCase words and the character pairs of paired scripts ("parts"), names, categories
and the words of a date ("meta"), and a row's workspace, session and kind ("scope").
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from django.db.backends.base.base import BaseDatabaseWrapper

INDEXED_CHARS = 200_000  # per row: PostgreSQL limits a tsvector to 1 MB
PAIRED_CHARS = 50_000  # per row of paired scripts, for the same reason
GUARD_TABLE = "sessions_app_indexguard"


@dataclass(frozen=True)
class Index:
    """The search index of a table.

    ``content``, ``meta``: its text columns. ``json``: those that contain JSON. ``hidden_by``: for a text column, the
    flag column that excludes it. ``hidden_if``: flag columns that exclude the whole row. ``time``: a column whose
    date is indexed as words. ``scope``: integer columns to filter by, each with a letter ("w" for the workspace).
    ``kind``: a text column to filter by.
    """

    table: str
    content: Sequence[str]
    meta: Sequence[str] = ()
    time: str = ""
    scope: Mapping[str, str] = field(default_factory=lambda: {"w": "workspace_id"})
    kind: str = ""
    json: Sequence[str] = ()
    hidden_by: Mapping[str, str] = field(default_factory=dict)
    hidden_if: Sequence[str] = ()

    def text_sql(self, name: str) -> str:
        """Return an SQL expression for a text column's words, valid on both databases."""
        if name in self.json:
            return f"""replace(replace("{name}", '\\n', ' '), '\\t', ' ')"""  # or "\\nword" would be indexed as nword
        flag = self.hidden_by.get(name)
        return f'CASE WHEN "{flag}" THEN \'\' ELSE "{name}" END' if flag else f'"{name}"'

    @property
    def hidden_sql(self) -> str:
        """An SQL condition for rows that aren't indexed; "" if there are none."""
        return " OR ".join(f'"{flag}"' for flag in self.hidden_if)

    @property
    def columns(self) -> list[str]:
        """All columns that the index depends on."""
        flags = self.hidden_by.values()
        named = [*self.content, *self.meta, self.time, *self.scope.values(), self.kind, *flags, *self.hidden_if]
        return list(dict.fromkeys(name for name in named if name))


def index_name(table: str) -> str:
    """Return the name of a table's index: an FTS5 table on SQLite, a database index on PostgreSQL."""
    return f"{table}_words"


def source_name(table: str) -> str:
    """Return the name of the SQLite view that the index reads from."""
    return f"{table}_source"


def batch_name(table: str) -> str:
    """Return the name of the SQLite view of the rows that ``index_maintenance.bulk_indexing`` is adding."""
    return f"{table}_batch"


def is_installed(connection: BaseDatabaseWrapper, table: str) -> bool:
    """Return whether a table's index and its triggers and views exist."""
    if connection.vendor == "sqlite":
        sql = "SELECT count(*) FROM sqlite_master WHERE name IN (%s, %s, %s, %s, %s, %s, %s)"
        names = [index_name(table), source_name(table), batch_name(table), *trigger_names(table)]
    else:
        sql = "SELECT count(*) * 7 FROM pg_indexes WHERE indexname = %s AND schemaname = current_schema()"
        names = [index_name(table)]
    with connection.cursor() as cursor:
        cursor.execute(sql, names)
        return bool(cursor.fetchone()[0] == 7)


def trigger_names(table: str) -> tuple[str, str, str, str]:
    """Return the names of the SQLite triggers that maintain a table's index."""
    return f"{table}_index_new", f"{table}_index_old", f"{table}_index_gone", f"{table}_index_changed"
