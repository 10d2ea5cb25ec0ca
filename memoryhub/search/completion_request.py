"""Find out what is being typed in a query, and complete field names and fixed values."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Literal

from django.utils.translation import gettext

from memoryhub.lib.search.fields import ALIASES, DATE_FIELDS, FIELDS, fixed_value
from memoryhub.lib.search.query_tokens import QUOTED, clean_query, tokenize
from memoryhub.lib.search.tokenizing import fold

Offers = list[tuple[str, str]]  # text to insert, description
_QUOTES = '"“”«»„'
_CLOSING = '"”»“'
_OPEN = r'"[^"]*|“[^”]*|«[^»]*|„[^“”]*'  # an unclosed quoted value
_ITEM = re.compile(rf"(?:^|,)((?:{QUOTED})[^,]*|(?:{_OPEN})$|[^,]*)")
_NAME_BEFORE = re.compile(r"(?:^|[\s(\[{])-?([A-Za-z_]+)$")
_NAME_AFTER = re.compile(r"[A-Za-z_]*:|(?=\s|$)")


@dataclass(frozen=True)
class CompletionRequest:
    """What is being typed: the name of a field, one of its values, or nothing that can be completed.

    ``prefix``: the text before the cursor, without quotes. ``typed``: the field's other values. A completion replaces
    the text in [start, end).
    """

    what: Literal["nothing", "name", "value"] = "nothing"
    field: str = ""
    prefix: str = ""
    typed: tuple[str, ...] = ()
    start: int = 0
    end: int = 0


def completion_at(text: str, cursor: int) -> CompletionRequest:
    """Return what is being typed at ``cursor``, an offset in characters."""
    used = clean_query(text)
    if not 0 < cursor <= len(used) or _is_in_phrase(used, cursor):
        return CompletionRequest()
    return _value_at(used, cursor) or _value_at(_closed(used[:cursor]), cursor) or _name_at(used, cursor)


def _is_in_phrase(text: str, cursor: int) -> bool:
    return any(token.is_quoted and token.start < cursor < token.end for token in tokenize(text))


def _closed(head: str) -> str:
    """Return a text with the unclosed quote of a field's value at its end closed."""
    for quote in _CLOSING:
        tokens = tokenize(head + quote)
        if tokens and tokens[-1].field and tokens[-1].end > len(head):
            return head + quote
    return head


def _value_at(text: str, cursor: int) -> CompletionRequest | None:
    for token in tokenize(text):
        first = text.index(":", token.start) + 1 if token.field else 0
        if token.field and first <= cursor <= token.end:
            items = [(item[1], first + item.start(1)) for item in _ITEM.finditer(text[first : token.end])]
            return _value_request(items, token.field, cursor)
    return None


def _value_request(items: list[tuple[str, int]], field: str, cursor: int) -> CompletionRequest:
    """Return the request for the value at the cursor. ``items``: the field's values and their offsets."""
    current, start = next((item, at) for item, at in items if at <= cursor <= at + len(item))
    typed = tuple(value for item, at in items if at != start and (value := _bare(item)))
    return CompletionRequest("value", field, _bare(current[: cursor - start]), typed, start, start + len(current))


def _bare(item: str) -> str:
    return item.strip(_QUOTES).strip()


def _name_at(text: str, cursor: int) -> CompletionRequest:
    before = _NAME_BEFORE.search(text[:cursor])
    after = _NAME_AFTER.match(text, cursor)
    if not before or not after:
        return CompletionRequest()
    return CompletionRequest("name", prefix=before[1], start=before.start(1), end=after.end())


def complete_names(prefix: str) -> Offers:
    """Return the fields with a name or alias that starts with ``prefix``."""
    folded = fold(prefix)
    names = dict.fromkeys(name for alias, name in ALIASES.items() if alias.startswith(folded))
    return [(f"{name}:", str(FIELDS[name].purpose)) for name in names]


def complete_values(
    field: str, prefix: str, *, now: datetime, zone: tzinfo = UTC, typed: Collection[str] = ()
) -> Offers:
    """Return the fixed values of a field, or examples of dates, that start with ``prefix`` and aren't typed yet.

    Returns nothing for fields that accept any value.
    """
    folded = fold(prefix).replace("-", "_").replace(" ", "_")
    if field in DATE_FIELDS:
        return [(value, purpose) for value, purpose in _dates(now.astimezone(zone)) if value.startswith(fold(prefix))]
    used = {fixed_value(field, value) for value in typed}
    known = FIELDS[field].values.items()
    return [(value, str(purpose)) for value, purpose in known if value.startswith(folded) and value not in used]


def _dates(now: datetime) -> Offers:
    days = {"today": 0, "yesterday": 1, "7d": 7, "30d": 30}
    hints = [(name, f"{now - timedelta(days=count):%Y-%m-%d}") for name, count in days.items()]
    return [*hints, (f"{now:%Y-%m}", gettext("this month"))]
