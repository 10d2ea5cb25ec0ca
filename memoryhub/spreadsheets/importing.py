"""Taking a table back: every row is judged first, and either all of them are written or none is.

A row is one that the hub has by its ``id``, else by the agent's own id or key, else (knowledge) by what it says. It
stays in its workspace, keeps its ids, and a column that the table lacks stays as it is. Every change is in the row's
history, and one audit record for each workspace says who it was.
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
from memoryhub.lib import db_retry
from memoryhub.lib.errors import Invalid
from memoryhub.lib.tables import Table, check_rows
from memoryhub.lib.validation import brief
from memoryhub.spreadsheets.rows import BATCH_ROWS, TAKING, Judged, judge_table
from sessions_app.models import Workspace
from sessions_app.services.audit import By, record

NO_SUCH_COLUMN = {
    "knowledge": _("There is no column %(name)s. Tables of knowledge entries have: %(columns)s."),
    "observations": _("There is no column %(name)s. Tables of observations have: %(columns)s."),
    "key_values": _("There is no column %(name)s. Tables of key-values have: %(columns)s."),
}


def import_rows(table: str, rows: Table, *, source: str, zone: tzinfo, by: By, dry_run: bool) -> Judged:
    """Take a table of knowledge entries, observations or key-values, unless a row is wrong; return what each came to.

    ``source``: the file's name, for histories and the audit trail. ``zone``: of times without one. With ``dry_run``
    nothing is written. Raises Invalid, for columns that there aren't and for rows that were added meanwhile, and
    TableTooLarge.
    """
    check_rows(len(rows))
    _check_columns(table, rows.headers)
    if dry_run:
        return judge_table(table, rows, zone=zone, now=by.at)
    try:
        return _take(table, rows, source, zone, by)
    except IntegrityError as error:
        words = gettext("Rows of this table were added meanwhile. Upload it again to see what is left.")
        raise Invalid(words, code="unfit_table") from error


def _check_columns(table: str, headers: list[str]) -> None:
    known = TAKING[table].columns
    unknown = next((name for name in headers if name not in known), "")
    if unknown:
        raise Invalid(
            str(NO_SUCH_COLUMN[table]) % {"name": brief(unknown), "columns": ", ".join(known)}, code="unfit_table"
        )
    if "workspace" not in headers:
        raise Invalid(
            gettext("The column workspace is missing: it names each row's workspace, as its address does."),
            code="unfit_table",
        )


@db_retry.retried
@transaction.atomic
def _take(table: str, rows: Table, source: str, zone: tzinfo, by: By) -> Judged:
    judged = judge_table(table, rows, zone=zone, now=by.at, lock=True)
    if judged.counts["wrong"]:
        return judged
    model = TABLES[table].model
    options: dict[str, Any] = {
        "batch_size": BATCH_ROWS,
        "default_change_reason": f"{by.actor.name}: {source or 'a table'}",
        "default_date": by.at,
    }
    if judged.new:
        for row in judged.new:
            if isinstance(row, KnowledgeEntry):
                row.awaits_file_since = by.at
        bulk_create_with_history(judged.new, model, **options)
    if judged.changed:
        # Each is locked by now, so this updates. bulk_update takes long enough to keep other writers waiting.
        model._default_manager.bulk_create(
            judged.changed,
            batch_size=BATCH_ROWS,
            update_conflicts=True,
            unique_fields=["id"],
            update_fields=sorted(judged.fields),
        )
        model.history.bulk_history_create(judged.changed, update=True, **options)  # type: ignore[attr-defined]
    _tell(table, judged, source, by)
    return judged


def _tell(table: str, judged: Judged, source: str, by: By) -> None:
    counts: dict[Workspace, Counter[str]] = defaultdict(Counter)
    for word, rows in (("new", judged.new), ("changed", judged.changed)):
        for row in rows:
            counts[row.workspace][word] += 1
    for workspace, count in counts.items():
        what = f"{TABLES[table].count(count.total())} taken from a table"
        text = f"{what}: {count['new']:,} new, {count['changed']:,} changed"
        detail = {"table": table, "file": source, "new": count["new"], "changed": count["changed"]}
        record(by, "rows.imported", "workspace", workspace.pk, text, workspace=workspace, detail=detail)
