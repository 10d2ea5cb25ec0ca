"""Filter chips and facets of the search page."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date

from django.utils.formats import date_format
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from memoryhub.lib.search.query import Filter, Query
from memoryhub.lib.search.query_editing import with_filter, without_filter
from memoryhub.search import KINDS
from memoryhub.search.listing import FacetValue
from memoryhub.search.views.rows import category_words
from memoryhub.search.views.search_params import SearchParams
from sessions_app.models import Entry

LABELS: dict[str, Promise | str] = {
    "kind": _("Kind"),
    "session": _("Session"),
    "channel": _("Channel"),
    "author": _("Author"),
    "category": _("Category"),
    "role": _("Role"),
    "month": _("Month"),
}


ROLES: dict[str, Promise | str] = {
    "user": _("user"),
    "assistant": _("assistant"),
    "tool": _("tool"),
    "system": _("system"),
}


@dataclass(frozen=True)
class Chip:
    """An active filter, and the URL of the search without it. ``typed``: the filter as typed."""

    text: str
    url: str
    typed: str


@dataclass(frozen=True)
class ShownValue:
    """A facet value; ``url`` adds it to the search, or removes it if it ``is_set``. ``hint``: its tooltip."""

    label: str
    hint: str
    count: int
    url: str
    is_set: bool


def session_keys(query: Query) -> list[str]:
    """Return the values of a query's session filters."""
    return [value for one in query.filters if one.field == "session" for value in one.values]


def with_titles(query: Query, titles: Mapping[str, str]) -> Query:
    """Return a query for display, with session titles instead of keys."""
    return replace(query, filters=tuple(_with_titles(one, titles) for one in query.filters))


def _with_titles(one: Filter, titles: Mapping[str, str]) -> Filter:
    if one.field != "session":
        return one
    return replace(one, values=tuple(titles.get(value, value) for value in one.values))


def filter_chips(asked: SearchParams, query: Query, url: str, titles: Mapping[str, str]) -> list[Chip]:
    """Return a chip for each value of each active filter. ``titles``: of sessions, by key."""
    chips = []
    for one in query.filters:
        prefix = f"{'-' if one.is_excluded else ''}{one.field}:"
        for value, shown in zip(one.values, _with_titles(one, titles).values, strict=True):
            without = without_filter(asked.q, one.field, value, is_excluded=one.is_excluded)
            chips.append(Chip(f"{prefix}{shown}", asked.but(url, q=without), f"{prefix}{value}"))
    return chips


def shown_facets(
    found: Mapping[str, Sequence[FacetValue]], asked: SearchParams, query: Query, url: str
) -> list[tuple[Promise | str, list[ShownValue]]]:
    """Return (label, values) for each facet; the values link to the search with and without them."""
    titles = Counter(one.label for values in found.values() for one in values if one.label)
    return [
        (LABELS[name], [_value(name, one, titles, asked, query, url) for one in values])
        for name, values in found.items()
    ]


def _value(
    name: str, one: FacetValue, titles: Mapping[str, int], asked: SearchParams, query: Query, url: str
) -> ShownValue:
    field = "on" if name == "month" else name
    is_set = any(_asks_for(known, field, one.value) for known in query.filters)
    changed = (without_filter if is_set else with_filter)(asked.q, field, one.value)
    label = _label(name, one, titles)
    hint = f"{one.label} · {one.value}" if one.label else label
    return ShownValue(label, hint, one.count, asked.but(url, q=changed), is_set)


def _label(name: str, one: FacetValue, titles: Mapping[str, int]) -> str:
    """Return the text of a facet value. ``titles``: how many sessions have each title; duplicates show their key."""
    value = one.value
    if one.label:
        return f"{one.label} · {value}" if titles[one.label] > 1 else one.label
    if name == "kind" and value in KINDS:
        return str(KINDS[value].one)
    if name == "kind" and value in Entry.Kind.values:
        return str(Entry.Kind(value).label)
    if name == "month":
        return date_format(date.fromisoformat(f"{value}-01"), "F Y")
    if name == "category":
        return category_words(value)
    return str(ROLES.get(value, value)) if name == "role" else value


def _asks_for(one: Filter, field: str, value: str) -> bool:
    known = {name.casefold() for name in one.values}
    return one.field == field and not one.is_excluded and value.casefold() in known
