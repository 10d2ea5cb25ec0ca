"""Add to columns of rows, and create the rows that are missing, with one statement for many of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from django.db import connection, models

ROWS_PER_STATEMENT = 100


def add_to_rows(
    model: type[models.Model],
    rows: Sequence[Mapping[str, Any]],
    *,
    unique: Sequence[str],
    sums: Sequence[str],
    condition: str = "",
) -> list[tuple[Any, ...]]:
    """Insert rows, given by column; of those that exist, only add to the columns ``sums``.

    Returns these columns, except with SQLite before 3.35. ``unique`` and ``condition`` (SQL) are the columns and the
    condition of a unique constraint. ``bulk_create`` can replace columns of existing rows, but not add to them.
    """
    quote = connection.ops.quote_name
    table, fields = quote(model._meta.db_table), {field.column: field for field in model._meta.concrete_fields}
    where = f" WHERE {condition}" if condition else ""
    added = ", ".join(f"{quote(name)} = {table}.{quote(name)} + excluded.{quote(name)}" for name in sums)
    returning = f" RETURNING {_columns(sums)}" if connection.features.can_return_columns_from_insert else ""
    totals: list[tuple[Any, ...]] = []
    with connection.cursor() as cursor:
        for start in range(0, len(rows), ROWS_PER_STATEMENT):
            some = rows[start : start + ROWS_PER_STATEMENT]
            marks = "(" + ", ".join(["%s"] * len(some[0])) + ")"
            cursor.execute(
                f"INSERT INTO {table} ({_columns(some[0])}) VALUES {', '.join([marks] * len(some))}"  # noqa: S608  names of the model
                f" ON CONFLICT ({_columns(unique)}){where} DO UPDATE SET {added}{returning}",
                [fields[name].get_db_prep_save(value, connection) for row in some for name, value in row.items()],
            )
            totals += cursor.fetchall() if returning else []
    return totals


def _columns(names: Iterable[str]) -> str:
    return ", ".join(map(connection.ops.quote_name, names))
