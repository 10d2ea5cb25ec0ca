"""Keyset pagination: each page costs the same, and new rows don't shift the others."""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import Any, Generic, TypeVar

from django.core.exceptions import ValidationError
from django.db.models import Model, Q, QuerySet
from django.http import QueryDict
from django.utils.dateparse import parse_datetime

from memoryhub.lib.errors import NotFound
from memoryhub.lib.validation import clean_text

WRONG_CURSOR = "This cursor belongs to another list. Start again without a cursor."
RowT = TypeVar("RowT", bound=Model)
INVALID_VALUE = (ValueError, TypeError, OverflowError, ValidationError)  # a value that doesn't fit its column


@dataclass(frozen=True)
class Page(Generic[RowT]):
    """One page of rows, with the URLs of its neighbours ("" if there is none)."""

    rows: list[RowT]
    first_url: str = ""
    previous_url: str = ""
    next_url: str = ""
    last_url: str = ""
    text: str = ""


def keyset_page(queryset: QuerySet[RowT], *, order: Sequence[str], params: QueryDict, size: int = 50) -> Page[RowT]:
    """Return the page of a queryset that ``after``, ``before`` or ``page=last`` in ``params`` selects.

    ``order``: names of fields that are never null, "-" for descending; the last one must be unique. An invalid
    cursor returns the first page. Runs one query for ``size + 1`` rows.
    """
    after, before = _decode(params.get("after", ""), order), _decode(params.get("before", ""), order)
    to_end = params.get("page") == "last"
    backwards = bool(before) or to_end
    rows = queryset.order_by(*(_flip(order) if backwards else order))
    cursor = before or after
    try:
        rows = rows.filter(_beyond(order, cursor, backwards=backwards)) if cursor and not to_end else rows
        page = list(rows[: size + 1])
    except INVALID_VALUE:
        if not cursor:
            raise
        return keyset_page(queryset, order=order, params=QueryDict(), size=size)
    has_more = len(page) > size
    page = page[:size]
    if backwards:
        page.reverse()
    has_previous = has_more if backwards else bool(after)
    has_next = bool(before) if backwards else has_more
    if not page:
        return Page(page, first_url=page_url(params) if cursor else "")
    return Page(
        page,
        first_url=page_url(params) if has_previous else "",
        previous_url=page_url(params, before=_encode(page[0], order)) if has_previous else "",
        next_url=page_url(params, after=_encode(page[-1], order)) if has_next else "",
        last_url=page_url(params, page="last") if has_next else "",
    )


def rows_after(
    queryset: QuerySet[RowT], *, order: Sequence[str], cursor: str, size: int
) -> tuple[list[RowT], str | None]:
    """Return up to ``size`` rows after a cursor ("" for the start), and the next cursor or None at the end.

    ``order`` is as for ``keyset_page``. Raises NotFound.
    """
    rows = queryset.order_by(*order)
    values = _decode(cursor, order) if cursor else []
    if values is None:
        raise NotFound(WRONG_CURSOR, code="bad_cursor")
    try:
        rows = rows.filter(_beyond(order, values, backwards=False)) if values else rows
        page = list(rows[: size + 1])
    except INVALID_VALUE as error:
        if not cursor:
            raise
        raise NotFound(WRONG_CURSOR, code="bad_cursor") from error
    return page[:size], _encode(page[size - 1], order) if len(page) > size else None


def parse_int(text: str | None, *, digits: int = 18) -> int | None:
    """Parse a non-negative integer from a URL or form; None if invalid. 18 digits fit a primary key."""
    text = text or ""
    return int(text) if text.isascii() and text.isdigit() and len(text) <= digits else None


def parse_ints(texts: Iterable[str]) -> list[int]:
    """Return the valid integers among form values."""
    return [number for text in texts if (number := parse_int(text)) is not None]


def _flip(order: Sequence[str]) -> list[str]:
    return [name[1:] if name.startswith("-") else f"-{name}" for name in order]


def _beyond(order: Sequence[str], values: Sequence[Any], *, backwards: bool) -> Q:
    """Return the condition for rows past a key: (a, b) > (x, y), spelled out because directions may differ."""
    condition, same = Q(), Q()
    for name, value in zip(order, values, strict=True):
        field = name.removeprefix("-")
        descends = name.startswith("-") != backwards
        condition |= same & Q(**{f"{field}__{'lt' if descends else 'gt'}": value})
        same &= Q(**{field: value})
    return condition


def _encode(row: Model, order: Sequence[str]) -> str:
    return encode_cursor([getattr(row, name.removeprefix("-")) for name in order])


def encode_cursor(values: Sequence[Any]) -> str:
    """Encode strings, numbers, dates and datetimes as a URL-safe cursor."""
    plain = [{"at": value.isoformat()} if isinstance(value, date | datetime) else value for value in values]
    return base64.urlsafe_b64encode(json.dumps(plain).encode()).decode().rstrip("=")


def _decode(cursor: str, order: Sequence[str]) -> list[Any] | None:
    return decode_cursor(cursor, len(order))


def decode_cursor(cursor: str, count: int) -> list[Any] | None:
    """Decode a cursor of ``count`` values; None if it is invalid."""
    try:
        values = json.loads(base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)))
    except (ValueError, RecursionError):  # also invalid base64 and deeply nested JSON
        return None
    if not isinstance(values, list) or len(values) != count:
        return None
    decoded = [_moment(value) if isinstance(value, dict) else value for value in values]
    return decoded if all(map(_is_storable, decoded)) else None


def _moment(value: dict[str, Any]) -> datetime | None:
    try:
        moment = parse_datetime(str(value.get("at", "")))
        return moment.astimezone(UTC) if moment and moment.tzinfo else moment
    except (ValueError, OverflowError):  # 31 February, or a date before year 1 in UTC
        return None


def _is_storable(value: object) -> bool:
    """Return whether both databases can compare a column with this value."""
    if isinstance(value, str):
        return clean_text(value) == value
    if isinstance(value, float):
        return math.isfinite(value)
    return isinstance(value, datetime) or (type(value) is int and abs(value) < 2**63)


def page_url(params: QueryDict, **changes: str) -> str:
    """Return a query string for another page of the same list; without changes, for the first."""
    query = params.copy()
    for name in ("after", "before", "page"):
        query.pop(name, None)
    for name, value in changes.items():
        query[name] = value
    return f"?{query.urlencode()}"
