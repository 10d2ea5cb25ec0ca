"""What the memory list shows: its filters, and the rows of each kind that pass them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from datetime import UTC, date, datetime, timedelta
from functools import cached_property
from typing import Any
from urllib.parse import urlencode

from django.db.models import DateTimeField, Exists, F, OuterRef, Q, QuerySet, Value
from django.db.models.functions import Coalesce
from django.utils import timezone

from knowledge_app.models import Fact, HistoryEntry, KeyValue, KnowledgeEntry, MemoryRevision, Observation
from knowledge_app.services.rows.importing import REASON as IMPORT_REASON
from memoryhub.lib.date_ranges import end_of_day, month_of, start_of_day
from memoryhub.lib.search.query import parse
from memoryhub.origins.certainty import has_certainty
from memoryhub.origins.explanation import BY_PERSON
from memoryhub.search.counts import as_searched
from memoryhub.search.filters import Scope, filtered_kinds
from sessions_app.models import AuditRecord, Workspace

KINDS = ("memory", "knowledge", "observation", "key_value", "history", "document")  # of memoryhub.search.KINDS
MODELS: dict[str, Any] = {
    "memory": Fact,
    "knowledge": KnowledgeEntry,
    "observation": Observation,
    "key_value": KeyValue,
    "history": HistoryEntry,
    "document": MemoryRevision,
}
LIVING: dict[str, dict[str, Any]] = {kind: {"withdrawn_at": None} for kind in KINDS} | {
    "memory": {"died": None},
    "document": {"pk": F("document__head")},
}
WORKSPACES = dict.fromkeys(KINDS, "workspace") | {"document": "document__workspace"}
TIMES: dict[str, Any] = {
    "memory": F("born__created_at"),
    "knowledge": Coalesce("created_at", "updated_at"),
    "observation": Coalesce("occurred_at", "recorded_at"),
    "key_value": F("updated_at"),
    "history": Coalesce("occurred_at", "recorded_at"),
    "document": F("created_at"),
}
NEVER = datetime(1970, 1, 1, tzinfo=UTC)
VERIFIED = ("memory", "knowledge", "observation")  # kinds with last_verified_at and review_by
AGES = {"1": 1, "7": 7, "30": 30, "90": 90}  # days
MONTHS = {"month": 0, "last-month": 1}  # months back
AUTHORS = {"import": "sync", "agent": "agent", "run": "run"}  # values of author_kind


@dataclass(frozen=True)
class MemoryFilters:
    """Filters of the memory list. Empty values filter nothing.

    ``age``: at most so many days, "older" than 90, "month" or "last-month". ``author``: person, agent, import or run.
    ``review``: held, or past the date of its review. ``all_kinds``: offer kinds of which the agent has none.
    """

    q: str = ""
    kind: str = ""
    category: str = ""
    age: str = ""
    author: str = ""
    certainty: str = ""
    pinned: bool = False
    review: bool = False
    sort: str = ""
    all_kinds: bool = False

    @property
    def is_set(self) -> bool:
        return replace(self, sort="", all_kinds=False) != MemoryFilters()

    def pairs(self, *names: str) -> list[tuple[str, str]]:
        """Return the names and values of the filters that are set: of those named, or of all."""
        values = [(field.name, getattr(self, field.name)) for field in fields(self)]
        chosen = [(name, value) for name, value in values if value and (not names or name in names)]
        return [(name, "1" if value is True else value) for name, value in chosen]

    def query_string(self, **changes: Any) -> str:
        """Return these filters with changes as a query string, without the page."""
        return f"?{urlencode(replace(self, **changes).pairs())}"


@dataclass(frozen=True)
class Matches:
    """The rows of a workspace that pass filters, by kind, each with its sort value ``at``."""

    workspace: Workspace
    filters: MemoryFilters
    now: datetime

    @cached_property
    def by_kind(self) -> Mapping[str, QuerySet[Any]]:
        """Return the rows of every kind that can match, whichever kind is chosen."""
        return {kind: self._narrowed(kind, rows) for kind, rows in self._found().items()}

    @property
    def chosen(self) -> Mapping[str, QuerySet[Any]]:
        """Return the rows of the chosen kind, or of all kinds."""
        kind = self.filters.kind
        return {name: rows for name, rows in self.by_kind.items() if kind in ("", name)}

    def keys(self) -> dict[str, list[int]]:
        """Return the primary keys of all matching rows, by kind."""
        found = {kind: list(rows.order_by("pk").values_list("pk", flat=True)) for kind, rows in self.chosen.items()}
        return {kind: pks for kind, pks in found.items() if pks}

    def _found(self) -> dict[str, QuerySet[Any]]:
        """Return the rows that match the text, as the search reads it.

        Documents stand for their prose: those without facts are listed, and others that match where no fact does.
        """
        if not self.filters.q.strip():
            return {kind: living_rows(kind, self.workspace) for kind in KINDS}
        scope = Scope((self.workspace.pk,))
        query = as_searched(scope, parse(self.filters.q, now=self.now, match_all=True), KINDS)
        matches = {filtered.kind.name: filtered.matches() for filtered in filtered_kinds(scope, query, KINDS)}
        if {"document", "memory"} <= matches.keys():
            said = matches["memory"].order_by().values("document")
            matches["document"] = matches["document"].exclude(document__in=said)
        return matches

    def _narrowed(self, kind: str, found: QuerySet[Any]) -> QuerySet[Any]:
        filters = self.filters
        rows: QuerySet[Any] = found.annotate(at=TIMES[kind])
        if filters.category:
            rows = rows.filter(_in_category(kind, filters.category))
        if filters.age:
            rows = rows.filter(_of_age(filters.age, self.now))
        if filters.author:
            rows = rows.filter(_by_author(kind, filters.author, self.workspace))
        if filters.certainty:
            rows = rows.filter(has_certainty(filters.certainty)) if kind == "memory" else rows.none()
        if filters.pinned:
            rows = rows.filter(pinned=True) if kind == "memory" else rows.none()
        if filters.review:
            rows = rows.filter(_needs_review(kind, self.now.date()))
        rows = rows.annotate(sorted_by=_sort_value(kind, filters.sort))
        return rows


def living_rows(kind: str, workspace: Workspace) -> QuerySet[Any]:
    """Return the rows of a kind that the agent knows; of documents, those that have text but no facts."""
    rows: QuerySet[Any] = MODELS[kind].objects.filter(**LIVING[kind], **{WORKSPACES[kind]: workspace})
    if kind == "document":
        facts = Fact.objects.filter(document=OuterRef("document"), died=None)
        rows = rows.exclude(Exists(facts)).exclude(content="")
    return rows


def _of_age(age: str, now: datetime) -> Q:
    if age == "older":
        return Q(at__lt=now - timedelta(days=90))
    if age in MONTHS:
        first, last = month_of(timezone.localdate(now), back=MONTHS[age])
        return Q(at__range=(start_of_day(first), end_of_day(last)))
    return Q(at__gte=now - timedelta(days=AGES[age]))


def parse_filters(cleaned: Mapping[str, Any]) -> MemoryFilters:
    """Return filters from the values of a valid form."""
    return MemoryFilters(**{field.name: cleaned.get(field.name, field.default) for field in fields(MemoryFilters)})


def _sort_value(kind: str, sort: str) -> Any:
    if sort != "verified":
        return TIMES[kind]
    never = Value(NEVER, output_field=DateTimeField())
    return Coalesce("last_verified_at", never) if kind in VERIFIED else never


def _in_category(kind: str, category: str) -> Q:
    if kind == "memory":
        return Q(category=category) | Q(section=category)
    return Q(category=category) if kind in ("knowledge", "observation") else Q(pk__in=[])


def _needs_review(kind: str, today: date) -> Q:
    is_due = Q(review_by__lte=today) if kind in VERIFIED else Q()
    if kind == "document":
        return Q(pk__in=[])
    is_held = Q(hold__isnull=False) if kind != "memory" else Q()
    return is_due | is_held


def _by_author(kind: str, author: str, workspace: Workspace) -> Q:
    """Return the condition for rows of a kind by an author: who added them, or corrected a fact."""
    if kind == "memory":
        kinds = BY_PERSON if author == "person" else [AUTHORS[author]]
        as_before = Q(corrected=None, accepted=None, born__author_kind__in=kinds)
        return Q(corrected__author_kind__in=kinds) | Q(accepted__proposal__author_kind__in=kinds) | as_before
    if kind == "document":
        return Q(author_kind__in=BY_PERSON if author == "person" else [AUTHORS[author]])
    if kind == "history":
        return _history_by(author, workspace)
    by_run = Q(run__isnull=False) if kind == "observation" else Q(pk__in=[])
    if author == "run":
        return by_run
    states = MODELS[kind].history.filter(id=OuterRef("pk"), history_type="+")
    if author == "import":
        return Q(Exists(states.filter(history_change_reason=IMPORT_REASON)))
    people = _names(workspace, BY_PERSON)
    by_people = Q(history_change_reason__in=[f"{name}: {verb}" for name in people for verb in ("added", "written")])
    if author == "person":
        return Q(Exists(states.filter(by_people))) & ~by_run
    return Q(Exists(states.exclude(by_people).exclude(history_change_reason=IMPORT_REASON))) & ~by_run


def _history_by(author: str, workspace: Workspace) -> Q:
    if author == "run":
        return Q(run__isnull=False)
    if author == "import":
        return Q(run=None) & ~Q(source="")
    kinds = BY_PERSON if author == "person" else ["agent"]
    notes = AuditRecord.objects.filter(workspace=workspace, action="history.noted", actor_kind__in=kinds)
    return Q(run=None, source="") & Q(Exists(notes.filter(at=OuterRef("recorded_at"))))


def _names(workspace: Workspace, kinds: tuple[str, ...]) -> list[str]:
    records = AuditRecord.objects.filter(workspace=workspace, actor_kind__in=kinds)
    return list(records.order_by().values_list("actor_name", flat=True).distinct())
