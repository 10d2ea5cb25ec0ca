"""One page of the memory list: rows of several tables in one order, with what explains each of them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import Q, QuerySet
from django.http import QueryDict
from django.utils.functional import Promise
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from knowledge_app.models import Fact, FactSource, MemoryRevision
from knowledge_app.services.rows.importing import REASON as IMPORT_REASON
from memoryhub.lib.http.pagination import INVALID_VALUE, decode_cursor, encode_cursor, page_url
from memoryhub.memory.filters import KINDS, MODELS, Matches
from memoryhub.origins.certainty import best_sources
from memoryhub.origins.explanation import KINDS as ORIGINS
from memoryhub.origins.explanation import certainty_of, kind_of
from memoryhub.search.filters import load
from memoryhub.search.kinds import KINDS as SEARCHED
from memoryhub.search.kinds import Kind

PAGE_ROWS = 50
ASCENDING = ("oldest", "verified")
IMPORTED, CONSOLIDATION, EXTRACTION = _("Imported"), _("Consolidation"), _("Extraction")
RUN = re.compile(r"run (\d{1,18})")  # the name by which a run signs
Key = tuple[datetime, int, int]  # sort value, number of the kind, primary key


@dataclass(frozen=True)
class Item:
    """One row of the list. ``author``: who or what added or corrected it. ``source``: a fact's best source.

    ``run``: the primary key of the run that is the author.
    """

    kind: Kind
    row: Any
    at: datetime
    author: str | Promise = ""
    source: FactSource | None = None
    run: int | None = None

    @property
    def key(self) -> str:
        """Return the row's checkbox value."""
        return f"{self.kind.name}:{self.row.pk}"

    @property
    def origin(self) -> str:
        """Return the kind of a fact's origin (``origins.explanation.KINDS``), or ""."""
        if not isinstance(self.row, Fact):
            return ""
        return "person" if self.row.corrected else kind_of(self.row, self.source)

    @property
    def accepted(self) -> MemoryRevision | None:
        """Return the revision with which a person accepted a fact's words from a proposal."""
        return self.row.accepted if isinstance(self.row, Fact) else None

    @property
    def origin_label(self) -> str:
        if isinstance(self.row, Fact) and self.row.corrected:
            return gettext("Corrected")
        if self.accepted:
            return str(ORIGINS[self.source.kind if self.source else "unknown"])
        return str(ORIGINS[self.origin]) if self.origin else ""

    @property
    def certainty(self) -> str:
        return certainty_of(self.origin, self.source) if self.origin else ""


@dataclass(frozen=True)
class ItemPage:
    """One page of the list, with the URLs of its neighbours as in ``lib.pagination.Page``."""

    rows: list[Item]
    first_url: str = ""
    previous_url: str = ""
    next_url: str = ""
    last_url: str = ""


def count_kinds(matches: Matches) -> dict[str, int]:
    """Return the number of matching rows of each kind, whichever kind is chosen."""
    return {kind: rows.order_by().count() for kind, rows in matches.by_kind.items()}


def page_of(matches: Matches, params: QueryDict, *, size: int = PAGE_ROWS) -> ItemPage:
    """Return the page of matching rows that ``after``, ``before`` or ``page=last`` in ``params`` selects.

    An invalid cursor returns the first page. The number of queries doesn't depend on the number of rows.
    """
    after, before = _cursor(params.get("after", "")), _cursor(params.get("before", ""))
    to_end = params.get("page") == "last"
    is_ascending = matches.filters.sort in ASCENDING
    backwards = bool(before) or to_end
    cursor = None if to_end else before or after
    try:
        keys = _keys(matches.chosen, size + 1, cursor, is_ascending=is_ascending != backwards)
    except INVALID_VALUE:
        if not cursor:
            raise
        return page_of(matches, QueryDict(), size=size)
    has_more = len(keys) > size
    keys = keys[:size]
    if backwards:
        keys.reverse()
    if not keys:
        return ItemPage([], first_url=page_url(params) if cursor else "")
    has_previous = has_more if backwards else bool(after)
    has_next = bool(before) if backwards else has_more
    return ItemPage(
        _items(keys),
        first_url=page_url(params) if has_previous else "",
        previous_url=page_url(params, before=encode_cursor(keys[0])) if has_previous else "",
        next_url=page_url(params, after=encode_cursor(keys[-1])) if has_next else "",
        last_url=page_url(params, page="last") if has_next else "",
    )


