"""Convert rows of models to tables."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from django.db.models import Model, QuerySet

from memoryhub.lib.tables import Table, check_rows, check_size

Cell = Callable[[Any], Any]
CHUNK_ROWS = 1000
OTHER_BYTES = 8  # assumed size of a cell that isn't text


@dataclass(frozen=True)
class Export:
    """The columns of a model's table, in order, and the relations to select with its rows."""

    model: type[Model]
    columns: dict[str, Cell]
    related: tuple[str, ...] = ("workspace",)


def columns(names: str, **special: Cell) -> dict[str, Cell]:
    """Return the cell functions of space-separated column names. Names ending in _at or _by contain times."""
    plain = {name: _time(name) if name.endswith(("_at", "_by")) else attribute(name) for name in names.split()}
    return plain | {"workspace": lambda row: row.workspace.slug} | special


def attribute(name: str) -> Cell:
    return lambda row: getattr(row, name)


def _time(name: str) -> Cell:
    return lambda row: value.isoformat() if (value := getattr(row, name)) is not None else None


def export_rows(export: Export, rows: QuerySet[Any]) -> Table:
    """Return rows as a table, oldest first. Raises TableTooLarge for more than 50,000 rows or 10 MB of text."""
    ordered = rows.select_related(None).select_related(*export.related).order_by("pk")
    table = Table(list(export.columns))
    size = 0
    for row in ordered.iterator(chunk_size=CHUNK_ROWS):
        cells = {name: cell(row) for name, cell in export.columns.items()}
        size += sum(len(cell.encode()) if isinstance(cell, str) else OTHER_BYTES for cell in cells.values())
        table.rows.append(cells)
        check_size(size)
        check_rows(len(table))
    return table
