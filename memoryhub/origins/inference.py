"""Infer where the facts of imported documents came from: tool calls, history entries, runs and messages.

Three kinds of evidence, each stored as ``FactSource`` with its kind, and nothing beyond them:

- *written by*: the first tool call whose arguments contain the fact's exact text;
- *recorded with*: the history entry and the agent's run of the same time, if there is only one;
- *probably from*: the messages that the hub's search ranks first for the fact's words, if they cover enough of them.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import TypeVar

from django.db import transaction
from django.db.models import DateTimeField, Exists, ExpressionWrapper, F, OuterRef, Q, QuerySet

from knowledge_app.models import Fact, FactSource, HistoryEntry
from knowledge_app.services.documents.fact_steps import steps_of
from memoryhub.lib.database import db_retry
from memoryhub.lib.search.query import Filter, parse
from memoryhub.origins.explanation import correction_of
from memoryhub.origins.written_calls import facts_written, texts_written
from memoryhub.search.filters import Scope
from memoryhub.search.ranking import Hit, RankOptions, SearchResults, find
from sessions_app.models import Entry, Run, Workspace
from sessions_app.services.workspaces import lock_workspace

MIN_COVERAGE = 0.4  # of a fact's words, by weight: measured by bench/origins.py
MIN_OWN = 0.25  # in the message itself: the search also counts words of the messages around it
USER_FACTOR = 1.25  # people state facts, and agents repeat them: a user's message may score this much lower
SHOWN = 3  # messages for each fact
CANDIDATES = 20
MAX_FACTS = 200  # for each call by default; the others are left to the next one
SAME_TIME = timedelta(seconds=60)
SAME_CALL_TIME = timedelta(minutes=2)  # HISTORY.md has minutes
RETRY_WITHIN = timedelta(days=1)  # an agent may save a session after the memory that it wrote from it
OUTSIDE = ("sync", "agent")  # authors of revisions whose facts have unknown origins
OWN_SESSIONS = ("dream:", "heartbeat")  # of agents' own programs: they repeat the memory
_SYNTAX = re.compile(r'["“”„():+|*~^]|(?<!\w)-')
_OPERATORS = re.compile(r"\b(AND|OR|NOT)\b")
Row = TypeVar("Row", HistoryEntry, Run)
_WORDS_ONLY = RankOptions(graph=False, dense=False, correct=False)


@dataclass
class _Origins:
    """The evidence for one fact. ``written_by``: the call's entry; ``messages``: with scores, best first."""

    fact: Fact
    written_by: Entry | None = None
    history_entry: HistoryEntry | None = None
    run: Run | None = None
    messages: list[tuple[Entry, float]] = field(default_factory=list)

    def sources(self) -> list[FactSource]:
        kinds = FactSource.Kind
        rows = []
        if self.written_by:
            rows.append(FactSource(fact=self.fact, kind=kinds.WRITTEN_BY, entry=self.written_by))
        if self.history_entry or self.run:
            rows.append(
                FactSource(fact=self.fact, kind=kinds.RECORDED_WITH, history_entry=self.history_entry, run=self.run)
            )
        return rows + [
            FactSource(fact=self.fact, kind=kinds.PROBABLY_FROM, entry=entry, score=score)
            for entry, score in self.messages
        ]


def infer_origins(workspace: Workspace, *, now: datetime, limit: int = MAX_FACTS) -> int:
    """Infer the origins of facts that were imported or reworded since; return the number of facts with evidence.

    At most ``limit`` facts, the newest first. Reads first, then writes in one transaction. Idempotent.
    """
    facts = list(pending_facts(workspace, now)[:limit])
    if not facts:
        return 0
    calls = _first_calls(workspace, facts)
    has_messages = Entry.objects.filter(workspace=workspace).exists()
    found = [_infer(workspace, fact, calls.get(fact.pk), now, has_messages=has_messages) for fact in facts]
    return _store(workspace, found, now)