def newest_items(matches: Matches, limit: int) -> list[Item]:
    """Return the newest matching rows."""
    return _items(_keys(matches.chosen, limit, None, is_ascending=False))


def _cursor(text: str) -> Key | None:
    values = decode_cursor(text, 3) if text else None
    if values is None or not isinstance(values[0], datetime) or not all(type(value) is int for value in values[1:]):
        return None
    return values[0], values[1], values[2]


def _keys(by_kind: Mapping[str, QuerySet[Any]], count: int, cursor: Key | None, *, is_ascending: bool) -> list[Key]:
    """Return the sort keys of the first rows of all kinds after a cursor. One query for each kind."""
    found: list[Key] = []
    for kind, rows in by_kind.items():
        number = KINDS.index(kind)
        chosen = rows.filter(_beyond(cursor, number, is_ascending=is_ascending)) if cursor else rows
        ordered = chosen.order_by("sorted_by", "pk") if is_ascending else chosen.order_by("-sorted_by", "-pk")
        found += [(at, number, pk) for at, pk in ordered.values_list("sorted_by", "pk")[:count]]
    return sorted(found, reverse=not is_ascending)[:count]


def _beyond(cursor: Key, number: int, *, is_ascending: bool) -> Q:
    at, kind, pk = cursor
    word = "gt" if is_ascending else "lt"
    is_past_kind = number > kind if is_ascending else number < kind
    same = Q(sorted_by=at)
    if number == kind:
        same &= Q(**{f"pk__{word}": pk})
    return Q(**{f"sorted_by__{word}": at}) | (same if number == kind or is_past_kind else Q(pk__in=[]))


def _items(keys: Sequence[Key]) -> list[Item]:
    """Return rows in the order of their keys. At most three queries for each kind."""
    pks: dict[str, list[int]] = {}
    for _at, number, pk in keys:
        pks.setdefault(KINDS[number], []).append(pk)
    rows = {(kind, pk): row for kind, some in pks.items() for pk, row in load(SEARCHED[kind], some).items()}
    sources = best_sources(pks.get("memory", []))
    authors = {kind: _authors(kind, some) for kind, some in pks.items()}
    found = []
    for _at, number, pk in keys:
        kind = KINDS[number]
        if row := rows.get((kind, pk)):
            author = _author(kind, row) or authors[kind].get(pk, "")
            source = sources.get(pk) if kind == "memory" else None
            run = _run(kind, row) or (int(signed[1]) if (signed := RUN.fullmatch(str(author))) else None)
            if run:
                label = EXTRACTION if kind in ("knowledge", "observation") else CONSOLIDATION
                author = f"{label} {run}"
            found.append(Item(SEARCHED[kind], row, _time(kind, row), author, source, run))
    return found


def _time(kind: str, row: Any) -> datetime:
    """Return the time of a row, as ``filters.TIMES``."""
    times = {
        "memory": lambda: row.born.created_at,
        "knowledge": lambda: row.created_at or row.updated_at,
        "key_value": lambda: row.updated_at,
        "document": lambda: row.created_at,
    }
    at: datetime = times[kind]() if kind in times else row.occurred_at or row.recorded_at
    return at


def _author(kind: str, row: Any) -> str | Promise:
    """Return who added a history entry, or gave a fact its words, from the row itself; "" if it doesn't say."""
    if kind in ("memory", "document"):
        revision = _revision(kind, row)
        name: str | Promise = {"sync": IMPORTED, "run": CONSOLIDATION}.get(revision.author_kind, revision.author_name)
        return name
    if kind in ("observation", "history") and row.run_id:
        return EXTRACTION if kind == "observation" else CONSOLIDATION
    return IMPORTED if kind == "history" and row.source else ""


def _run(kind: str, row: Any) -> int | None:
    """Return the run that added a row, or gave a fact its words."""
    run: int | None = getattr(_revision(kind, row), "run_id", None)
    return run


def _revision(kind: str, row: Any) -> Any:
    """Return the revision that gave a fact its words; any other row itself."""
    return row.corrected or row.born if kind == "memory" else row


def _authors(kind: str, pks: Sequence[int]) -> dict[int, str | Promise]:
    """Return who added rows that keep their states, by primary key, from their first state."""
    if kind in ("memory", "history", "document"):
        return {}
    states = MODELS[kind].history.filter(id__in=pks, history_type="+")
    found: dict[int, str | Promise] = {}
    for pk, reason in states.values_list("id", "history_change_reason"):
        name = (reason or "").rpartition(": ")[0]
        found[pk] = IMPORTED if reason == IMPORT_REASON else name
    return found
