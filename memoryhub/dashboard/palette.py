"""Rows of the command palette: workspaces, sessions and documents by name, memory and knowledge by content."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, tzinfo
from typing import Any, TypeVar

from django.db import connection
from django.db.models import Q, QuerySet

from knowledge_app.models import MemoryDocument
from memoryhub.lib.database.any_case import any_case
from memoryhub.lib.search.matching import SearchTooSlow, time_limit
from memoryhub.lib.search.query import Query, parse
from memoryhub.lib.search.tokenizing import fold
from memoryhub.search.filters import Scope
from memoryhub.search.ranking import RankOptions, SearchResults, find
from sessions_app.models import Session, Workspace

MAX_ROWS = 12  # in total
MAX_OF_A_KIND = 5
MIN_CHARS = 2  # of a text to look up rows
MILLISECONDS = 40  # for each lookup by name
Row = TypeVar("Row")
PLAIN = RankOptions(graph=False, dense=False)


@dataclass(frozen=True)
class PaletteMatches:
    """Matches for a text, each list best first. ``conversations``: sessions by what was said in them."""

    workspaces: list[Workspace] = field(default_factory=list)
    sessions: list[Session] = field(default_factory=list)
    documents: list[MemoryDocument] = field(default_factory=list)
    found: SearchResults | None = None
    conversations: list[Session] = field(default_factory=list)


def palette_matches(
    visible: QuerySet[Workspace], scope: Scope, text: str, *, now: datetime, zone: tzinfo
) -> PaletteMatches:
    """Return the matches for a text, at most five of each kind; none for less than two letters.

    ``visible``: the workspaces that the person may see; ``scope``: those whose rows are searched. Six queries and
    those of two searches; a lookup that takes too long returns nothing.
    """
    if len(text.strip()) < MIN_CHARS:
        return PaletteMatches()
    named = any_case("name__icontains", text.strip()) | Q(slug__istartswith=text.strip())
    query = parse(text, now=now, prefix=True, zone=zone)
    sessions = _within_time_limit(_sessions(scope, text.strip()))
    return PaletteMatches(
        _within_time_limit(visible.filter(named).order_by("name", "pk")),
        sessions,
        _within_time_limit(
            _in(scope, MemoryDocument.objects.filter(any_case("name__icontains", text.strip()))).order_by(
                "name", "pk"
            )
        ),
        find(scope, query, now=now, kinds=("memory", "knowledge"), options=PLAIN, limit=MAX_OF_A_KIND),
        _conversations(scope, query, sessions, now=now) if len(sessions) < MAX_OF_A_KIND else [],
    )


def _conversations(scope: Scope, query: Query, named: Sequence[Session], *, now: datetime) -> list[Session]:
    """Return further sessions, by what was said in them."""
    found = find(scope, query, now=now, kinds=("session",), options=PLAIN, limit=MAX_OF_A_KIND)
    rows = [hit.row for hit in found.hits if isinstance(hit.row, Session) and hit.row not in named]
    return rows[: MAX_OF_A_KIND - len(named)]


def _sessions(scope: Scope, text: str) -> QuerySet[Session]:
    fits = any_case("key__icontains", text) | any_case("title__icontains", text)
    return _in(scope, Session.objects.filter(fits)).order_by("-updated_at", "-pk")


def _in(scope: Scope, rows: QuerySet[Any]) -> QuerySet[Any]:
    of_scope = rows if scope.workspaces is None else rows.filter(workspace__in=scope.workspaces)
    return of_scope.select_related("workspace")


def _within_time_limit(rows: QuerySet[Any]) -> list[Any]:
    try:
        with time_limit(connection, MILLISECONDS):
            return list(rows[:MAX_OF_A_KIND])
    except SearchTooSlow:
        return []


def matches_label(label: str, text: str) -> bool:
    """Tell whether every typed word begins a word of a label."""
    words = fold(label).split()
    return all(any(word.startswith(typed) for word in words) for typed in fold(text).split())


def share_rows(groups: Sequence[list[Row]], most: int = MAX_ROWS) -> list[list[Row]]:
    """Cut the groups to a total of ``most`` rows, taking one row of each in turn."""
    sizes = [0] * len(groups)
    while sum(sizes) < most and any(size < len(group) for size, group in zip(sizes, groups, strict=True)):
        for place, group in enumerate(groups):
            if sizes[place] < len(group) and sum(sizes) < most:
                sizes[place] += 1
    return [group[:size] for size, group in zip(sizes, groups, strict=True)]
