"""The timeline of a workspace: changes, runs, imports and reads in one list, latest first.

Of the audit records of a run or job, only the last one is listed; the revision with which a held change was approved
isn't, besides its approval. Consecutive page views of a person are one item.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta
from typing import TYPE_CHECKING, Any

from django.db.models import Exists, F, OuterRef, Q, QuerySet, Window
from django.db.models.functions import RowNumber
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext, gettext_lazy

from knowledge_app.models import EditedRow
from knowledge_app.services.documents.fact_states import REVISED
from knowledge_app.services.rows.edit_tables import CONCERNS
from memoryhub.audit.access_log import NAMED_ROWS, accesses_in, first_rows
from memoryhub.audit.read_rows import SHOWN_VIEWS, Place, places_of, summary_of
from memoryhub.lib.masked_text import masked
from memoryhub.models import AccessedRow, AccessRecord
from sessions_app.models import AuditRecord, Run, Session, Workspace
from sessions_app.services.access_log import reads_by_agents

if TYPE_CHECKING:
    from django_stubs_ext import StrOrPromise

PAGE_ITEMS = 50
VIEWS_READ = 1_000  # page views that one page of the timeline can collapse
KINDS: dict[str, StrOrPromise] = {
    "changes": gettext_lazy("Changes"),
    "messages": gettext_lazy("Messages"),
    "runs": gettext_lazy("Runs"),
    "imports": gettext_lazy("Imports"),
    "reads": gettext_lazy("Reads by agents"),
    "views": gettext_lazy("Page views"),
}
OF_JOBS = ("run", "job", "import", "backup")  # object kinds whose records tell how one job went
RUNS = Q(action__startswith="run.") | Q(action__startswith="job.") | Q(action__startswith="backup.")
IMPORTS = Q(action__startswith="import.") | Q(action__in=("workspace.imported", "session.imported"))
MESSAGES = Q(action="entry.added")
OF_APPROVAL = Q(action=REVISED, text__endswith=": approved a held change")
TABLES_OF = {"knowledge": "knowledge", "observation": "observations", "key_value": "key_values"} | {
    "history_entry": "history"
}  # of audited objects, in the access log
_NUMBERED = re.compile(r"^(\D+) \d+(?= )")
AUTHORS = {  # names in records, as pages show them
    "the worker": gettext_lazy("background job"),
    "the agent's file": gettext_lazy("imported file"),
    "the agent's file, while it was replaced": gettext_lazy("imported file"),
    "import_workspace": gettext_lazy("Import"),
}


Group = list[AuditRecord | AccessRecord]


@dataclass(frozen=True)
class Cursor:
    """Where a page begins: only records and accesses with smaller ids; None for all."""

    record: int | None = None
    access: int | None = None

    @classmethod
    def parse(cls, text: str) -> Cursor:
        """Parse "12-34" or "12-" or "-34"; anything else is the start."""
        parts = text.split("-")
        if len(parts) != 2 or not all(not one or (one.isascii() and one.isdecimal()) for one in parts):
            return cls()
        numbers = [int(one) if one and len(one) <= 18 else None for one in parts]
        return cls(*numbers)

    def __str__(self) -> str:
        return f"{self.record or ''}-{self.access or ''}"


@dataclass(frozen=True)
class TimelineFilter:
    """Empty values don't filter. ``who``: an author's name; ``start``, ``end``: days in UTC, inclusive."""

    kind: str = ""
    who: str = ""
    start: date | None = None
    end: date | None = None


@dataclass(frozen=True)
class Item:
    """A row of the timeline. ``places``: label and URL of what was read; ``more``: the number of others.

    ``count``: of collapsed page views; ``number``: of the run, if it is one's.
    """

    key: str
    kind: str
    at: datetime
    who: str
    text: str
    via: str = ""
    places: Sequence[Place] = ()
    more: int = 0
    count: int = 0
    run: int | None = None
    session: tuple[int, str] | None = None
    requested_by: str = ""

    @property
    def day(self) -> date:
        return timezone.localdate(self.at)

    @property
    def author(self) -> str:
        return author_label(self.who)

    @property
    def kind_label(self) -> str:
        return str(KINDS[self.kind])


@dataclass(frozen=True)
class Timeline:
    """A page. ``older``: the cursor of the next one, "" at the end. ``authors``: name and label, busiest first."""

    items: list[Item]
    older: str = ""
    authors: list[tuple[str, str]] = field(default_factory=list)


def author_label(name: str) -> str:
    """Return an author's name as pages show it."""
    return str(AUTHORS.get(name, name))


