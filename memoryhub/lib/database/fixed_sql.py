"""Parts of statements that are written by hand, because pages run them more often than Django can build them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from django.core.exceptions import EmptyResultSet
from django.db import connection
from django.db.backends.utils import CursorWrapper
from django.db.models import QuerySet

_PLAIN = re.compile(r"[\w ./'-]*", re.ASCII)


def keys_sql(rows: QuerySet[Any]) -> tuple[str, tuple[Any, ...]]:
    """Return a SELECT of the rows' primary keys, and its parameters."""
    try:
        sql, params = rows.order_by().values("pk").query.sql_with_params()
    except EmptyResultSet:
        return "SELECT 0 WHERE 1 = 0", ()
    return sql, tuple(params)


def with_literals(sql: str, params: Sequence[Any]) -> tuple[str, list[Any]]:
    """Write plain words and numbers into a statement; return it with the remaining parameters.

    SQLite prepares a statement again each time if it compares a parameter with the condition of a partial index, such
    as that of live runs. Preparing the inbox's takes longer than running it.
    """
    first, *others = sql.split("%s")
    parts, left = [first], []
    for param, part in zip(params, others, strict=True):
        if isinstance(param, str) and _PLAIN.fullmatch(param):
            text = str(param).replace("'", "''")
            parts += [f"'{text}'", part]
        elif type(param) is int:
            parts += [str(param), part]
        else:
            parts += ["%s", part]
            left.append(param)
    return "".join(parts), left


def planned_cursor() -> CursorWrapper:
    """Return a cursor whose statements PostgreSQL plans once for each connection, not each time.

    To plan the inbox's takes longer than to run it. Django's cursors put parameters into the statement's text, which
    is a new statement each time. Queries of a search index are better planned each time, for their words.
    """
    cursor = connection.cursor()
    if connection.vendor == "postgresql":
        from django.db.backends.postgresql.base import ServerBindingCursor

        cursor.cursor.close()
        server_binding: Any = ServerBindingCursor
        cursor.cursor = server_binding(connection.connection)
    return cursor
