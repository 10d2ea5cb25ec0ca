"""Group ranked messages by session, so that one long session doesn't fill a page of results."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence

from django.db import connection
from django.db.models import Count

from memoryhub.lib.search.matching import SearchTooSlow, time_limit
from memoryhub.lib.search.query import Query
from memoryhub.lib.search.scoring import ScoredRow
from memoryhub.search.counts import as_searched
from memoryhub.search.filters import WINDOW, Scope, filtered_kinds
from sessions_app.models import Entry

MILLISECONDS = 200
Ranked = tuple[str, float, ScoredRow]  # kind, score, result


def best_of_sessions(ordered: Sequence[Ranked], count: int) -> tuple[list[Ranked], dict[int, int]]:
    """Keep the best ``count`` messages of each session; results of other kinds are all kept. One query.

    Also returns the sessions that were cut, by the key of the last message that is kept of each.
    """
    pks = [one.pk for kind, _, one in ordered if kind == "entry"]
    sessions = dict(Entry.objects.filter(pk__in=pks).values_list("pk", "session")) if len(pks) > count else {}
    kept: list[Ranked] = []
    last: dict[int, int] = {}  # by session
    cut: set[int] = set()
    seen: Counter[int] = Counter()
    for item in ordered:
        session = sessions.get(item[2].pk) if item[0] == "entry" else None
        if session is None:
            kept.append(item)
            continue
        seen[session] += 1
        if seen[session] > count:
            cut.add(session)
        else:
            kept.append(item)
            last[session] = item[2].pk
    return kept, {last[session]: session for session in cut}


def count_messages(scope: Scope, query: Query, kinds: Iterable[str], sessions: Collection[int]) -> dict[int, int]:
    """Return the number of matches of each session among the 10,000 newest messages; empty on a timeout."""
    if not sessions:
        return {}
    found: dict[int, int] = {}
    query = as_searched(scope, query, kinds)
    for filtered in filtered_kinds(scope, query, kinds):
        if filtered.kind.name != "entry":
            continue
        rows = filtered.matches(window=WINDOW).filter(session__in=sessions).order_by()
        try:
            with time_limit(connection, MILLISECONDS):
                found = dict(rows.values_list("session").annotate(n=Count("pk")))
        except SearchTooSlow:
            return {}
    return found