def read_timeline(workspace: Workspace, wanted: TimelineFilter, cursor: Cursor) -> Timeline:
    """Return a page of the timeline. At most twelve queries."""
    records: list[AuditRecord] = []
    accesses: list[AccessRecord] = []
    if wanted.kind not in ("reads", "views"):
        records = list(_records(workspace, wanted, cursor)[: PAGE_ITEMS + 1])
    if wanted.kind in ("", "reads", "views"):
        accesses = list(_accesses(workspace, wanted, cursor)[: VIEWS_READ + 1])
    groups, end = _merge(records, accesses, cursor)
    items = _items(workspace, groups)
    counts = Counter(item.who for item in items)
    authors = [(name, author_label(name)) for name, _ in counts.most_common()]
    return Timeline(items, str(end) if end else "", authors)


def _records(workspace: Workspace, wanted: TimelineFilter, cursor: Cursor) -> QuerySet[AuditRecord]:
    rows = AuditRecord.objects.filter(workspace=workspace)
    of_same = rows.filter(object_kind=OuterRef("object_kind"), object_id=OuterRef("object_id"))
    later = of_same.filter(pk__gt=OuterRef("pk"), **({"actor_name": wanted.who} if wanted.who else {}))
    rows = rows.exclude(Q(object_kind__in=OF_JOBS) & Exists(later)).exclude(OF_APPROVAL)
    if wanted.kind == "changes":
        rows = rows.exclude(RUNS | IMPORTS | MESSAGES)
    elif wanted.kind:
        rows = rows.filter({"runs": RUNS, "imports": IMPORTS, "messages": MESSAGES}[wanted.kind])
    if cursor.record:
        rows = rows.filter(pk__lt=cursor.record)
    return _narrowed(rows, wanted).order_by("-pk")


def _accesses(workspace: Workspace, wanted: TimelineFilter, cursor: Cursor) -> QuerySet[AccessRecord]:
    rows = accesses_in(workspace)
    if wanted.kind == "reads":
        rows = reads_by_agents().filter(workspace=workspace)
    elif wanted.kind == "views":
        rows = rows.exclude(actor_kind=AccessRecord.AGENT)
    if cursor.access:
        rows = rows.filter(pk__lt=cursor.access)
    return _narrowed(rows, wanted).order_by("-pk")


def _narrowed(rows: QuerySet[Any], wanted: TimelineFilter) -> QuerySet[Any]:
    if wanted.who:
        rows = rows.filter(actor_name=wanted.who)
    if wanted.start:
        rows = rows.filter(at__gte=datetime.combine(wanted.start, time.min, tzinfo=UTC))
    if wanted.end and wanted.end < date.max:
        rows = rows.filter(at__lt=datetime.combine(wanted.end + timedelta(days=1), time.min, tzinfo=UTC))
    return rows


def _merge(
    records: Sequence[AuditRecord], accesses: Sequence[AccessRecord], cursor: Cursor
) -> tuple[list[Group], Cursor | None]:
    """Merge two lists by time into groups: a record, an agent's read, or the page views of a person in a row.

    Each list has one row more than may be used, if there are more. The cursor is None at the end.
    """
    groups: list[Group] = []
    place, read = 0, 0
    while place < len(records) or read < len(accesses):
        record = records[place] if place < len(records) else None
        access = accesses[read] if read < len(accesses) else None
        row = record if record and (access is None or record.at >= access.at) else accesses[read]
        is_same = bool(groups) and _is_view(row) and _is_view(groups[-1][0])
        is_joined = is_same and row.actor_name == groups[-1][0].actor_name
        is_last_read = place == PAGE_ITEMS if row is record else read == VIEWS_READ
        if is_last_read or (len(groups) == PAGE_ITEMS and not is_joined):
            end = Cursor(
                records[place - 1].pk if place else cursor.record, accesses[read - 1].pk if read else cursor.access
            )
            return groups, end
        if is_joined:
            groups[-1].append(row)
        else:
            groups.append([row])
        place, read = (place + 1, read) if row is record else (place, read + 1)
    return groups, None


def _is_view(row: AuditRecord | AccessRecord) -> bool:
    return isinstance(row, AccessRecord) and not row.is_by_agent


