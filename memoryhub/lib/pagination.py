"""Paging by key: every page costs the same, and rows added meanwhile never shift it."""

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

from memoryhub.lib.errors import MemoryHubError
from memoryhub.lib.validation import clean_text

NOT_OF_THIS_LIST = "This cursor is none of this list's: begin without one."
RowT = TypeVar("RowT", bound=Model)
OF_ANOTHER_TYPE = (ValueError, TypeError, OverflowError, ValidationError)  # a cursor's value than its column


class BadCursor(MemoryHubError):
    """A cursor that doesn't belong to the list that is asked for."""

    code = "bad_cursor"


@dataclass(frozen=True)
class Page(Generic[RowT]):
    """A stretch of rows and the addresses of its neighbours ("" where there is none)."""

    rows: list[RowT]
    first_url: str = ""
    previous_url: str = ""
    next_url: str = ""
    last_url: str = ""
    text: str = ""


def keyset_page(queryset: QuerySet[RowT], *, order: Sequence[str], params: QueryDict, size: int = 50) -> Page[RowT]:
    """Return one page of a queryset, found through the request's ``after`` or ``before`` cursor.

    ``order``: field names, "-" for descending, the last of them unique and none of them null. A cursor that can't be
    read, or that names another order, means the first page. Cost: one query of ``size + 1`` rows.
    """
    after, before = _decode(params.get("after", ""), order), _decode(params.get("before", ""), order)
    to_end = params.get("page") == "last"
    backwards = bool(before) or to_end
    rows = queryset.order_by(*(_flip(order) if backwards else order))
    cursor = before or after
    try:
        rows = rows.filter(_beyond(order, cursor, backwards=backwards)) if cursor and not to_end else rows
        found = list(rows[: size + 1])
    except OF_ANOTHER_TYPE:
        if not cursor:
            raise
        return keyset_page(queryset, order=order, params=QueryDict(), size=size)
    has_more = len(found) > size
    found = found[:size]
    if backwards:
        found.reverse()
    has_previous = has_more if backwards else bool(after)
    has_next = bool(before) if backwards else has_more
    if not found:
        return Page(found, first_url=_url(params) if cursor else "")
    return Page(
        found,
        first_url=_url(params) if has_previous else "",
        previous_url=_url(params, before=_encode(found[0], order)) if has_previous else "",
        next_url=_url(params, after=_encode(found[-1], order)) if has_next else "",
        last_url=_url(params, page="last") if has_next else "",
    )


def rows_after(
    queryset: QuerySet[RowT], *, order: Sequence[str], cursor: str, size: int
) -> tuple[list[RowT], str | None]:
    """Return up to ``size`` rows that follow a cursor ("" for the first), and the next cursor, None at the end.

    ``order`` as for ``keyset_page``. Raises BadCursor for one that was not given for this order.
    """
    rows = queryset.order_by(*order)
    values = _decode(cursor, order) if cursor else []
    if values is None:
        raise BadCursor(NOT_OF_THIS_LIST)
    try:
        rows = rows.filter(_beyond(order, values, backwards=False)) if values else rows
        found = list(rows[: size + 1])
    except OF_ANOTHER_TYPE as error:
        if not cursor:
            raise
        raise BadCursor(NOT_OF_THIS_LIST) from error
    return found[:size], _encode(found[size - 1], order) if len(found) > size else None


def parse_int(text: str | None, *, digits: int = 18) -> int | None:
    """Return a whole number that an address or form names; None for anything else. 18 digits fit into a key."""
    text = text or ""
    return int(text) if text.isascii() and text.isdigit() and len(text) <= digits else None


def parse_ints(texts: Iterable[str]) -> list[int]:
    """Return the whole numbers among some texts of a form."""
    return [number for text in texts if (number := parse_int(text)) is not None]


def _flip(order: Sequence[str]) -> list[str]:
    return [name[1:] if name.startswith("-") else f"-{name}" for name in order]


def _beyond(order: Sequence[str], values: Sequence[Any], *, backwards: bool) -> Q:
    """Return the condition of all rows past a key: (a, b) > (x, y) spelt out for mixed directions."""
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
    """Return a key as the cursor of an address: texts, numbers and times."""
    plain = [{"at": value.isoformat()} if isinstance(value, date | datetime) else value for value in values]
    return base64.urlsafe_b64encode(json.dumps(plain).encode()).decode().rstrip("=")


def _decode(cursor: str, order: Sequence[str]) -> list[Any] | None:
    return decode_cursor(cursor, len(order))


def decode_cursor(cursor: str, count: int) -> list[Any] | None:
    """Return the ``count`` values of a cursor, or None for anything that isn't one."""
    try:
        values = json.loads(base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)))
    except (ValueError, RecursionError):  # also of bytes that are no base64, and of brackets without end
        return None
    if not isinstance(values, list) or len(values) != count:
        return None
    decoded = [_moment(value) if isinstance(value, dict) else value for value in values]
    return decoded if all(map(_is_storable, decoded)) else None


def _moment(value: dict[str, Any]) -> datetime | None:
    try:
        moment = parse_datetime(str(value.get("at", "")))
        return moment.astimezone(UTC) if moment and moment.tzinfo else moment
    except (ValueError, OverflowError):  # the 31st of February; before the first year, in UTC
        return None


def _is_storable(value: object) -> bool:
    """Tell whether both databases take a value to compare with."""
    if isinstance(value, str):
        return clean_text(value) == value
    if isinstance(value, float):
        return math.isfinite(value)
    return isinstance(value, datetime) or (type(value) is int and abs(value) < 2**63)


def _url(params: QueryDict, **changes: str) -> str:
    query = params.copy()
    for name in ("after", "before", "page"):
        query.pop(name, None)
    for name, value in changes.items():
        query[name] = value
    return f"?{query.urlencode()}"
