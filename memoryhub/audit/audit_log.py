"""The audit log: which of its records fit what is asked, and all of those as a file."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, date
from typing import Any

from django.db.models import QuerySet

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
class Wanted:
    """What is asked of the log; empty values ask for nothing.

    ``kind``: "runs", or "changes" for all but those and appends. ``who``: a part of the actor's name; ``actor``: a
    kind of actor; ``noun``: what an action begins with; ``text``: a part of the sentence; ``since``, ``until``: days
    of the current zone, both included.
    """

    kind: str = ""
    who: str = ""
    actor: str = ""
    noun: str = ""
    text: str = ""
    since: date | None = None
    until: date | None = None


def fitting(records: QuerySet[AuditRecord], wanted: Wanted) -> QuerySet[AuditRecord]:
    """Return those of some records that are asked for."""
    if wanted.kind == "runs":
        records = records.filter(action__startswith="run.")
    elif wanted.kind == "changes":
        records = records.exclude(action="entry.added").exclude(action__startswith="run.")
    lookups = {
        "actor_name__icontains": wanted.who,
        "actor_kind": wanted.actor,
        "action__startswith": wanted.noun and f"{wanted.noun}.",
        "text__icontains": wanted.text,
        "at__gte": wanted.since and start_of_day(wanted.since),
        "at__lte": wanted.until and end_of_day(wanted.until),
    }
    return records.filter(**{lookup: value for lookup, value in lookups.items() if value})


def record_export(count: int, workspace: Workspace | None, *, by: By) -> None:
    """Say in the log itself that so many of its records were taken out."""
    text = f"{count:,} record{'' if count == 1 else 's'} of the audit log exported"
    kind, pk = ("workspace", workspace.pk) if workspace else ("hub", "")
    record(by, "audit.exported", kind, pk, text, workspace=workspace)


def lines_of(records: QuerySet[AuditRecord], form: str) -> Iterator[str]:
    """Yield some records as lines of a file, the oldest first: ``form`` is "csv", or "jsonl" for a JSON object each.

    Times are UTC in ISO 8601. Cells of CSV are never formulas. Reads 2,000 records at a time, however many there are.
    """
    slugs = dict(Workspace.objects.values_list("pk", "slug"))
    line: Line = _json_line if form == "jsonl" else _csv_line
    if form != "jsonl":
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