def pending_facts(workspace: Workspace, now: datetime) -> QuerySet[Fact]:
    """Return the current facts whose origins haven't been inferred yet, or may be found with later messages.

    For later messages, a fact is looked up again whenever its age has doubled.
    """
    newest = Entry.objects.filter(workspace=workspace).order_by("-id").values_list("recorded_at", flat=True).first()
    written = FactSource.objects.filter(fact=OuterRef("pk"), kind=FactSource.Kind.WRITTEN_BY)
    doubled_at = F("origins_checked_at") + (F("origins_checked_at") - F("born__created_at"))
    may_follow = Q(born__created_at__gt=now - RETRY_WITHIN, origins_checked_at__lt=newest, doubled_at__lte=now)
    may_follow &= ~Q(Exists(written))
    by_run = FactSource.objects.filter(fact=OuterRef("pk"), kind=FactSource.Kind.LEARNED)
    facts = Fact.objects.filter(workspace=workspace, died=None).filter(~Exists(by_run))
    facts = facts.filter(
        Q(born__author_kind__in=OUTSIDE, accepted=None) | Q(accepted__proposal__author_kind__in=OUTSIDE)
    )
    facts = facts.alias(doubled_at=ExpressionWrapper(doubled_at, DateTimeField()))
    is_due = Q(origins_checked_at=None) | may_follow if newest else Q(origins_checked_at=None)
    return facts.filter(is_due).select_related("document", "born__base", "accepted__proposal").order_by("-id")


def _first_calls(workspace: Workspace, facts: Sequence[Fact]) -> dict[int, Entry]:
    """Return the first message with a tool call that wrote each fact, by the fact's key."""
    by_document: defaultdict[str, dict[str, list[Fact]]] = defaultdict(lambda: defaultdict(list))
    for fact in facts:
        by_document[fact.document.name][fact.text].append(fact)
    rows = Entry.objects.in_conversation().filter(workspace=workspace, kind=Entry.Kind.TOOL_CALL)
    if all(fact.born.base for fact in facts):  # later changes: earlier calls wrote earlier revisions
        since = min(fact.born.base.created_at for fact in facts if fact.born.base) - RETRY_WITHIN
        rows = rows.filter(Q(recorded_at__gte=since) | Q(occurred_at__gte=since))
    found: dict[int, Entry] = {}
    for entry in rows.select_related("session").order_by("id").iterator(chunk_size=500):
        for name, by_text in by_document.items():
            for text in facts_written(entry.tool_calls, name) & by_text.keys():
                for fact in by_text[text]:
                    if fact.pk not in found or _time_of(entry) < _time_of(found[fact.pk]):
                        found[fact.pk] = entry
    return found


def _time_of(entry: Entry) -> tuple[datetime, int]:
    return entry.occurred_at or datetime.max.replace(tzinfo=UTC), entry.pk


def _infer(workspace: Workspace, fact: Fact, call: Entry | None, now: datetime, *, has_messages: bool) -> _Origins:
    origins = _Origins(fact, call)
    if fact.accepted is None and correction_of(steps_of(fact))[0]:  # the words are a person's: nothing is guessed
        return origins
    if call is not None:
        origins.history_entry = _history_of_call(workspace, call)
    elif fact.born.base is not None:  # in a first import, everything has the same time
        origins.history_entry = _only(_near(HistoryEntry.objects.filter(run=None), "recorded_at", fact))
        origins.run = _only(
            _near(Run.objects.filter(kind=Run.Kind.CONSOLIDATION, origin=Run.Origin.AGENT), "created_at", fact)
        )
    if has_messages:
        origins.messages = probable_messages(workspace, fact.text, until=_known_since(fact, call), call=call, now=now)
    return origins


def _known_since(fact: Fact, call: Entry | None) -> datetime:
    return (call.occurred_at if call else None) or _written_at(fact)


def _written_at(fact: Fact) -> datetime:
    """Return when somebody first wrote a fact: for one that a person accepted, when it was proposed."""
    accepted = fact.accepted
    return accepted.proposal.created_at if accepted and accepted.proposal else fact.born.created_at


def _history_of_call(workspace: Workspace, call: Entry) -> HistoryEntry | None:
    """Return the history entry that the same call wrote, or the only one of its time."""
    entries = HistoryEntry.objects.filter(workspace=workspace)
    same = entries.filter(content__in=texts_written(call.tool_calls)).order_by("id").first()
    if same is not None:
        return same
    if call.occurred_at is None:
        return None
    start, end = call.occurred_at - SAME_CALL_TIME, call.occurred_at + SAME_CALL_TIME
    return _only(entries.filter(occurred_at__gte=start, occurred_at__lte=end))


