"""Keep the spelling of JSON numbers that Python would write otherwise: ``1.10``, ``1E+2``, ``1e400``.

``decode_json(…, keep_spelling=True)`` returns such numbers as the classes below, which equal the plain values that
the hub stores. ``with_spellings`` adds the spellings to a record's extra fields. In an export, ``respelled`` puts
them back where the value is still the same, and ``dump_json`` writes them.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping
from typing import Any

SPELLINGS = "number_spellings"  # in extra fields: {JSON pointer into the record: number as written}
_MARK = "\0"  # never in a stored text
_MARKED = re.compile(r'"\\u0000([-+.0-9eE]+)"')
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?")


class SpelledFloat(float):
    """A number with a fraction or exponent that Python would write otherwise."""

    spelling: str


class SpelledInt(int):
    """A whole number that Python would write otherwise: ``-0``."""

    spelling: str


class SpelledText(str):
    """A number too large to store, as text."""

    __slots__ = ()

    @property
    def spelling(self) -> str:
        return str(self)


Spelled = SpelledFloat | SpelledInt | SpelledText


def spelled(digits: str) -> Any:
    """Return a number as the class that keeps its spelling."""
    if not re.search("[.eE]", digits):
        whole = SpelledInt(digits)
        whole.spelling = digits
        return whole
    number = SpelledFloat(digits)
    number.spelling = digits
    return number


def with_spellings(extra: Mapping[str, Any], record: Any) -> dict[str, Any]:
    """Return a record's extra fields with the spellings of its numbers, if there are any."""
    found = dict(_spellings(record, ""))
    return {**extra, SPELLINGS: found} if found else dict(extra)


def _spellings(value: Any, pointer: str) -> Iterator[tuple[str, str]]:
    if isinstance(value, Spelled):
        yield pointer, value.spelling
    elif isinstance(value, dict):
        for name, item in value.items():
            yield from _spellings(item, f"{pointer}/{name.replace('~', '~0').replace('/', '~1')}")
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _spellings(item, f"{pointer}/{index}")


def respelled(record: Any, extra: Mapping[str, Any]) -> Any:
    """Return a record's values with the spellings in its extra fields, where the numbers are still the same."""
    found = extra.get(SPELLINGS)
    if isinstance(record, dict) and SPELLINGS in record:
        record = {name: value for name, value in record.items() if name != SPELLINGS}
    if not isinstance(found, dict):
        return record
    by_place: dict[str, Any] = {}
    for pointer, spelling in found.items():
        *steps, last = [step.replace("~1", "/").replace("~0", "~") for step in str(pointer).split("/")]
        place = by_place
        for step in steps:
            place = place.setdefault(step, {})
            if not isinstance(place, dict):
                return record
        place[last] = spelling
    return _replaced(record, by_place.get("", {}))


def _replaced(value: Any, spellings: Any) -> Any:
    """Return a value with its numbers respelled, except where another value is now."""
    if isinstance(spellings, str):
        return _respelled_number(value, spellings)
    if isinstance(value, dict):
        return (
            {name: _replaced(item, spellings.get(name, {})) for name, item in value.items()} if spellings else value
        )
    if isinstance(value, list) and spellings:
        return [_replaced(item, spellings.get(str(index), {})) for index, item in enumerate(value)]
    return value


def _respelled_number(value: Any, spelling: str) -> Any:
    if not _NUMBER.fullmatch(spelling):
        return value
    if isinstance(value, str):
        return SpelledText(spelling) if value == spelling else value
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return spelled(spelling) if is_number and value == float(spelling) else value


def load_json(text: str) -> Any:
    """Return ``json.loads(text)`` with numbers that keep their spelling. Raises ValueError, RecursionError."""
    return json.loads(text, parse_int=_whole, parse_float=_fraction)


def _whole(digits: str) -> int:
    return int(digits) if digits != "-0" else spelled(digits)


def _fraction(digits: str) -> float | str:
    value = float(digits)
    if repr(value) == digits:
        return value
    return spelled(digits) if math.isfinite(value) else SpelledText(digits)


def dump_json(value: Any, *, ensure_ascii: bool = False, **options: Any) -> str:
    """Return ``json.dumps(value)`` with numbers as they are spelled."""
    marked, count = _marked(value)
    text = json.dumps(marked, ensure_ascii=ensure_ascii, **options)
    return _MARKED.sub(r"\1", text) if count else text


def _marked(value: Any) -> tuple[Any, int]:
    """Return a value whose spelled numbers are marked texts, and their number."""
    if isinstance(value, Spelled):
        return _MARK + value.spelling, 1
    if isinstance(value, dict):
        pairs = {name: _marked(item) for name, item in value.items()}
        count = sum(number for _, number in pairs.values())
        return ({name: item for name, (item, _) in pairs.items()} if count else value), count
    if isinstance(value, list | tuple):
        items = [_marked(item) for item in value]
        count = sum(number for _, number in items)
        return ([item for item, _ in items] if count else value), count
    return value, 0