def _items(workspace: Workspace, groups: Sequence[Group]) -> list[Item]:
    accesses = [row for group in groups for row in group[:SHOWN_VIEWS] if isinstance(row, AccessRecord)]
    rows = first_rows(accesses)
    records = [row for group in groups for row in group if isinstance(row, AuditRecord)]
    named = {-row.pk: several for row, several in _changed_rows(records)}
    places = places_of(workspace, rows | named)
    runs = {int(row.object_id) for row in records if row.object_kind == "run" and row.object_id.isdecimal()}
    known = Run.objects.filter(workspace=workspace, pk__in=runs).only("kind", "requested_by").in_bulk()
    sessions = Session.objects.filter(
        workspace=workspace, pk__in={row.session_id for row in records if row.session_id}
    )
    names = {row.pk: str(row) for row in sessions.only("key", "title")}
    items = []
    for group in groups:
        first = group[0]
        if isinstance(first, AuditRecord):
            items.append(_of_record(first, known, names, _places(workspace, first, places.get(-first.pk, []))))
        else:
            items.append(_of_accesses([row for row in group if isinstance(row, AccessRecord)], rows, places))
    return items


def _changed_rows(records: Sequence[AuditRecord]) -> Iterator[tuple[AuditRecord, list[AccessedRow]]]:
    """Yield records with the rows that they are about, the first few of an edit. One query."""
    edits = {int(row.object_id): row for row in records if row.action == "rows.edited" and row.object_id.isdecimal()}
    changed: defaultdict[int, list[AccessedRow]] = defaultdict(list)
    edited = EditedRow.objects.filter(run__in=edits, table__in=(*TABLES_OF.values(), CONCERNS)).annotate(
        place=Window(RowNumber(), partition_by=F("run"), order_by=F("id").asc())
    )
    for one in edited.filter(place__lte=NAMED_ROWS).order_by("id"):
        changed[one.run_id].append(AccessedRow(table=one.table, parent=0, first=one.object_id))
    yield from ((edits[run], rows) for run, rows in changed.items())
    for row in records:
        if row.object_kind in TABLES_OF and row.object_id.isdecimal():
            yield row, [AccessedRow(table=TABLES_OF[row.object_kind], parent=0, first=int(row.object_id))]


def _places(workspace: Workspace, row: AuditRecord, changed: Sequence[Place]) -> list[Place]:
    """Return what a record is about: a held change, or the changed rows that aren't deleted."""
    if row.object_kind == "held_change":
        return [(gettext("Show the change"), reverse("held-change", args=[workspace.slug, row.object_id]))]
    return [place for place in changed if place[1]]


def _of_record(row: AuditRecord, runs: Mapping[int, Run], names: Mapping[int, str], places: Sequence[Place]) -> Item:
    is_run = row.object_kind == "run" and row.object_id.isdecimal()
    run = runs.get(int(row.object_id)) if is_run else None
    text = masked(row.text)
    if run and row.action == "run.finished" and text.endswith(" is done"):
        text = gettext("%(kind)s finished") % {"kind": run.get_kind_display()}
    if places and not is_run:
        text = _NUMBERED.sub(r"\1", text)
    return Item(
        key=f"record-{row.pk}",
        kind=_kind(row.action),
        at=row.at,
        who=row.actor_name,
        text=f"{text[:1].upper()}{text[1:]}" if row.object_kind == "held_change" else text,
        places=places,
        run=run.pk if run else None,
        session=(row.session_id, names[row.session_id]) if row.session_id and row.session_id in names else None,
        requested_by=run.requested_by if run else "",
    )


def _kind(action: str) -> str:
    noun = action.partition(".")[0]
    if action in ("workspace.imported", "session.imported") or noun == "import":
        return "imports"
    if action == "entry.added":
        return "messages"
    return "runs" if noun in ("run", "job", "backup") else "changes"


def _of_accesses(
    group: Sequence[AccessRecord], rows: Mapping[int, Sequence[AccessedRow]], places: Mapping[int, list[Place]]
) -> Item:
    first = group[0]
    text, shown, more = summary_of(group, rows, places)
    kind = "reads" if first.is_by_agent else "views"
    via = first.get_via_display() if len(group) == 1 else ""
    return Item(f"access-{first.pk}", kind, first.at, first.actor_name, text, via, shown, more, len(group))
