"""Decode and sanitise untrusted text and JSON.

Values that SQLite and PostgreSQL don't store alike (NUL, lone surrogates, NaN, huge integers) are replaced with
visible text, and each repair is reported. Size and depth limits guard against hostile input.
"""

from __future__ import annotations

import codecs
import json
import math
import re
from dataclasses import dataclass, field
from typing import Any

from memoryhub.lib.errors import Invalid
from memoryhub.lib.json_numbers import SpelledText, spelled

MAX_DEPTH = 64
MAX_REASON = 500  # characters of the reason that somebody gives for a change
BRIEF_CHARS = 80
MAX_SAFE_DIGITS = 18  # any integer of 18 digits fits in 64 bits
ESCAPED = "an unstorable character is replaced by its escape sequence"
DUPLICATE_KEY = "a key appears twice; the last value is kept"
KEPT_AS_TEXT = " is kept as text"  # after NaN or an infinity
UTF_16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)  # how such files begin
_LINE_OR_DIRECTION = re.compile("[\x01-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")
_NOT_SHOWN = r"\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069"
_BLANK = r"\s\u00ad\u115f\u1160\u180e\u200b-\u200d\u2060-\u2065\u206a-\u206f\u3164\ufeff"
VISIBLE_LINE = f"^[^{_NOT_SHOWN}]*[^{_NOT_SHOWN}{_BLANK}][^{_NOT_SHOWN}]*$"  # for JSON Schema too
UNSTORABLE = re.compile("[\x00\ud800-\udfff]")


class BadJSON(Invalid):
    """Invalid JSON. ``line`` and ``column`` count from 1."""

    code = "bad_json"
    status = 400

    def __init__(self, message: str, line: int = 1, column: int = 1) -> None:
        super().__init__(message, line=line, column=column)
        self.line = line
        self.column = column


class _ParserHooks:
    """Hooks of ``json.loads`` that make values storable and record each repair."""

    def __init__(self, *, keep_spelling: bool) -> None:
        self.keep_spelling = keep_spelling
        self.repairs: list[str] = []

    def whole(self, digits: str) -> int | str:
        if len(digits.lstrip("-")) <= MAX_SAFE_DIGITS:
            return spelled(digits) if self.keep_spelling and digits == "-0" else int(digits)
        self.repairs.append(f"a number of {len(digits)} digits is kept as text")
        return SpelledText(digits) if self.keep_spelling else digits

    def fraction(self, digits: str) -> float | str:
        value = float(digits)
        if math.isfinite(value):
            return spelled(digits) if self.keep_spelling and repr(value) != digits else value
        self.repairs.append("a number too large to store is kept as text")
        return SpelledText(digits) if self.keep_spelling else digits

    def constant(self, name: str) -> str:
        self.repairs.append(f"{name}{KEPT_AS_TEXT}")
        return name

    def unique_keys(self, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        result = dict(pairs)
        self.repairs += [DUPLICATE_KEY] * (len(pairs) - len(result))
        return result


@dataclass(frozen=True)
class Decoded:
    """A JSON value, and descriptions of the repairs that made it storable."""

    value: Any
    repairs: list[str] = field(default_factory=list)


def clean_text(text: str) -> str:
    """Return text with NUL and lone surrogates as visible escapes such as ``\\u0000``."""
    return UNSTORABLE.sub(lambda match: f"\\u{ord(match.group()):04x}", text)


def is_visible_line(text: str) -> bool:
    """Return whether a name can be shown: on one line, with a visible character, and without direction overrides."""
    return "\n" not in text and re.search(VISIBLE_LINE, text) is not None


def visible_line(text: str) -> str:
    """Return text with line breaks, control characters and direction overrides as visible escapes."""
    return _LINE_OR_DIRECTION.sub(lambda match: f"\\u{ord(match.group()):04x}", text)


def decode_json(text: str, *, keep_spelling: bool = False) -> Decoded:
    """Parse JSON and make every value storable on both databases.

    NaN, Infinity and integers of more than 18 digits become text; NUL and lone surrogates become escapes; of a
    repeated key, the last value is kept; a byte-order mark is dropped. ``keep_spelling``: return numbers that Python
    would write otherwise as the classes of ``json_numbers``. Raises BadJSON, also for more than 64 levels of nesting.
    """
    hooks = _ParserHooks(keep_spelling=keep_spelling)
    try:
        value = json.loads(
            text.removeprefix("\ufeff"),
            parse_int=hooks.whole,
            parse_float=hooks.fraction,
            parse_constant=hooks.constant,
            object_pairs_hook=hooks.unique_keys,
        )
    except json.JSONDecodeError as error:
        raise BadJSON(
            f"not JSON: {error.msg.removesuffix(' at').removesuffix(' starting')}", error.lineno, error.colno
        ) from error
    except RecursionError as error:
        raise BadJSON("nested too deeply") from error
    except ValueError as error:
        raise BadJSON(f"not JSON: {error}") from error
    return Decoded(_storable(value, hooks.repairs, MAX_DEPTH), hooks.repairs)


def _storable(value: Any, repairs: list[str], depth: int) -> Any:
    if depth < 0:
        raise BadJSON(f"nested deeper than {MAX_DEPTH} levels")
    if isinstance(value, str) and not isinstance(value, SpelledText):
        cleaned = clean_text(value)
        if cleaned != value:
            repairs.append(ESCAPED)
        return cleaned
    if isinstance(value, list):
        return [_storable(item, repairs, depth - 1) for item in value]
    if isinstance(value, dict):
        return {
            _storable(key, repairs, depth - 1): _storable(item, repairs, depth - 1) for key, item in value.items()
        }
    return value


def parse_stored(text: str, default: Any) -> Any:
    """Return the value of a stored JSON text; ``default`` if it isn't JSON or can't be written again in UTF-8."""
    try:
        value = json.loads(text)
        repairs: list[str] = []
        _storable(value, repairs, MAX_DEPTH)
    except (ValueError, RecursionError, BadJSON):
        return default
    return default if repairs else value


def canonical_json(value: Any) -> str:
    """Return compact JSON with sorted keys, the same for equal values."""
    return json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":"))


def json_text(value: Any) -> str:
    """Return readable JSON with the keys in their original order."""
    return json.dumps(value, ensure_ascii=False)


def decode_utf8(raw: bytes) -> tuple[str, str | None]:
    """Decode a text file and return ``(text, repair)``, with repair None for clean UTF-8.

    A byte order mark is dropped; UTF-16 must have one. A file that is neither is decoded as Windows-1252, with
    undefined bytes as ``\\xNN``.
    """
    try:
        if raw.startswith(UTF_16):
            text, repair = raw.decode("utf-16", errors="backslashreplace"), "is UTF-16, not UTF-8"
        else:
            text, repair = raw.decode("utf-8"), None
    except UnicodeDecodeError as error:
        text = raw.decode("cp1252", errors="backslashreplace")
        repair = f"byte {error.start + 1} is not UTF-8; read as Windows-1252"
    if text.startswith("\ufeff"):
        text = text[1:]
    cleaned = clean_text(text)
    if cleaned != text:
        repair = repair or ESCAPED
    return cleaned, repair


def brief(value: Any) -> str:
    """Return a value as JSON, cut at 80 characters, to quote it in a report."""
    text = value if isinstance(value, str) else json_text(value)
    return text if len(text) <= BRIEF_CHARS else f"{text[:BRIEF_CHARS]}…"
