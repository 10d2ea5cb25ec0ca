"""Documents, facts, knowledge, observations, key-values and the history log at a moment.

The moment is when the hub learned of something, not when its source says that it happened. Documents are rebuilt from
their revisions, curated rows from their stored states, the history log from the times its entries were recorded.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import Max, OuterRef, QuerySet, Subquery
from django.utils.dateparse import parse_datetime

from knowledge_app.models import (
    EditedRow,
    Fact,
    HistoryEntry,
    KeyValue,
    KnowledgeEntry,
    MemoryDocument,
    MemoryRevision,
    Observation,
)
from memoryhub.lib.scanners import MASK
from memoryhub.lib.secrets import looks_secret
from memoryhub.lib.text.facts import FactLine, fact_lines, match_facts
from sessions_app.models import AuditRecord, Workspace

HANDED_ON = ("edited a fact", "undid revision")  # reasons of revisions that can pass a pin on to a new fact
Keys = QuerySet[Any] | Collection[int]
HISTORY = ("pk", "position", "content", "occurred_at", "recorded_at", "withdrawn_at")
FEW = 500  # rows up to which a query lists their keys
_PINNED = re.compile(r"\d+ facts? (pinned|unpinned)\b")


@dataclass(frozen=True)
class _Pin:
    """A record that a fact was pinned or unpinned; ``before`` is None where the record doesn't say."""

    at: datetime
    pinned: bool
    before: bool | None = None


_PinHistory = Sequence[_Pin]


@dataclass(frozen=True)
class DocumentAt:
    """A memory document at a moment; ``revision`` is the number of its head then."""

    pk: int
    name: str
    revision: int
    content: str
    author: str
    reason: str
    written_at: datetime
    is_head: bool = False


@dataclass(frozen=True)
class FactAt:
    """A fact line at a moment. ``pinned`` is None if unknown, ``pk`` if no current fact matches it."""

    pk: int | None
    document: int
    section: str
    category: str
    text: str
    line: int
    pinned: bool | None


@dataclass(frozen=True)
class KnowledgeAt:
    """A knowledge entry at a moment; ``since``: when it got this state."""

    pk: int
    category: str
    content: str
    source: str
    tags: tuple[str, ...]
    withdrawn: bool
    withdrawn_reason: str
    since: datetime


@dataclass(frozen=True)
class ObservationAt:
    """An observation at a moment; ``since``: when it got this state."""

    pk: int
    category: str
    content: str
    source: str
    withdrawn: bool
    withdrawn_reason: str
    since: datetime


@dataclass(frozen=True)
class KeyValueAt:
    """A key-value at a moment, secrets masked. ``state``: the key of the stored state, for restoring it."""

    pk: int
    key: str
    value: str
    is_secret: bool
    withdrawn: bool
    withdrawn_reason: str
    since: datetime
    state: int


@dataclass(frozen=True)
class HistoryAt:
    """A history entry recorded by a moment; ``occurred_at`` is the time in its source."""

    pk: int
    position: int
    content: str
    occurred_at: datetime | None
    recorded_at: datetime
    withdrawn: bool


def documents_at(workspace: Workspace, at: datetime) -> list[DocumentAt]:
    """Return each document at its head revision of a moment, by name. One query."""
    written = MemoryRevision.objects.filter(document=OuterRef("pk"), created_at__lte=at)
    newest = Subquery(written.order_by("-number").values("pk")[:1])
    heads = MemoryDocument.objects.filter(workspace=workspace).order_by().annotate(was=newest).values("was")
    rows = MemoryRevision.objects.filter(pk__in=heads).select_related("document").defer("raw")
    return [_document(row) for row in rows.order_by("document__name")]


def _document(row: MemoryRevision) -> DocumentAt:
    return DocumentAt(
        pk=row.document_id,
        name=row.document.name,
        revision=row.number,
        content=row.content,
        author=row.author_name,
        reason=row.reason,
        written_at=row.created_at,
        is_head=row.pk == row.document.head_id,
    )


