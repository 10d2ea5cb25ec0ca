"""Filter chips and facets of the search page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date

from django.utils.formats import date_format
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from memoryhub.lib.search.query import Filter, Query, with_filter, without_filter
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
    """An active filter as typed, and the URL of the search without it."""

    text: str
    url: str


@dataclass(frozen=True)
class ShownValue:
    """A facet value; ``url`` adds it to the search, or removes it if it ``is_set``."""

    label: str
    count: int
    url: str
    is_set: bool


def filter_chips(asked: SearchParams, query: Query, url: str) -> list[Chip]:
    """Return a chip for each value of each active filter."""
    return [
        Chip(
            f"{'-' if one.is_excluded else ''}{one.field}:{value}",
            asked.but(url, q=without_filter(asked.q, one.field, value, is_excluded=one.is_excluded)),
        )
        for one in query.filters
        for value in one.values
    ]


def shown_facets(
    found: Mapping[str, Sequence[FacetValue]], asked: SearchParams, query: Query, url: str
) -> list[tuple[Promise | str, list[ShownValue]]]:
    """Return (label, values) for each facet; the values link to the search with and without them."""
    return [
        (LABELS[name], [_value(name, one, asked, query, url) for one in values]) for name, values in found.items()
    ]


def _value(name: str, one: FacetValue, asked: SearchParams, query: Query, url: str) -> ShownValue:
    field = "on" if name == "month" else name
    is_set = any(_asks_for(known, field, one.value) for known in query.filters)
    changed = (without_filter if is_set else with_filter)(asked.q, field, one.value)
    return ShownValue(_label(name, one.value), one.count, asked.but(url, q=changed), is_set)


def _label(name: str, value: str) -> str:
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
