"""Export the tables of both apps to files."""

from __future__ import annotations

from collections import Counter
from typing import Any

from django.db.models import QuerySet

from knowledge_app.services.rows import spreadsheet_columns
from memoryhub.lib.errors import Invalid
from memoryhub.lib.tables import Table
from memoryhub.lib.tables.columns import Export, export_rows
from sessions_app.models import Workspace
from sessions_app.services import tables
from sessions_app.services.audit import By, record

EXPORTS: dict[str, Export] = {**spreadsheet_columns.EXPORTS, **tables.EXPORTS}


def export_table(table: str, rows: QuerySet[Any] | None = None, *, by: By) -> Table:
    """Return rows of a table, by default all, and record the export in each workspace's audit log.

    Values of secrets are left out. Raises Invalid, and TableTooLarge beyond 50,000 rows or 10 MB of text.
    """
    export = EXPORTS.get(table)
    if export is None:
        raise Invalid(f"There is no table {table!r}. There are: {', '.join(EXPORTS)}.", code="unknown_table")
    made = export_rows(export, export.model._default_manager.all() if rows is None else rows)
    counts = Counter(row["workspace"] for row in made.rows)
    for workspace in Workspace.objects.filter(slug__in=counts).order_by("pk"):
        count = counts[workspace.slug]
        text = f"{count:,} row{'' if count == 1 else 's'} of the table {table} exported"
        record(by, "rows.exported", "workspace", workspace.pk, text, workspace=workspace)
    return made
