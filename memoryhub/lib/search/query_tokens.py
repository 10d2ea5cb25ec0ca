"""The pieces of a query's text: words, quoted phrases and fields with values, each with its place. Pure."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass

from memoryhub.lib.search.fields import ALIASES
from memoryhub.lib.search.tokenizing import PAIRED, fold

MAX_CHARS = 512
_INVISIBLE = "\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff"  # marks of direction and width
QUOTED = r'"[^"]*"|“[^”]*”|«[^»]*»|„[^“”]*[“”]'
_PIECE = re.compile(
    rf"""
    (?: (?<!\S)(?P<minus>-)(?=[^\s-]) | (?P<opened>[(\[{{,;{_INVISIBLE}]*) )
    (?: (?P<name>(?ai:{"|".join(ALIASES)})):(?!:|//)(?P<values>(?:(?<=[:,])(?:{QUOTED})|\S)*)
      | (?P<quoted>{QUOTED})
      | (?P<word>\S+) )""",
    re.VERBOSE,
)
_VALUE = re.compile(rf"({QUOTED})[^,]*|([^,]+)")
_BARE = re.compile(r"[^\W_][\w.@/:#+-]*")
_UNWRITABLE = re.compile("[\0\ud800-\udfff]")  # no database takes these
_WORD = re.compile(rf"(?:[^\W_]|[{PAIRED}])+")
_ORDINARY = re.compile(r"[^\W\d_]+(?:-[^\W\d_]+)+|[^\W\d_]+/[^\W\d_]+")
_JOINERS = frozenset("_./\\:@#+-")
_SHORTENED = re.compile(r"(.+)['’](?:s|m|re|ve|ll|d)")
_UNSEEN = frozenset(("Mn", "Mc", "Me", "Cf"))  # categories of signs that stand inside words


@dataclass(frozen=True)
class Piece:
    """A part of a query's text between two places: a word, a phrase, or ``field:value,value``.

    ``text`` is what is searched: of a phrase what its quotes hold.
    """

    text: str
    start: int
    end: int
    is_excluded: bool = False
    is_quoted: bool = False
    field: str = ""
    values: tuple[str, ...] = ()


def cleaned(text: str) -> str:
    """Return the part of a text that is read: 512 characters at most, a space for what can't be stored."""
    return _UNWRITABLE.sub(" ", text[:MAX_CHARS])


def pieces_of(text: str) -> list[Piece]:
    """Return the pieces of a cleaned text in order."""
    return [_piece(match) for match in _PIECE.finditer(text)]


def _piece(match: re.Match[str]) -> Piece:
    start = match.end("opened") if match["minus"] is None else match.start()
    end, is_excluded = match.end(), match["minus"] is not None
    if match["name"]:
        is_in_brackets = any(sign in "([{" for sign in match["opened"] or "")
        listed = match["values"].rstrip(")]}") if is_in_brackets else match["values"]
        end -= len(match["values"]) - len(listed)
        values = [quoted[1:-1] or bare.strip('"“”«»„') for quoted, bare in _VALUE.findall(listed)]
        known = tuple(dict.fromkeys(value.strip() for value in values if value.strip()))
        whole = match.string[match.start("name") : end]
        return Piece(whole, start, end, is_excluded, field=ALIASES[match["name"].lower()], values=known)
    if match["quoted"]:
        return Piece(match["quoted"][1:-1], start, end, is_excluded, is_quoted=True)
    return Piece(match["word"], start, end, is_excluded)


def core_of(token: str) -> str:
    """Return a token folded, without the punctuation round it and without 's, 'll and their like."""
    folded = fold(token)
    inner = [place for place, sign in enumerate(folded) if sign.isalnum() or unicodedata.category(sign)[0] == "M"]
    core = folded[inner[0] : inner[-1] + 1] if inner else ""
    shortened = _SHORTENED.fullmatch(core)
    return shortened[1] if shortened else core


def is_identifier(core: str) -> bool:
    """Tell whether words are joined as in snake_case, src/main.py or v1.2-rc; not as in well-known or and/or."""
    between = _WORD.split(core)[1:-1]
    return not _ORDINARY.fullmatch(core) and bool(between) and all(map(_joins, between))


def _joins(signs: str) -> bool:
    is_pause = len(signs) > 1 and set(signs) in ({"."}, {"-"})
    return not is_pause and all(sign in _JOINERS or unicodedata.category(sign) in _UNSEEN for sign in signs)


def written(value: str) -> str:
    """Return a value as it is typed after ``field:``, in quotes where it needs them."""
    if _BARE.fullmatch(value):
        return value
    for opening, closing in ('""', "“”", "«»"):
        if closing not in value:
            return f"{opening}{value}{closing}"
    return '"{}"'.format(value.replace('"', " "))
