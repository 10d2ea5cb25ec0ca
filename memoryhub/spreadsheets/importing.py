"""Import a table: all rows are checked first, and either all are written or none.

A row is matched by its ``id``, else by the agent's own id or key, else (knowledge) by its content. It stays in its
workspace and keeps its ids; columns that the table lacks don't change. Rows that have changed in the hub since the
export are skipped. Each change is in the row's history, with one audit record for each workspace.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from datetime import tzinfo
from typing import Any

from django.db import IntegrityError, transaction
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from simple_history.utils import bulk_create_with_history

from knowledge_app.models import KnowledgeEntry
from knowledge_app.services.rows.edit_tables import TABLES
from memoryhub.lib.database import db_retry
from memoryhub.lib.errors import Invalid
from memoryhub.lib.tables import Table, check_rows
from memoryhub.lib.validation import brief
from memoryhub.spreadsheets.rows import BATCH_ROWS, IMPORTS, CheckedTable, check_table
from sessions_app.models import Workspace
from sessions_app.services.audit import By, record
from sessions_app.services.workspaces import share_workspace

NO_SUCH_COLUMN = {
    "knowledge": _("There is no column %(name)s. Tables of knowledge entries have: %(columns)s."),
    "observations": _("There is no column %(name)s. Tables of observations have: %(columns)s."),
    "key_values": _("There is no column %(name)s. Tables of key-values have: %(columns)s."),
}


def import_rows(
    table: str,
    rows: Table,
    *,
    source: str,
    zone: tzinfo,
    by: By,
    dry_run: bool,
    overwrite: bool = False,
    shown: str = "",
) -> CheckedTable:
    """Import a table of knowledge entries, observations or key-values unless a row is wrong; return each outcome.

    ``source``: the file's name, for histories and the audit log. ``zone``: of times without one. ``dry_run``: write
    nothing. ``overwrite``: also change rows that have changed in the hub since the export. ``shown``: the digest of a
    preview; if it differs by now, nothing is written. Raises Invalid for unknown columns and for rows added
    meanwhile, and TableTooLarge.
    """
    check_rows(len(rows))
    _check_columns(table, rows.headers)
    if dry_run:
        return check_table(table, rows, zone=zone, now=by.at, overwrite=overwrite)
    try:
        return _write(table, rows, source, zone, by, overwrite=overwrite, shown=shown)
    except IntegrityError as error:
        words = gettext("Some of these rows were added meanwhile. Upload the file again.")
        raise Invalid(words, code="unfit_table") from error


def _check_columns(table: str, headers: list[str]) -> None:
    known = IMPORTS[table].columns
    unknown = next((name for name in headers if name not in known), "")
    if unknown:
        raise Invalid(
            str(NO_SUCH_COLUMN[table]) % {"name": brief(unknown), "columns": ", ".join(known)}, code="unfit_table"
        )
    if "workspace" not in headers:
        raise Invalid(
            gettext("The column workspace is missing. It contains each row's workspace, as in its URL."),
            code="unfit_table",
        )


@db_retry.retried
@transaction.atomic
def _write(
    table: str, rows: Table, source: str, zone: tzinfo, by: By, *, overwrite: bool, shown: str
) -> CheckedTable:
    for pk in Workspace.objects.order_by("pk").values_list("pk", flat=True):
        share_workspace(pk)  # nothing can be forgotten at the same time
    checked = check_table(table, rows, zone=zone, now=by.at, overwrite=overwrite, lock=True)
    if checked.counts["wrong"] or (shown and checked.digest != shown):
        return checked
    model = TABLES[table].model
    options: dict[str, Any] = {
        "batch_size": BATCH_ROWS,
        "default_change_reason": f"{by.actor.name}: {source or 'a table'}",
        "default_date": by.at,
    }
    if checked.new:
        for row in checked.new:
            if isinstance(row, KnowledgeEntry):
                row.awaits_file_since = by.at
        bulk_create_with_history(checked.new, model, **options)
    if checked.changed:
        # All rows are locked by now, so this only updates. bulk_update would keep other writers waiting for too long.
        model._default_manager.bulk_create(
            checked.changed,
            batch_size=BATCH_ROWS,
            update_conflicts=True,
            unique_fields=["id"],
            update_fields=sorted(checked.fields),
        )
        model.history.bulk_history_create(checked.changed, update=True, **options)  # type: ignore[attr-defined]
    _audit(table, checked, source, by)
    return checked


def _audit(table: str, checked: CheckedTable, source: str, by: By) -> None:
    counts: dict[Workspace, Counter[str]] = defaultdict(Counter)
    for word, rows in (("new", checked.new), ("changed", checked.changed)):
        for row in rows:
            counts[row.workspace][word] += 1
    for workspace, count in counts.items():
        rows_text = f"{TABLES[table].count(count.total())} imported from a table"
        text = f"{rows_text}: {count['new']:,} new, {count['changed']:,} changed"
        detail = {"table": table, "file": source, "new": count["new"], "changed": count["changed"]}
        record(by, "rows.imported", "workspace", workspace.pk, text, workspace=workspace, detail=detail)
