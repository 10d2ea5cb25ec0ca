"""Where a text holds what is asked for. Pure.

Texts aren't cut into words: only the places where the beginning of a wanted word stands are looked at, so that long
texts cost little. A word is found by its stem, and inside camelCase; a word of a paired script anywhere in a run.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from memoryhub.lib.search.tokenizing import PAIRED, fold, is_paired, stem

MAX_PLACES = 100  # of one word in one text; what comes after them isn't looked at
MAX_WORD = 100  # characters of a word in a text that are looked at
Span = tuple[int, int]
_REST = re.compile(f"[^\\W_{PAIRED}]*")
_GAP = re.compile(r"[\W_]*")
_HUMP = re.compile("(?<=[a-z])[A-Z]")


@dataclass(frozen=True)
class Weighted:
    """A term of the query as it counts: folded words in order, one or a phrase.

    ``is_prefix``: the last word stands for all that begin with it. ``weight``: 1 for what was asked for, less for
    what the semantic graph added. ``frequency``: rows of the collection that hold it.
    """

    words: tuple[str, ...]
    is_prefix: bool = False
    weight: float = 1.0
    frequency: int = 0

    @property
    def text(self) -> str:
        return " ".join(self.words)


def hits_of(terms: Sequence[Weighted], text: str) -> list[list[Span]]:
    """Return for each term where a text holds it: spans of the folded text, in order."""
    return hits_in(terms, fold(text), text)


def hits_in(terms: Sequence[Weighted], folded: str, text: str) -> list[list[Span]]:
    """Return the same for a text that is folded already; ``text`` is as it was before, for its capital letters."""
    cased = text if len(text) == len(folded) else folded
    return [_term_hits(term, folded, cased) for term in terms]


def follow(spans: Sequence[Span], others: Sequence[Span], folded: str) -> list[Span]:
    """Return the spans from one of the first to one of the others, where nothing but signs is between them."""
    if not spans or not others:
        return []
    ends = dict(others)
    joined = [(start, ends.get(_after_gap(folded, end))) for start, end in spans]
    return [(start, end) for start, end in joined if end is not None]


def _after_gap(folded: str, place: int) -> int:
    gap = _GAP.match(folded, place)
    return gap.end() if gap else place


def _term_hits(term: Weighted, folded: str, cased: str) -> list[Span]:
    last = len(term.words) - 1
    found: list[Span] = []
    for place, word in enumerate(term.words):
        spans = _word_hits(word, folded, cased, is_prefix=term.is_prefix and place == last)
        found = follow(found, spans, folded) if place else spans
        if not found:
            return []
    return found


def _word_hits(word: str, folded: str, cased: str, *, is_prefix: bool) -> list[Span]:
    beginning = _beginning(word, is_prefix=is_prefix)
    if beginning not in folded:
        return []
    places = _places(beginning, folded)
    if is_paired(word):
        return [(place, place + len(word)) for place in places]
    ends = ((place, _end(word, folded, cased, place, is_prefix=is_prefix)) for place in places)
    return [(place, end) for place, end in ends if end]


@lru_cache(maxsize=10_000)
def _beginning(word: str, *, is_prefix: bool) -> str:
    """Return the letters with which all begin that has the stem of a word: Porter makes y an i, and adds e or le."""
    if is_prefix or is_paired(word):
        return word
    stemmed = stem(word)
    return stemmed[:-1] if len(stemmed) > 1 and stemmed[-1] in "iel" else stemmed


def _places(part: str, folded: str) -> Iterator[int]:
    place = folded.find(part)
    for _ in range(MAX_PLACES):
        if place < 0:
            return
        yield place
        place = folded.find(part, place + len(part))


def _end(word: str, folded: str, cased: str, place: int, *, is_prefix: bool) -> int:
    """Return where a word ends whose beginning stands at a place, in camelCase with its part; 0 if it isn't there."""
    if not _starts_word(folded, cased, place):
        return 0
    rest = _REST.match(folded, place, place + MAX_WORD)
    end = rest.end() if rest else place
    if is_prefix or stem(folded[place:end]) == stem(word):
        return end
    hump = _HUMP.search(cased, place + 1, end)
    return hump.start() if hump and stem(folded[place : hump.start()]) == stem(word) else 0


def _starts_word(folded: str, cased: str, place: int) -> bool:
    before = folded[place - 1] if place else " "
    if not before.isalnum() or is_paired(before):
        return True
    return bool(_HUMP.match(cased, place))
