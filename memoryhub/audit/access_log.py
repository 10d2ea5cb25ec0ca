"""The access log, and the runs that read a row and the changes made to it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any, overload

from django.db.models import F, Q, QuerySet, Window
from django.db.models.functions import RowNumber
from django.utils.translation import gettext, ngettext, ngettext_lazy
from django.utils.translation import gettext_lazy as _

from knowledge_app.models import EditedRow, Fact, FactSource, MemoryRevision
from memoryhub.lib.errors import NotFound
from memoryhub.models import AccessedRow, AccessRecord
from sessions_app.models import AuditRecord, Entry, Run, Workspace
from sessions_app.services.access_log import DOCUMENTS, ENTRIES, accesses_of_entry, accesses_of_fact, accesses_of_row

if TYPE_CHECKING:
    from django_stubs_ext import StrOrPromise

ACTIONS = {  # label, and text with the number of rows
    "entries.read": (
        _("Read entries"),
        ngettext_lazy("read %(rows)s entry", "read %(rows)s entries", "count"),
    ),
    "context.read": (
        _("Read context"),
        ngettext_lazy("read the context of %(rows)s part", "read the context of %(rows)s parts", "count"),
    ),
    "session.exported": (
        _("Exported entries"),
        ngettext_lazy("exported %(rows)s entry", "exported %(rows)s entries", "count"),
    ),
    "summary.exported": (
        _("Exported summaries"),
        ngettext_lazy("exported %(rows)s summary", "exported %(rows)s summaries", "count"),
    ),
    "search.read": (
        _("Found rows"),
        ngettext_lazy("found %(rows)s row", "found %(rows)s rows", "count"),
    ),
    "matches.exported": (
        _("Exported found rows"),
        ngettext_lazy("exported %(rows)s found row", "exported %(rows)s found rows", "count"),
    ),
    "document.read": (
        _("Read document revisions"),
        ngettext_lazy("read %(rows)s document revision", "read %(rows)s document revisions", "count"),
    ),
    "facts.exported": (
        _("Exported memory lines"),
        ngettext_lazy("exported %(rows)s memory line", "exported %(rows)s memory lines", "count"),
    ),
    "history.exported": (
        _("Exported history entries"),
        ngettext_lazy("exported %(rows)s history entry", "exported %(rows)s history entries", "count"),
    ),
    "graph.read": (
        _("Read rows in the graph"),
        ngettext_lazy("read %(rows)s row in the graph", "read %(rows)s rows in the graph", "count"),
    ),
    "memory.read": (
        _("Read memory"),
        ngettext_lazy("read %(rows)s row of the memory", "read %(rows)s rows of the memory", "count"),
    ),
    "facts.read": (
        _("Read memory lines"),
        ngettext_lazy("read %(rows)s memory line", "read %(rows)s memory lines", "count"),
    ),
    "history.read": (
        _("Read history entries"),
        ngettext_lazy("read %(rows)s history entry", "read %(rows)s history entries", "count"),
    ),
    "knowledge.read": (
        _("Read knowledge entries"),
        ngettext_lazy("read %(rows)s knowledge entry", "read %(rows)s knowledge entries", "count"),
    ),
    "knowledge.exported": (
        _("Exported knowledge entries"),
        ngettext_lazy("exported %(rows)s knowledge entry", "exported %(rows)s knowledge entries", "count"),
    ),
    "observations.read": (
        _("Read observations"),
        ngettext_lazy("read %(rows)s observation", "read %(rows)s observations", "count"),
    ),
    "observations.recalled": (
        _("Recalled observations"),
        ngettext_lazy("recalled %(rows)s observation", "recalled %(rows)s observations", "count"),
    ),
    "observations.exported": (
        _("Exported observations"),
        ngettext_lazy("exported %(rows)s observation", "exported %(rows)s observations", "count"),
    ),
    "key_value.read": (
        _("Read key-values"),
        ngettext_lazy("read %(rows)s key-value", "read %(rows)s key-values", "count"),
    ),
    "key_value.exported": (
        _("Exported key-values"),
        ngettext_lazy("exported %(rows)s key-value", "exported %(rows)s key-values", "count"),
    ),
    "cached.read": (
        _("Read cached responses"),
        ngettext_lazy("read %(rows)s cached response", "read %(rows)s cached responses", "count"),
    ),
    "cached.exported": (
        _("Exported cached responses"),
        ngettext_lazy("exported %(rows)s cached response", "exported %(rows)s cached responses", "count"),
    ),
}
TABLES = {  # with the label of one row
    "sessions": _("session"),
    "documents": _("document"),
    "summaries": _("summary"),
    "history": _("history entry"),
    "knowledge": _("knowledge entry"),
    "observations": _("observation"),
    "key_values": _("key-value"),
    "cached": _("cached response"),
}
OBJECT_KINDS = {"knowledge": "knowledge", "key_values": "key_value"}  # in audit records
PARENTS = {"sessions": ENTRIES, "documents": DOCUMENTS}  # tables in the access log
MAX_TOUCHES = 200  # runs and changes listed for a row
NAMED_ROWS = 4  # listed for an access


@dataclass(frozen=True)
class Touch:
    """A run that read a row, or a change to it. ``revision``: document and number of the resulting revision."""

    at: datetime
    who: str
    text: str
    is_change: bool
    run: int | None = None
    revision: tuple[int, int] | None = None


@dataclass(frozen=True)
class Target:
    """A row, its accesses, and the runs and changes that touched it, latest first.

    ``row``: its table, as accesses name it, and its key.
    """

    label: str
    accesses: QuerySet[AccessRecord]
    touches: list[Touch] = field(default_factory=list)
    entry: Entry | None = None
    fact: Fact | None = None
    row: tuple[str, int] | None = None


@overload
def access_label(action: str) -> StrOrPromise: ...
@overload
def access_label(action: str, count: int) -> str: ...
def access_label(action: str, count: int | None = None) -> StrOrPromise:
    """Return the label of an action, or its text with the number of rows."""
    known = ACTIONS.get(action)
    name = action.replace(".", ": ").replace("_", " ")
    if count is None:
        return known[0] if known else f"{name} rows".capitalize()
    if known:
        return known[1] % {"count": count, "rows": f"{count:,}"}
    label = ngettext("%(action)s %(rows)s row", "%(action)s %(rows)s rows", count)
    return label % {"action": name, "rows": f"{count:,}"}


def accesses_in(workspace: Workspace) -> QuerySet[AccessRecord]:
    """Return the access records of a workspace, unordered."""
    return AccessRecord.objects.filter(workspace=workspace)


def find_target(workspace: Workspace, *, entry: int | None = None, fact: int | None = None, row: str = "") -> Target:
    """Return the row with its accesses. ``row``: "table:key". Raises NotFound."""
    if entry is not None:
        return _entry_target(workspace, entry)
    if fact is not None:
        return _fact_target(workspace, fact)
    table, _, key = row.partition(":")
    if table == "facts" and key.isdecimal():
        return _fact_target(workspace, int(key))
    if table not in TABLES or not (key.isascii() and key.isdecimal() and len(key) <= 18):
        raise NotFound(
            f"Write the row as table:key, for example knowledge:12. Tables: {', '.join(TABLES)}.", code="unknown_row"
        )
    pk = int(key)
    label = gettext("%(row)s %(number)s") % {"row": TABLES[table], "number": pk}
    if table in PARENTS:
        return Target(label, _within(accesses_in(workspace), PARENTS[table], pk), row=(table, pk))
    accesses = accesses_of_row(table, pk).filter(workspace=workspace)
    records = AuditRecord.objects.filter(workspace=workspace, action__in=("knowledge.added", "key_value.written"))
    made = records.filter(object_kind=OBJECT_KINDS.get(table, ""), object_id=key)
    return Target(label, accesses, _latest_first(_added(made) + _edits(workspace, table, pk)), row=(table, pk))


def _within(log: QuerySet[AccessRecord], table: str, parent: int) -> QuerySet[AccessRecord]:
    return log.filter(pk__in=AccessedRow.objects.filter(table=table, parent=parent).values("access"))


def _entry_target(workspace: Workspace, pk: int) -> Target:
    entry = Entry.objects.select_related("session").filter(workspace=workspace, pk=pk).first()
    if entry is None:
        raise NotFound(f"{workspace.slug} has no entry {pk}.")
    runs = Run.objects.filter(
        session=entry.session_id,
        epoch=entry.epoch,
        from_position__lte=entry.position,
        to_position__gt=entry.position,
        started_at__isnull=False,
    )
    values = {"position": f"{entry.position:,}", "session": entry.session.key}
    label = gettext("entry #%(position)s of %(session)s") % values
    accesses = accesses_of_entry(entry).filter(workspace=workspace)
    records = AuditRecord.objects.filter(session=entry.session_id, action="entry.added", at=entry.recorded_at)
    records_with_entry = [one for one in records if one.detail["first"] <= entry.position <= one.detail["last"]]
    touches = _added(records_with_entry) + _runs(runs) + _exports(workspace, entry.recorded_at)
    return Target(label, accesses, _latest_first(touches), entry=entry)


def _fact_target(workspace: Workspace, pk: int) -> Target:
    rows = Fact.objects.select_related("document", "born", "died")
    fact = rows.filter(workspace=workspace, pk=pk).first()
    if fact is None:
        raise NotFound(f"{workspace.slug} has no memory line {pk}.")
    died = fact.died.number if fact.died else None
    accesses = accesses_of_fact(fact.pk, fact.document_id, born=fact.born.number, died=died)
    touches = [_change(fact.born, gettext("wrote it with revision %(number)s"))]
    touches += [_change(fact.died, gettext("removed it with revision %(number)s"))] if fact.died else []
    made_by = FactSource.objects.filter(fact=fact, run__isnull=False).values("run")
    touches += _runs(Run.objects.filter(pk__in=made_by, started_at__isnull=False))
    touches += _runs(_consolidations_reading(fact, died).exclude(pk__in=made_by))
    touches += _exports(workspace, fact.born.created_at)
    values = {"number": fact.pk, "document": fact.document.name}
    label = gettext("memory line %(number)s of %(document)s") % values
    row = ("facts", fact.pk)
    return Target(label, accesses.filter(workspace=workspace), _latest_first(touches), fact=fact, row=row)


def _consolidations_reading(fact: Fact, died: int | None) -> QuerySet[Run]:
    """Return the consolidations that read a revision with the fact. They only read MEMORY.md."""
    if fact.document.name != "MEMORY.md":
        return Run.objects.none()
    until = Q() if died is None else Q(base_revision_number__lt=died)
    return Run.objects.filter(
        until,
        workspace=fact.workspace_id,
        kind=Run.Kind.CONSOLIDATION,
        started_at__isnull=False,
        base_revision_number__gte=fact.born.number,
    )


def _exports(workspace: Workspace, since: datetime) -> list[Touch]:
    """Return the exports of the whole workspace since the row was added."""
    records = AuditRecord.objects.filter(object_kind="workspace", object_id=str(workspace.pk), at__gte=since)
    exports = records.filter(action="workspace.exported").order_by("-id")[:MAX_TOUCHES]
    words = gettext("exported the whole workspace")
    return [Touch(one.at, one.actor_name, words, is_change=False) for one in exports]


def _change(revision: MemoryRevision, words: str) -> Touch:
    text = words % {"number": revision.number}
    at = (revision.document_id, revision.number)
    return Touch(revision.created_at, revision.author_name, text, is_change=True, run=revision.run_id, revision=at)


def _added(records: Iterable[AuditRecord]) -> list[Touch]:
    return [Touch(one.at, one.actor_name, gettext("added it"), is_change=True) for one in records]


def _edits(workspace: Workspace, table: str, pk: int) -> list[Touch]:
    rows = EditedRow.objects.filter(run__workspace=workspace, table=table, object_id=pk).select_related("run")
    return [
        Touch(row.run.created_at, row.run.requested_by, gettext("changed it"), is_change=True, run=row.run_id)
        for row in rows.order_by("-run_id")[:MAX_TOUCHES]
    ]


def _runs(runs: QuerySet[Run]) -> list[Touch]:
    return [
        Touch(
            run.started_at or run.created_at,
            run.model or run.requested_by or run.origin,
            _run_label(run),
            is_change=False,
            run=run.pk,
        )
        for run in runs.order_by("-id")[:MAX_TOUCHES]
    ]


def _run_label(run: Run) -> str:
    whose = run.requested_by or run.get_origin_display()
    label = gettext("%(kind)s %(number)s read it for %(whose)s")
    return label % {"kind": run.get_kind_display(), "number": run.pk, "whose": whose}


def _latest_first(touches: Sequence[Touch]) -> list[Touch]:
    return sorted(touches, key=lambda touch: touch.at, reverse=True)[:MAX_TOUCHES]


def first_rows(records: Sequence[AccessRecord], *, most: int = NAMED_ROWS) -> dict[int, list[AccessedRow]]:
    """Return the first rows of each access, by the access's id."""
    numbered = AccessedRow.objects.filter(access__in=[record.pk for record in records]).annotate(
        place=Window(RowNumber(), partition_by=F("access"), order_by=F("id").asc())
    )
    found: dict[int, list[AccessedRow]] = {record.pk: [] for record in records}
    for row in numbered.filter(place__lte=most).order_by("access", "id"):
        found[row.access_id].append(row)
    return found


def access_document(record: AccessRecord, rows: Sequence[AccessedRow]) -> dict[str, Any]:
    """Return an access as a JSON document with some or all of its ``rows``."""
    return {
        "id": record.pk,
        "at": record.at,
        "who": {"kind": record.actor_kind, "name": record.actor_name},
        "via": record.via,
        "action": record.action,
        "text": access_label(record.action, record.row_count),
        "count": record.row_count,
        "rows": [_row_document(row) for row in rows],
    }


def _row_document(row: AccessedRow) -> dict[str, Any]:
    if row.table == ENTRIES:
        return {"table": row.table, "session": row.parent, "epoch": row.epoch, "first": row.first, "last": row.last}
    if row.table == DOCUMENTS:
        return {"table": row.table, "document": row.parent, "revision": row.first}
    return {"table": row.table, "id": row.first}


def touch_document(touch: Touch) -> dict[str, Any]:
    """Return a touch as a JSON document."""
    return {"at": touch.at, "who": touch.who, "text": touch.text, "is_change": touch.is_change, "run": touch.run}
