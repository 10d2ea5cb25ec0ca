"""Convert cells of a table to text, times, tags, counts and flags. Pure. Raises BadCell with a reason."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import date, datetime, tzinfo
from typing import Any

from django.utils.translation import gettext

from memoryhub.lib.errors import Invalid
from memoryhub.lib.layouts.times import read_time
from memoryhub.lib.validation import BadJSON, brief, clean_text, decode_json

MAX_COUNT = 2**31 - 1
YES, NO = ("true", "yes", "1"), ("false", "no", "0", "")


class BadCell(Invalid):
    """A cell with a value that its column can't hold."""

    code = "bad_cell"


Reader = Callable[[Any, tzinfo], Any]


def text(cell: Any, _zone: tzinfo) -> str:
    """Return a cell as text. A spreadsheet's numbers become text; lists and objects are refused."""
    if isinstance(cell, str):
        return clean_text(cell)
    if isinstance(cell, bool):
        return "true" if cell else "false"
    if cell is None or isinstance(cell, int | float | date):
        return "" if cell is None else str(cell)
    raise BadCell(gettext("%(cell)s is not text") % {"cell": brief(cell)})


def moment(cell: Any, zone: tzinfo) -> datetime | None:
    """Return a time in UTC, None for an empty cell; one without a zone is in ``zone``."""
    found = read_time(cell.isoformat() if isinstance(cell, date) else cell, zone)
    if found is None and cell not in ("", None):
        words = gettext("%(cell)s is not a time such as 2026-04-01T12:00:00+00:00")
        raise BadCell(words % {"cell": brief(str(cell))})
    return found


def day(cell: Any, _zone: tzinfo) -> date | None:
    if isinstance(cell, datetime):
        return cell.date()
    if cell in ("", None) or isinstance(cell, date):
        return cell or None
    try:
        return date.fromisoformat(str(cell).strip())
    except ValueError as error:
        raise BadCell(gettext("%(cell)s is not a date such as 2026-04-01") % {"cell": brief(str(cell))}) from error


def count(cell: Any, _zone: tzinfo) -> int:
    words = str(cell).strip() if cell is not None else ""
    number = int(words) if words.isdecimal() and len(words) <= 10 else 0 if not words else -1
    if not 0 <= number <= MAX_COUNT:
        raise BadCell(gettext("%(cell)s is not a count") % {"cell": brief(words)})
    return number


def flag(cell: Any, _zone: tzinfo) -> bool:
    words = str(cell).strip().lower() if cell is not None else ""
    if words not in YES + NO:
        raise BadCell(gettext("%(cell)s is neither true nor false") % {"cell": brief(words)})
    return words in YES


def tags(cell: Any, _zone: tzinfo) -> list[str]:
    """Return tags from a JSON list or comma-separated words."""
    if cell is None:
        return []
    words = cell
    if isinstance(cell, str):
        if not cell.lstrip().startswith("["):
            return [clean_text(word.strip()) for word in cell.split(",") if word.strip()]
        try:
            words = decode_json(cell).value
        except BadJSON:
            words = None
    if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
        raise BadCell(gettext("%(cell)s is not a list of tags") % {"cell": brief(json.dumps(cell, default=str))})
    return [clean_text(word) for word in words]
