"""Add to columns of rows, and create the rows that are missing, with one statement for many of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from django.db import connection, models

ROWS_PER_STATEMENT = 100


def add_to_rows(
    model: type[models.Model],
    rows: Sequence[Mapping[str, Any]],
    *,
    unique: Sequence[str],
    condition: str,
    sums: Sequence[str],
) -> None:
    """Insert rows, given by column; of those that exist, only add to the columns ``sums``.

    ``unique`` and ``condition`` (SQL) are the columns and the condition of a unique constraint. ``bulk_create`` can
    replace columns of existing rows, but not add to them.
    """
    for start in range(0, len(rows), ROWS_PER_STATEMENT):
        _insert(model, rows[start : start + ROWS_PER_STATEMENT], unique, condition, sums)


def _insert(
    model: type[models.Model],
    rows: Sequence[Mapping[str, Any]],
    unique: Sequence[str],
    condition: str,
    sums: Sequence[str],
) -> None:
    quote = connection.ops.quote_name
    table = quote(model._meta.db_table)
    fields = {field.column: field for field in model._meta.concrete_fields}
    marks = "(" + ", ".join(["%s"] * len(rows[0])) + ")"
    added = ", ".join(f"{quote(name)} = {table}.{quote(name)} + excluded.{quote(name)}" for name in sums)
    values = [fields[name].get_db_prep_save(value, connection) for row in rows for name, value in row.items()]
    with connection.cursor() as cursor:
        cursor.execute(
            f"INSERT INTO {table} ({', '.join(map(quote, rows[0]))}) VALUES {', '.join([marks] * len(rows))}"  # noqa: S608  names of the model
            f" ON CONFLICT ({', '.join(map(quote, unique))}) WHERE {condition} DO UPDATE SET {added}",
            values,
        )
