"""What is being typed in the search box, and what may be offered for it. Pure.

Fields and their fixed values are known here; other values are looked up by the caller.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Literal

from django.utils.translation import gettext

from memoryhub.lib.search.fields import ALIASES, DATE_FIELDS, FIELDS, fixed_value
from memoryhub.lib.search.query_tokens import QUOTED, cleaned, pieces_of
from memoryhub.lib.search.tokenizing import fold

Offers = list[tuple[str, str]]  # what to insert, and what it is for
_QUOTES = '"“”«»„'
_CLOSING = '"”»“'
_OPEN = r'"[^"]*|“[^”]*|«[^»]*|„[^“”]*'  # a quoted value that hasn't ended
_ITEM = re.compile(rf"(?:^|,)((?:{QUOTED})[^,]*|(?:{_OPEN})$|[^,]*)")
_NAME_BEFORE = re.compile(r"(?:^|[\s(\[{])-?([A-Za-z_]+)$")
_NAME_AFTER = re.compile(r"[A-Za-z_]*:|(?=\s|$)")


@dataclass(frozen=True)
class Wanted:
    """What is being typed: nothing that can be completed, the name of a field, or one of its values.

    ``prefix``: what stands before the cursor, without quotes. ``typed``: the other values of the field that stand
    there. What is chosen goes in the place of the text from ``start`` to ``end``.
    """

    what: Literal["nothing", "name", "value"] = "nothing"
    field: str = ""
    prefix: str = ""
    typed: tuple[str, ...] = ()
    start: int = 0
    end: int = 0


def completion_at(text: str, cursor: int) -> Wanted:
    """Return what is being typed in a query's text at a place (in characters from its start, as is all of it)."""
    used = cleaned(text)
    if not 0 < cursor <= len(used) or _is_in_phrase(used, cursor):
        return Wanted()
    return _value_at(used, cursor) or _value_at(_closed(used[:cursor]), cursor) or _name_at(used, cursor)


def _is_in_phrase(text: str, cursor: int) -> bool:
    return any(piece.is_quoted and piece.start < cursor < piece.end for piece in pieces_of(text))


def _closed(head: str) -> str:
    """Return a text with the quote closed that a field's value opens at its end; as it is where there is none."""
    for sign in _CLOSING:
        pieces = pieces_of(head + sign)
        if pieces and pieces[-1].field and pieces[-1].end > len(head):
            return head + sign
    return head


def _value_at(text: str, cursor: int) -> Wanted | None:
    for piece in pieces_of(text):
        first = text.index(":", piece.start) + 1 if piece.field else 0
        if piece.field and first <= cursor <= piece.end:
            items = [(item[1], first + item.start(1)) for item in _ITEM.finditer(text[first : piece.end])]
            return _wanted_of(items, piece.field, cursor)
    return None


def _wanted_of(items: list[tuple[str, int]], field: str, cursor: int) -> Wanted:
    """Return what is typed among the values of a field, each with the place where it starts."""
    current, start = next((item, at) for item, at in items if at <= cursor <= at + len(item))
    typed = tuple(value for item, at in items if at != start and (value := _bare(item)))
    return Wanted("value", field, _bare(current[: cursor - start]), typed, start, start + len(current))


def _bare(item: str) -> str:
    return item.strip(_QUOTES).strip()


def _name_at(text: str, cursor: int) -> Wanted:
    before = _NAME_BEFORE.search(text[:cursor])
    after = _NAME_AFTER.match(text, cursor)
    if not before or not after:
        return Wanted()
    return Wanted("name", prefix=before[1], start=before.start(1), end=after.end())


def complete_names(prefix: str) -> Offers:
    """Return the fields that have a name beginning with a prefix: what to insert, and what it is for."""
    begun = fold(prefix)
    names = dict.fromkeys(name for alias, name in ALIASES.items() if alias.startswith(begun))
    return [(f"{name}:", str(FIELDS[name].purpose)) for name in names]


def complete_values(
    field: str, prefix: str, *, now: datetime, zone: tzinfo = UTC, typed: Collection[str] = ()
) -> Offers:
    """Return the fixed values of a field, or hints for a date, that begin with a prefix and aren't typed already.

    Fields with any value have none here.
    """
    begun = fold(prefix).replace("-", "_").replace(" ", "_")
    if field in DATE_FIELDS:
        return [(value, purpose) for value, purpose in _dates(now.astimezone(zone)) if value.startswith(fold(prefix))]
    there = {fixed_value(field, value) for value in typed}
    known = FIELDS[field].values.items()
    return [(value, str(purpose)) for value, purpose in known if value.startswith(begun) and value not in there]


def _dates(now: datetime) -> Offers:
    days = {"today": 0, "yesterday": 1, "7d": 7, "30d": 30}
    hints = [(name, f"{now - timedelta(days=count):%Y-%m-%d}") for name, count in days.items()]
    return [*hints, (f"{now:%Y-%m}", gettext("this month"))]
