"""Matches newest first, their number, and facets."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from heapq import nsmallest

from django.db import connection
from django.db.models import Model, Q
from django.utils.translation import gettext

from memoryhub.lib.masked_text import masked
from memoryhub.lib.search.matching import SearchTooSlow, time_limit
from memoryhub.lib.search.query import Query
from memoryhub.search.counts import INCOMPLETE, Clock, as_searched
from memoryhub.search.filters import WINDOW, FilteredKind, Scope, filtered_kinds, load
from memoryhub.search.kinds import KINDS
from memoryhub.search.month_counts import MONTH, by_month, month_of

MILLISECONDS = 300
LISTING_MILLISECONDS = 200  # for the keys of all kinds
SHOWN_VALUES = 12  # of a facet
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)  # sort key of rows without a time
FACETS = ("kind", "session", "channel", "author", "category", "role", "month")
Cursor = tuple[datetime, str, int]


@dataclass(frozen=True)
class Listed:
    """One matching row, unscored, with the time that orders it."""

    kind: str
    pk: int
    at: datetime
    row: Model

    @property
    def key(self) -> Cursor:
        return self.at, self.kind, self.pk


@dataclass(frozen=True)
class ResultCounts:
    """The number of matches, in all and by kind; ``is_more``: there are more than that.

    ``is_partial``: counting some kinds took too long, and their matches are missing.
    """

    count: int
    is_more: bool
    by_kind: dict[str, int]
    is_partial: bool = False


@dataclass(frozen=True)
class FacetValue:
    """A value of a facet and how many matches have it. ``label``: the title of a session, if it has one."""

    value: str
    count: int
    label: str = ""


def newest(
    scope: Scope,
    query: Query,
    *,
    kinds: Iterable[str] = (),
    limit: int,
    after: Cursor | None = None,
    notes: list[str] | None = None,
    patience: int = 1,
) -> tuple[list[Listed], bool]:
    """Return the newest matches of all kinds in one list, starting after ``after``, and whether there are more.

    Rows without a time come last. Only the 10,000 newest rows of each kind are considered; a kind whose query times
    out is left out, and a sentence about that is added to ``notes``. ``patience``: a factor for the time limits.
    """
    clock = Clock(LISTING_MILLISECONDS, patience)
    keys: list[Cursor] = []
    by_kind: dict[str, FilteredKind] = {}
    for filtered in filtered_kinds(scope, as_searched(scope, query, kinds), kinds):
        by_kind[filtered.kind.name] = filtered
        try:
            with time_limit(connection, clock.left(LISTING_MILLISECONDS)):
                keys += _newest_keys(filtered, limit + 1, after)
        except SearchTooSlow:
            if notes is not None and (note := gettext(INCOMPLETE)) not in notes:
                notes.append(note)
    best = nsmallest(limit + 1, keys, key=_order)
    rows: dict[tuple[str, int], Model] = {}
    for name, filtered in by_kind.items():
        if pks := [pk for _, kind, pk in best[:limit] if kind == name]:
            rows |= {(name, pk): row for pk, row in load(filtered.kind, pks).items()}
    found = [Listed(kind, pk, at, rows[kind, pk]) for at, kind, pk in best[:limit] if (kind, pk) in rows]
    return found, len(best) > limit


def _order(key: Cursor) -> tuple[float, str, int]:
    at, kind, pk = key
    return -at.timestamp(), kind, -pk


def _newest_keys(filtered: FilteredKind, count: int, after: Cursor | None) -> list[Cursor]:
    time, name = filtered.kind.time, filtered.kind.name
    rows = filtered.matches(window=WINDOW)
    dated, undated = rows.filter(**{f"{time}__isnull": False}), rows.filter(**{f"{time}__isnull": True})
    if after:
        at, kind, pk = after
        same = Q(**{time: at}) & (Q(pk__lt=pk) if name == kind else Q() if name > kind else Q(pk__in=[]))
        dated = dated.filter(Q(**{f"{time}__lt": at}) | same)
        if at == EPOCH and name <= kind:
            undated = undated.filter(pk__lt=pk) if name == kind else undated.none()
    found: list[Cursor] = [
        (at, name, pk) for pk, at in dated.order_by(f"-{time}", "-pk").values_list("pk", time)[:count]
    ]
    if len(found) < count:
        left = undated.order_by("-pk").values_list("pk", flat=True)[: count - len(found)]
        found += [(EPOCH, name, pk) for pk in left]
    return found


def count_matches(
    scope: Scope, query: Query, *, kinds: Iterable[str] = (), above: dict[str, int] | None = None, patience: int = 1
) -> ResultCounts:
    """Count matches, up to 10,000 of each kind. ``above``: by kind, count only rows with a greater key.

    ``patience``: a factor for the time limits.
    """
    by_kind: dict[str, int] = {}
    is_more = is_partial = False
    for filtered in filtered_kinds(scope, as_searched(scope, query, kinds), kinds):
        try:
            with time_limit(connection, MILLISECONDS * patience):
                rows = filtered.matches()
                if above is not None:
                    rows = rows.filter(pk__gt=above.get(filtered.kind.name, 0))
                count = rows.order_by()[: WINDOW + 1].count()
        except SearchTooSlow:
            is_partial = True
            continue
        is_more = is_more or count > WINDOW
        if count:
            by_kind[filtered.kind.name] = min(count, WINDOW)
    return ResultCounts(sum(by_kind.values()), is_more, by_kind, is_partial)


def facets(
    scope: Scope, query: Query, *, kinds: Iterable[str] = (), notes: list[str] | None = None, patience: int = 1
) -> dict[str, list[FacetValue]]:
    """Return the values of each facet, commonest first (months: latest first).

    Counts cover the 10,000 newest matches of each kind. A kind whose queries time out is left out as a whole, and
    named in a sentence that is added to ``notes``. ``patience``: a factor for the time limits.
    """
    slow: list[str] = []
    counted: dict[str, Counter[str]] = {name: Counter() for name in FACETS}
    for filtered in filtered_kinds(scope, as_searched(scope, query, kinds), kinds):
        found_here: dict[str, Counter[str]] = {name: Counter() for name in FACETS}
        try:
            with time_limit(connection, MILLISECONDS * patience):
                _count_facets(filtered, found_here)
        except SearchTooSlow:
            slow.append(str(filtered.kind.many))
            continue
        for name, counts in found_here.items():
            counted[name].update(counts)
    if slow and notes is not None:
        notes.append(gettext("Not counted here, as it took too long: %(kinds)s.") % {"kinds": ", ".join(slow)})
    months = sorted(counted.pop("month").items(), reverse=True)
    found = {name: _commonest(counts) for name, counts in counted.items()} | {"month": months[:24]}
    shown = {name: [FacetValue(value, count) for value, count in values] for name, values in found.items() if values}
    if sessions := shown.get("session"):
        titles = session_titles(scope, [one.value for one in sessions])
        shown["session"] = [replace(one, label=titles.get(one.value, "")) for one in sessions]
    return shown


def _commonest(counts: Counter[str]) -> list[tuple[str, int]]:
    return sorted(counts.items(), key=lambda one: (-one[1], one[0]))[:SHOWN_VALUES]


def session_titles(scope: Scope, keys: Sequence[str]) -> dict[str, str]:
    """Return the titles of sessions by key, with secrets masked; one query.

    Keys without a title are left out, and keys that have different titles in several workspaces.
    """
    if not keys:
        return {}
    workspaces = None if scope.workspaces is None else list(scope.workspaces)
    rows = KINDS["session"].rows(workspaces).filter(key__in=keys).exclude(title="")
    titles: defaultdict[str, set[str]] = defaultdict(set)
    for key, title in rows.values_list("key", "title"):
        titles[key].add(masked(title))
    return {key: found.pop() for key, found in titles.items() if len(found) == 1}


def _count_facets(filtered: FilteredKind, counted: dict[str, Counter[str]]) -> None:
    """Count the values of a kind's rows. One query: each would find the matches again, which takes longest."""
    kind = filtered.kind
    lookups = {**kind.facets, **({"kind": "kind"} if kind.name == "entry" else {})}
    rows = filtered.matches(window=WINDOW).order_by()
    if kind.time:
        rows = rows.annotate(month=by_month(kind.time))
        lookups["month"] = "month"
    newest = rows.order_by("-pk")[:WINDOW] if filtered.is_narrowed else rows  # others are within the window already
    found = list(newest.values_list("pk", *lookups.values()))
    if kind.name != "entry" and found:
        counted["kind"][kind.name] += len(found)
    for name, values in zip(lookups, list(zip(*found, strict=True))[1:], strict=False):
        for value, count in Counter(values).items():
            if value:
                shown = month_of(value).date().isoformat()[:MONTH] if name == "month" else value
                counted[name][shown] += count
