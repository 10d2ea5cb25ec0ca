"""Filter and export the audit log."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, date
from typing import Any

from django.db.models import QuerySet

from memoryhub.lib.database.any_case import any_case
from memoryhub.lib.date_ranges import end_of_day, start_of_day
from memoryhub.lib.tables.formulas import guard
from sessions_app.models import AuditRecord, Workspace
from sessions_app.services.audit import By, record

COLUMNS = (
    "id",
    "at",
    "workspace",
    "actor_kind",
    "actor_name",
    "action",
    "object_kind",
    "object_id",
    "session_id",
    "text",
    "before_hash",
    "after_hash",
    "detail",
)
CHUNK = 2_000  # records read at a time
Line = Callable[[dict[str, Any]], str]


@dataclass(frozen=True)
class AuditFilter:
    """Empty values don't filter.

    ``kind``: "runs", or "changes" for everything except runs and appended entries. ``who``: part of the actor's name;
    ``actor``: an actor kind; ``noun``: the first part of an action; ``text``: part of the text; ``since``, ``until``:
    days in the current time zone, inclusive.
    """

    kind: str = ""
    who: str = ""
    actor: str = ""
    noun: str = ""
    text: str = ""
    since: date | None = None
    until: date | None = None


def filter_records(records: QuerySet[AuditRecord], audit_filter: AuditFilter) -> QuerySet[AuditRecord]:
    """Return the records that match a filter."""
    if audit_filter.kind == "runs":
        records = records.filter(action__startswith="run.")
    elif audit_filter.kind == "changes":
        records = records.exclude(action="entry.added").exclude(action__startswith="run.")
    lookups = {
        "actor_kind": audit_filter.actor,
        "action__startswith": audit_filter.noun and f"{audit_filter.noun}.",
        "at__gte": audit_filter.since and start_of_day(audit_filter.since),
        "at__lte": audit_filter.until and end_of_day(audit_filter.until),
    }
    if audit_filter.who:
        records = records.filter(any_case("actor_name__icontains", audit_filter.who))
    if audit_filter.text:
        records = records.filter(any_case("text__icontains", audit_filter.text))
    return records.filter(**{lookup: value for lookup, value in lookups.items() if value})


def record_export(count: int, workspace: Workspace | None, *, by: By) -> None:
    """Write the audit record of an export of the audit log."""
    text = f"{count:,} record{'' if count == 1 else 's'} of the audit log exported"
    kind, pk = ("workspace", workspace.pk) if workspace else ("hub", "")
    record(by, "audit.exported", kind, pk, text, workspace=workspace)


def export_lines(records: QuerySet[AuditRecord], file_format: str) -> Iterator[str]:
    """Yield records as lines of a file, oldest first. ``file_format``: "csv" or "jsonl".

    Times are UTC in ISO 8601. CSV cells are escaped so that they are never formulas.
    """
    slugs = dict(Workspace.objects.values_list("pk", "slug"))
    line: Line = _json_line if file_format == "jsonl" else _csv_line
    if file_format != "jsonl":
        yield _csv_line({name: name for name in COLUMNS})
    for row in records.order_by("pk").iterator(chunk_size=CHUNK):
        yield line(_document(row, slugs))


def _document(row: AuditRecord, slugs: dict[int, str]) -> dict[str, Any]:
    own = {name: getattr(row, name) for name in COLUMNS if name not in ("workspace", "at")}
    workspace = slugs.get(row.workspace_id, f"#{row.workspace_id}") if row.workspace_id else ""
    return own | {"at": row.at.astimezone(UTC).isoformat(), "workspace": workspace}


def _json_line(document: dict[str, Any]) -> str:
    return json.dumps({name: document[name] for name in COLUMNS}, ensure_ascii=False, default=str) + "\n"


def _csv_line(document: dict[str, Any]) -> str:
    out = io.StringIO(newline="")
    csv.writer(out, quoting=csv.QUOTE_ALL).writerow([_cell(document[name]) for name in COLUMNS])
    return out.getvalue()


def _cell(value: Any) -> str:
    if isinstance(value, dict):
        value = json.dumps(value, ensure_ascii=False, default=str) if value else ""
    return guard("" if value is None else str(value))