def facts_at(workspace: Workspace, documents: Sequence[DocumentAt], at: datetime) -> list[FactAt]:
    """Return the fact lines of documents at a moment, in order. Two queries.

    Lines, categories and sections come from the text. Each line is matched to the most similar fact that was current
    then; whether it was pinned follows from the audit records of that fact.
    """
    numbers = {document.pk: document.revision for document in documents}
    rows = Fact.objects.filter(workspace=workspace, document__in=numbers).select_related("born", "died")
    living: defaultdict[int, list[Fact]] = defaultdict(list)
    for row in rows.defer("born__content", "born__raw", "died__content", "died__raw").order_by("line", "id"):
        number = numbers[row.document_id]
        if row.born.number <= number and (row.died is None or row.died.number > number):
            living[row.document_id].append(row)
    pin_changes = _pin_histories(workspace)
    return [fact for document in documents for fact in _facts_of(document, living[document.pk], pin_changes, at)]


def _facts_of(
    document: DocumentAt, living: Sequence[Fact], pin_changes: dict[int, _PinHistory], at: datetime
) -> list[FactAt]:
    lines = fact_lines(document.content)
    pairs = match_facts([FactLine(row.section, row.category, row.text, row.line) for row in living], lines)
    facts = []
    for place, line in enumerate(lines):
        fact = living[pairs[place]] if place in pairs else None
        facts.append(
            FactAt(
                pk=fact.pk if fact else None,
                document=document.pk,
                section=line.section,
                category=line.category,
                text=line.text,
                line=line.line,
                pinned=_was_pinned(fact, pin_changes.get(fact.pk, []), at) if fact else None,
            )
        )
    return facts


def _pin_histories(workspace: Workspace) -> dict[int, _PinHistory]:
    """Return the recorded pin changes of each fact in order, from audit records and edits."""
    rows = AuditRecord.objects.filter(workspace=workspace, action="facts.curated", object_kind="document")
    pin_changes: defaultdict[int, list[_Pin]] = defaultdict(list)
    for text, detail, at in rows.order_by("id").values_list("text", "detail", "at"):
        if match := _PINNED.search(text):
            for pk in detail.get("facts", []):
                pin_changes[pk].append(_Pin(at, match[1] == "pinned"))
    for pk, before, after, at in _edited(workspace, "facts"):
        if "pinned" in before and "pinned" in after:
            pin_changes[pk].append(_Pin(at, bool(after["pinned"]), bool(before["pinned"])))
    return {pk: sorted(pins, key=lambda pin: pin.at) for pk, pins in pin_changes.items()}


def _edited(workspace: Workspace, table: str) -> Iterator[tuple[int, dict[str, Any], dict[str, Any], datetime]]:
    """Yield the edits of a table's rows in order: key, fields before, fields after, time."""
    rows = EditedRow.objects.filter(run__workspace=workspace, table=table, run__finished_at__isnull=False)
    for pk, before, after, at in rows.order_by("run__finished_at", "id").values_list(
        "object_id", "before", "after", "run__finished_at"
    ):
        if at is not None:
            yield pk, before or {}, after or {}, at


def _was_pinned(fact: Fact, pin_changes: _PinHistory, at: datetime) -> bool | None:
    """Tell whether a fact was pinned; None if the records don't lead to its present state or can't be relied on.

    A fact created by an edit may have inherited the pin of the one it replaced, which isn't recorded.
    """
    if (pin_changes[-1].pinned if pin_changes else False) != fact.pinned:
        return None
    earlier = [pin for pin in pin_changes if pin.at <= at]
    if earlier:
        return earlier[-1].pinned
    if pin_changes and pin_changes[0].before is not None:
        return pin_changes[0].before
    return None if pin_changes and fact.born.reason.startswith(HANDED_ON) else False


def states_at(model: Any, workspace: Workspace, at: datetime, *, pks: Keys | None = None) -> QuerySet[Any]:
    """Return the stored state at a moment of each row of a curated table. One query."""
    kept = model.history.filter(workspace_id=workspace.pk, history_date__lte=at)
    latest = _latest(kept if pks is None else kept.filter(id__in=pks))
    states: QuerySet[Any] = model.history.filter(history_id__in=latest).exclude(history_type="-").order_by("id")
    return states


def changed_between(model: Any, workspace: Workspace, first: datetime, second: datetime) -> QuerySet[Any]:
    """Return the latest state that each row of a curated table got after ``first``, up to ``second``."""
    kept = model.history.filter(workspace_id=workspace.pk, history_date__gt=first, history_date__lte=second)
    states: QuerySet[Any] = model.history.filter(history_id__in=_latest(kept)).order_by("id")
    return states


