"""What the database indexes of a table: its words, who and when, and the scope that every search names.

The index is the database's own, so no bulk edit, cascade or raw update makes it stale. Beside the words of the rows
it holds "parts" (what camelCase is made of, and pairs of characters of paired scripts), "meta" (names, categories and
the words of a date), and "scope" (which workspace, session and kind a row is of).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from django.db.backends.base.base import BaseDatabaseWrapper

INDEXED_CHARS = 200_000  # of a row: PostgreSQL refuses a row whose index is above a megabyte
PAIRED_CHARS = 50_000  # of a row's paired scripts, for the same reason
GUARD_TABLE = "sessions_app_indexguard"


@dataclass(frozen=True)
class Index:
    """The index of one table. ``content`` and ``meta``: its text columns, ``json`` those of them that hold JSON.

    ``hidden_by``: for a text column the flag column that keeps it out. ``time``: the column whose date is found by
    its words. ``scope``: letters and the integer column that they stand before, "w" for the workspace; ``kind``: a
    column of plain words that is scope too.
    """

    table: str
    content: Sequence[str]
    meta: Sequence[str] = ()
    time: str = ""
    scope: Mapping[str, str] = field(default_factory=lambda: {"w": "workspace_id"})
    kind: str = ""
    json: Sequence[str] = ()
    hidden_by: Mapping[str, str] = field(default_factory=dict)

    def text_sql(self, name: str) -> str:
        """Return the expression of a text column's words, in both databases' SQL."""
        if name in self.json:
            return f"""replace(replace("{name}", '\\n', ' '), '\\t', ' ')"""  # else "\\nword" would be read as nword
        flag = self.hidden_by.get(name)
        return f'CASE WHEN "{flag}" THEN \'\' ELSE "{name}" END' if flag else f'"{name}"'

    @property
    def columns(self) -> list[str]:
        """Return all columns that the index is made of."""
        flags = self.hidden_by.values()
        named = [*self.content, *self.meta, self.time, *self.scope.values(), self.kind, *flags]
        return list(dict.fromkeys(name for name in named if name))


def index_name(table: str) -> str:
    """Return the name of a table's index: a table on SQLite, of an index of the database on PostgreSQL."""
    return f"{table}_words"


def source_name(table: str) -> str:
    """Return the name of the view of what is indexed, on SQLite."""
    return f"{table}_source"


def batch_name(table: str) -> str:
    """Return the name of the view of what ``upkeep.bulk_indexing`` has still to index, on SQLite."""
    return f"{table}_batch"


def is_installed(connection: BaseDatabaseWrapper, table: str) -> bool:
    """Tell whether a table's index and all that feeds it stands."""
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
    """Return the names of the triggers that feed a table's index on SQLite."""
    return f"{table}_index_new", f"{table}_index_old", f"{table}_index_gone", f"{table}_index_changed"