def _near(rows: QuerySet[Row], name: str, fact: Fact) -> QuerySet[Row]:
    at = _written_at(fact)
    within = {f"{name}__gte": at - SAME_TIME, f"{name}__lte": at + SAME_TIME}
    return rows.filter(workspace=fact.workspace_id, **within)


def _only(rows: QuerySet[Row]) -> Row | None:
    """Return the row if there is exactly one: several of the same time prove nothing."""
    found = list(rows.order_by("id")[:2])
    return found[0] if len(found) == 1 else None


def probable_messages(
    workspace: Workspace, text: str, *, until: datetime, call: Entry | None = None, now: datetime
) -> list[tuple[Entry, float]]:
    """Return up to three messages that probably state a fact, best first, each with its score of up to 1.

    The score is the part of the fact's words that the message covers, weighted by rarity. Messages after ``until``
    are left out, as are the sessions in which programs read their memory to themselves.
    """
    words = _OPERATORS.sub(lambda match: match[0].lower(), _SYNTAX.sub(" ", text))
    query = replace(parse(words, now=now), required=(), excluded=(), filters=(Filter("kind", ("message",)),))
    if not query.ranked_terms:
        return []
    found = find(
        Scope((workspace.pk,), own_sessions=True),
        query,
        now=now,
        kinds=("entry",),
        options=_WORDS_ONLY,
        limit=CANDIDATES,
    )
    ranked = []
    for hit in found.hits:
        entry, coverage = hit.row, round(min(1.0, hit.scored.coverage), 4)
        is_close = coverage >= MIN_COVERAGE and _own_coverage(hit, found) >= MIN_OWN
        if isinstance(entry, Entry) and is_close and _may_be_origin(entry, until, call):
            factor = USER_FACTOR if entry.role == "user" else 1.0
            ranked.append((-hit.score * factor, -entry.pk, entry, coverage))
    return [(entry, coverage) for *_, entry, coverage in sorted(ranked, key=lambda one: one[:2])[:SHOWN]]


def _own_coverage(hit: Hit, found: SearchResults) -> float:
    weights = found.weights_by_kind[hit.kind].weights
    return sum(weights[number] for number in hit.scored.own.shares) / (sum(weights) or 1.0)


def _may_be_origin(entry: Entry, until: datetime, call: Entry | None) -> bool:
    if entry.session.key.startswith(OWN_SESSIONS):
        return False
    if call is not None and (call.session_id, call.epoch) == (entry.session_id, entry.epoch):
        return entry.position < call.position
    return entry.occurred_at is None or entry.occurred_at <= until


@db_retry.retried
@transaction.atomic
def _store(workspace: Workspace, found: Iterable[_Origins], now: datetime) -> int:
    """Store the evidence for facts that still have the same text; replace earlier guesses."""
    lock_workspace(workspace.pk)  # nothing can be forgotten at the same time
    origins = {one.fact.pk: one for one in found}
    current = dict(Fact.objects.filter(pk__in=origins, died=None).values_list("pk", "text"))
    same = [one for pk, one in origins.items() if current.get(pk) == one.fact.text]
    pks = [one.fact.pk for one in same]
    kinds = (FactSource.Kind.PROBABLY_FROM, FactSource.Kind.RECORDED_WITH)
    FactSource.objects.filter(fact__in=pks, kind__in=kinds).delete()
    kept = set(FactSource.objects.filter(fact__in=pks, entry__isnull=False).values_list("fact", "kind", "entry"))
    rows = [row for one in same for row in one.sources()]
    entries = set(Entry.objects.filter(pk__in=[row.entry_id for row in rows]).values_list("pk", flat=True))
    rows = [
        row
        for row in rows
        if (row.fact_id, row.kind, row.entry_id) not in kept and (row.entry_id is None or row.entry_id in entries)
    ]
    FactSource.objects.bulk_create(rows, batch_size=500)
    Fact.objects.filter(pk__in=pks).update(origins_checked_at=now)
    return len({row.fact_id for row in rows})
