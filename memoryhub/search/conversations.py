"""Rank whole conversations by what was said in them."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field

from memoryhub.lib.search.scoring import BIGRAM, RowShares, ScoredRow, TermWeights
from memoryhub.search.filters import FilteredKind
from memoryhub.search.semantic import Near, NearRow
from sessions_app.models import Entry

FURTHER = 0.1  # factor for the shares of a session's second best message, squared for the third, and so on
MAX_MESSAGES = 8  # of a session that count


@dataclass(frozen=True)
class RankedConversations:
    """Sessions, best first, and the key of the best message of each session that has one."""

    rows: list[ScoredRow] = field(default_factory=list)
    messages: dict[int, int] = field(default_factory=dict)


def rank_conversations(
    filtered: FilteredKind, entries: Sequence[ScoredRow], named: Sequence[ScoredRow], term_weights: TermWeights
) -> RankedConversations:
    """Rank the sessions of scored messages that pass the filters. Two queries.

    ``named``: the scored sessions whose own text (title, key, summary, note) has some of the words. ``term_weights``:
    those of the messages.
    """
    sessions = sessions_of(filtered, [one.pk for one in entries])
    by_session: defaultdict[int, list[ScoredRow]] = defaultdict(list)
    for entry in entries:
        if entry.pk in sessions:
            by_session[sessions[entry.pk]].append(entry)
    own = {one.pk: one for one in named}
    keys = dict.fromkeys([*by_session, *own])
    rows = [_score(pk, own.get(pk), by_session.get(pk, []), term_weights) for pk in keys]
    messages = {pk: members[0].pk for pk, members in by_session.items()}
    return RankedConversations(sorted(rows, key=lambda one: (-one.score, -one.pk)), messages)


def near_sessions(filtered: FilteredKind, entries: Near) -> Near:
    """Return the sessions of messages that are near in meaning, each by its first message. Two queries."""
    sessions = sessions_of(filtered, [one.pk for one in entries])
    found: dict[int, NearRow] = {}
    for one in entries:
        if one.pk in sessions:
            found.setdefault(sessions[one.pk], one._replace(pk=sessions[one.pk]))
    return list(found.values())


def sessions_of(filtered: FilteredKind, entries: Sequence[int]) -> dict[int, int]:
    """Return the sessions of entries, by the entry's key, as far as they pass the filters; two queries."""
    sessions = dict(Entry.objects.filter(pk__in=entries).values_list("pk", "session"))
    kept = set(filtered.rows.filter(pk__in=set(sessions.values())).values_list("pk", flat=True))
    return {pk: session for pk, session in sessions.items() if session in kept}


def _score(pk: int, own: ScoredRow | None, members: Sequence[ScoredRow], term_weights: TermWeights) -> ScoredRow:
    """Score what a session's text and its best messages have of each term, times the factors of the best one."""
    best = max([*members[:1], *([own] if own else [])], key=lambda one: one.score)
    missing: dict[int, float] = {}
    ranked = sorted([*members[:MAX_MESSAGES], *([own] if own else [])], key=lambda one: -one.score)
    for place, one in enumerate(ranked):
        for number, share in one.shares.items():
            missing[number] = missing.get(number, 1.0) * (1 - FURTHER**place * share)
    shares = {number: 1 - rest for number, rest in missing.items()}
    bigrams = best.own.bigrams
    score = term_weights.score(shares) * (1 + BIGRAM * bigrams) * math.prod(best.factors)
    covered = sum(term_weights.weights[number] for number, share in shares.items() if share)
    counts: Counter[int] = Counter()
    for one in ranked:
        counts.update(one.own.counts)
    row = RowShares(counts, best.own.shares, bigrams)
    return ScoredRow(pk, score, row, shares, covered / (sum(term_weights.weights) or 1.0), best.factors)
