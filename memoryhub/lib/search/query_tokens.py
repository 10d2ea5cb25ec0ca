"""Tokenise queries into words, quoted phrases and fields with values."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass

from memoryhub.lib.search.fields import ALIASES
from memoryhub.lib.search.tokenizing import PAIRED, fold, is_emoji
from memoryhub.lib.validation import UNSTORABLE

MAX_CHARS = 512
MIN_PREFIX = 3  # letters of a partial word that is searched as a prefix
_INVISIBLE = "\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff"  # zero-width and bidi control characters
QUOTED = r'"[^"]*"|“[^”]*”|«[^»]*»|„[^“”]*[“”]'
_TOKEN = re.compile(
    rf"""
    (?: (?<!\S)(?P<minus>-)(?=[^\s-]) | (?P<opened>[(\[{{,;{_INVISIBLE}]*) )
    (?: (?P<name>(?ai:{"|".join(ALIASES)})):(?!:|//)(?P<values>(?:(?<=[:,])(?:{QUOTED})|\S)*)
      | (?P<quoted>{QUOTED})
      | (?P<word>\S+) )""",
    re.VERBOSE,
)
_VALUE = re.compile(rf"({QUOTED})[^,]*|([^,]+)")
_BARE = re.compile(r"[^\W_][\w.@/:#+-]*")
_WORD = re.compile(rf"(?:[^\W_]|[{PAIRED}])+")
_ORDINARY = re.compile(r"[^\W\d_]+(?:-[^\W\d_]+)+|[^\W\d_]{2,}/[^\W\d_]{2,}")
_JOINERS = frozenset("_./\\:@#+-&=%~$*")
_SHORTENED = re.compile(r"(.+)['’](?:s|m|re|ve|ll|d)")
_INSIDE_WORDS = frozenset(("Mn", "Mc", "Me", "Cf"))  # Unicode categories of marks and format characters
_BRACKETS_AND_DASHES = frozenset(("Ps", "Pe", "Pi", "Pf", "Pd"))
_PUNCTUATION = frozenset(",;:!?'\"`¿¡。、")
_WITHIN_ORDINARY = frozenset("-'’")  # signs that ordinary words have


@dataclass(frozen=True)
class Token:
    """A word, a phrase or ``field:value,value`` at [start, end) in the query. ``text``: without quotes."""

    text: str
    start: int
    end: int
    is_excluded: bool = False
    is_quoted: bool = False
    field: str = ""
    values: tuple[str, ...] = ()


def clean_query(text: str) -> str:
    """Return the first 512 characters of a query, with a space for characters that can't be stored."""
    return UNSTORABLE.sub(" ", text[:MAX_CHARS])


def tokenize(text: str) -> list[Token]:
    """Return the tokens of a clean query in order."""
    return [_token(match) for match in _TOKEN.finditer(text)]


def _token(match: re.Match[str]) -> Token:
    start = match.end("opened") if match["minus"] is None else match.start()
    end, is_excluded = match.end(), match["minus"] is not None
    if match["name"]:
        is_in_brackets = any(sign in "([{" for sign in match["opened"] or "")
        listed = match["values"].rstrip(")]}") if is_in_brackets else match["values"]
        end -= len(match["values"]) - len(listed)
        values = [quoted[1:-1] or bare.strip('"“”«»„') for quoted, bare in _VALUE.findall(listed)]
        known = tuple(dict.fromkeys(value.strip() for value in values if value.strip()))
        whole = match.string[match.start("name") : end]
        return Token(whole, start, end, is_excluded, field=ALIASES[match["name"].lower()], values=known)
    if match["quoted"]:
        return Token(match["quoted"][1:-1], start, end, is_excluded, is_quoted=True)
    return Token(match["word"], start, end, is_excluded)


def token_core(token: str) -> str:
    """Return a token folded, without surrounding punctuation and without contractions such as 's and 'll.

    Emoji count as punctuation unless the token has nothing else.
    """
    folded = fold(token)
    inner = [i for i, letter in enumerate(folded) if letter.isalnum() or unicodedata.category(letter)[0] == "M"]
    inner = inner or [i for i, letter in enumerate(folded) if is_emoji(letter)]
    core = folded[inner[0] : inner[-1] + 1] if inner else ""
    shortened = _SHORTENED.fullmatch(core)
    return shortened[1] if shortened else core


def token_literal(token: str, *, is_quoted: bool = False) -> str:
    """Return a token folded, with its signs (c++, .net, foo_bar, #tag), or "" if it only has those of ordinary words.

    Punctuation, brackets and emphasis around it are left out; a quoted phrase stays whole.
    """
    folded = fold(token)
    if is_quoted:
        words = " ".join(folded.split())
        return words if any(not (sign.isalnum() or sign == " ") for sign in words) else ""
    inner = _within_punctuation(folded)
    shortened = _SHORTENED.fullmatch(inner)
    inner = _within_punctuation(shortened[1]) if shortened else inner
    signs = {sign for sign in inner if not sign.isalnum()}
    if not any(map(str.isalnum, inner)):
        return ""
    return inner if not (signs <= _WITHIN_ORDINARY and inner[0].isalnum()) or is_identifier(inner) else ""


def _within_punctuation(text: str) -> str:
    start, end = 0, len(text)
    while start < end and _is_around(text[start]) and not text.startswith("--", start):
        start += 1
    while start < end and (text[end - 1] == "." or _is_around(text[end - 1])):
        end -= 1
    inner = text[start:end]
    if inner.startswith(".."):
        return inner.lstrip(".")
    return inner.strip("*") if inner.startswith("*") and inner.endswith("*") else inner


def _is_around(sign: str) -> bool:
    return sign in _PUNCTUATION or unicodedata.category(sign) in _BRACKETS_AND_DASHES


def is_identifier(core: str) -> bool:
    """Return whether words are joined as in snake_case, src/main.py or v1.2-rc, not as in well-known or and/or."""
    if "://" in core:
        return True
    between = _WORD.split(core)[1:-1]
    return not _ORDINARY.fullmatch(core) and bool(between) and all(map(_joins, between))


def is_path(token: str) -> bool:
    """Return whether a token is a path with a root, as in /etc/hosts; a/b may stand for two words."""
    return re.match(r"[~.]{0,2}/\w", token) is not None


def is_beginning(token: str) -> bool:
    """Return whether a token ends with an asterisk for any letters, as in dep*, after enough letters of a word."""
    return re.search(rf"(?<![*\w])\w*\w{{{MIN_PREFIX}}}\*$", token) is not None and not token.startswith("*")


def _joins(signs: str) -> bool:
    is_pause = len(signs) > 1 and set(signs) in ({"."}, {"-"})
    return not is_pause and all(sign in _JOINERS or unicodedata.category(sign) in _INSIDE_WORDS for sign in signs)


def quote_value(value: str) -> str:
    """Return a value as it is typed after ``field:``, quoted if necessary."""
    if _BARE.fullmatch(value):
        return value
    for opening, closing in ('""', "“”", "«»"):
        if closing not in value:
            return f"{opening}{value}{closing}"
    return '"{}"'.format(value.replace('"', " "))
