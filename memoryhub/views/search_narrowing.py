"""Filters as a search page shows them: those that are set, to be taken away, and those that could be."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date

from memoryhub.flows.search import KINDS
from memoryhub.flows.search.listing import FacetValue
from memoryhub.lib.search.query import Filter, Query, with_filter, without_filter
from memoryhub.views.searching import Asked

LABELS = {
    "kind": "Kind",
    "session": "Session",
    "channel": "Channel",
    "author": "Author",
    "category": "Category",
    "role": "Role",
    "month": "Month",
}


@dataclass(frozen=True)
class Chip:
    """A filter that is set, as it is typed, and the address of the same search without it."""

    text: str
    url: str


@dataclass(frozen=True)
class ShownValue:
    """A value to narrow to; ``is_set``: the search asks for it, and the address takes it away."""

    label: str
    count: int
    url: str
    is_set: bool


def filter_chips(asked: Asked, query: Query, url: str) -> list[Chip]:
    """Return a chip for each value of each filter."""
    return [
        Chip(
            f"{'-' if one.is_excluded else ''}{one.field}:{value}",
            asked.but(url, q=without_filter(asked.q, one.field, value, is_excluded=one.is_excluded)),
        )
        for one in query.filters
        for value in one.values
    ]


def shown_facets(
    found: Mapping[str, Sequence[FacetValue]], asked: Asked, query: Query, url: str
) -> list[tuple[str, list[ShownValue]]]:
    """Return the facets with their values as links that narrow a search, or widen it again."""
    return [
        (LABELS[name], [_value(name, one, asked, query, url) for one in values]) for name, values in found.items()
    ]


def _value(name: str, one: FacetValue, asked: Asked, query: Query, url: str) -> ShownValue:
    field = "on" if name == "month" else name
    is_set = any(_asks_for(known, field, one.value) for known in query.filters)
    changed = (without_filter if is_set else with_filter)(asked.q, field, one.value)
    return ShownValue(_label(name, one.value), one.count, asked.but(url, q=changed), is_set)


def _label(name: str, value: str) -> str:
    if name == "kind" and value in KINDS:
        return KINDS[value].one
    if name == "month":
        return f"{date.fromisoformat(f'{value}-01'):%B %Y}"
    return value.replace("_", " ") if name in ("kind", "category") else value


def _asks_for(one: Filter, field: str, value: str) -> bool:
    known = {name.casefold() for name in one.values}
    return one.field == field and not one.is_excluded and value.casefold() in known