def _latest(states: QuerySet[Any]) -> QuerySet[Any]:
    latest: QuerySet[Any] = states.order_by().values("id").annotate(latest=Max("history_id")).values("latest")
    return latest


def knowledge_of(states: Iterable[Any]) -> list[KnowledgeAt]:
    """Return states of knowledge entries as plain values."""
    return [
        KnowledgeAt(
            pk=state.id,
            category=state.category,
            content=state.content,
            source=state.source,
            tags=tuple(state.tags),
            withdrawn=state.withdrawn_at is not None,
            withdrawn_reason=state.withdrawn_reason,
            since=state.history_date,
        )
        for state in states
    ]


def observations_of(states: Iterable[Any]) -> list[ObservationAt]:
    """Return states of observations as plain values."""
    return [
        ObservationAt(
            pk=state.id,
            category=state.category,
            content=state.content,
            source=state.source,
            withdrawn=state.withdrawn_at is not None,
            withdrawn_reason=state.withdrawn_reason,
            since=state.history_date,
        )
        for state in states
    ]


def key_values_of(states: Iterable[Any]) -> list[KeyValueAt]:
    """Return states of key-values as plain values, masking every key that was ever secret. One query."""
    found = list(states)
    now = KeyValue.objects.filter(is_secret=True).values_list("pk", flat=True)
    ever = KeyValue.history.filter(is_secret=True).values_list("id", flat=True)
    if len(found) <= FEW:
        keys = [state.id for state in found]
        now, ever = now.filter(pk__in=keys), ever.filter(id__in=keys)
    secret = set(now.order_by().union(ever.order_by()))
    return [_key_value(state, was_ever_secret=state.id in secret) for state in found]


def _key_value(state: Any, *, was_ever_secret: bool) -> KeyValueAt:
    is_secret = was_ever_secret or state.is_secret or looks_secret(state.key, state.value)
    return KeyValueAt(
        pk=state.id,
        key=state.key,
        value=MASK if is_secret else state.value,
        is_secret=is_secret,
        withdrawn=state.withdrawn_at is not None,
        withdrawn_reason=state.withdrawn_reason,
        since=state.history_date,
        state=state.history_id,
    )


def history_entries_at(workspace: Workspace, at: datetime) -> QuerySet[HistoryEntry]:
    """Return the history entries recorded by a moment, unordered."""
    return HistoryEntry.objects.filter(workspace=workspace, recorded_at__lte=at)


def history_of(workspace: Workspace, rows: Iterable[HistoryEntry], at: datetime) -> list[HistoryAt]:
    """Return history entries at a moment: some may have been withdrawn or restored since."""
    since: dict[int, datetime | None] = {}
    for pk, before, _, moment in _edited(workspace, "history"):
        if moment > at and "withdrawn_at" in before and pk not in since:
            since[pk] = parse_datetime(before["withdrawn_at"] or "")
    plain = rows.values_list(*HISTORY, named=True) if isinstance(rows, QuerySet) else rows
    return [_history(row, since.get(row.pk, row.withdrawn_at), at) for row in plain]


def _history(row: Any, withdrawn_at: datetime | None, at: datetime) -> HistoryAt:
    return HistoryAt(
        pk=row.pk,
        position=row.position,
        content=row.content,
        occurred_at=row.occurred_at,
        recorded_at=row.recorded_at,
        withdrawn=withdrawn_at is not None and withdrawn_at <= at,
    )


CURATED: dict[str, Any] = {"knowledge": KnowledgeEntry, "observations": Observation, "key-values": KeyValue}
READERS: dict[str, Any] = {"knowledge": knowledge_of, "observations": observations_of, "key-values": key_values_of}
_COLUMNS = ("id", "withdrawn_at", "withdrawn_reason", "history_date")
COLUMNS = {
    "knowledge": (*_COLUMNS, "category", "content", "source", "tags"),
    "observations": (*_COLUMNS, "category", "content", "source"),
    "key-values": (*_COLUMNS, "key", "value", "is_secret", "history_id"),
}


def read_states(part: str, states: QuerySet[Any]) -> list[Any]:
    """Return states as plain values, reading only the columns they need."""
    found: list[Any] = READERS[part](states.values_list(*COLUMNS[part], named=True))
    return found
