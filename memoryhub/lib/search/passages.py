"""The part of a text to show for a search, and which characters of it to highlight. Pure.

Words are found in the folded text, which may be longer or shorter than the text itself: it is folded in blocks, and
only blocks with a hit are aligned, character by character with its marks. Spans never part a letter from its marks.
"""

from __future__ import annotations

import math
import re
import unicodedata
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from memoryhub.lib.search.hits import Span, Weighted, hits_in
from memoryhub.lib.search.tokenizing import fold

LENGTH = 240  # characters of a passage
MAX_SEARCHED = 200_000  # characters of a text in which hits are looked for
MAX_SHOWN = 100_000  # characters of a text that is highlighted as a whole
_BLOCK = 1_000
_BEFORE = 0.3  # of the room left by the hits, how much is shown before them
_REACH = 24  # characters by which a cut moves to stand between words
_SPACE = re.compile(r"\s")
_JOINING = "\u200d"


@dataclass(frozen=True)
class Passage:
    """A part of a text, ``spans`` in it to highlight, and whether the text goes on before and after it.

    ``start``: where it begins in the text.
    """

    text: str
    spans: tuple[Span, ...] = ()
    has_before: bool = False
    has_after: bool = False
    start: int = 0

    @property
    def pieces(self) -> list[tuple[str, bool]]:
        """Return the text in pieces: (text, whether it is a hit)."""
        return pieces_of(self.text, self.spans)


def passage(text: str, terms: Sequence[Weighted], *, length: int = LENGTH) -> Passage:
    """Return the part of a text, of about ``length`` characters, that holds the most of what is asked for.

    Many different terms go before many hits of one, and rare terms before common ones. Without hits it is the
    beginning.
    """
    found = _found(text[:MAX_SEARCHED], terms)
    first, last = _best_run(found, terms, length)
    room = max(0, length - (last - first))
    start = _cut(text, max(0, min(first - round(room * _BEFORE), len(text) - length)), first, is_start=True)
    end = _cut(text, min(len(text), max(start + length, last)), max(start, last), is_start=False)
    spans = _merged([(begin - start, stop - start) for begin, stop, _ in found if begin >= start and stop <= end])
    return Passage(text[start:end], tuple(spans), start > 0, end < len(text), start)


def highlight(text: str, terms: Sequence[Weighted], *, limit: int = MAX_SHOWN) -> list[tuple[str, bool]]:
    """Return the first ``limit`` characters of a text in pieces: (text, whether it is a hit)."""
    shown = text[: _whole(text, limit)] if limit < len(text) else text
    found = _found(shown[:MAX_SEARCHED], terms)
    return pieces_of(shown, _merged([(start, end) for start, end, _ in found]))


def pieces_of(text: str, spans: Sequence[Span]) -> list[tuple[str, bool]]:
    """Return a text in pieces by spans in order that don't overlap: (text, whether it is in a span)."""
    pieces = []
    place = 0
    for start, end in spans:
        pieces += [(text[place:start], False), (text[start:end], True)]
        place = end
    return [piece for piece in [*pieces, (text[place:], False)] if piece[0]]


def _found(text: str, terms: Sequence[Weighted]) -> list[tuple[int, int, int]]:
    """Return the hits in a text in order: (start, end, number of the term), in the text's own characters."""
    blocks = list(_blocks(text))
    folded_blocks = [fold(block) for block in blocks]
    hits = hits_in(terms, "".join(folded_blocks), text)
    if text.isascii():
        return sorted((start, end, number) for number, spans in enumerate(hits) for start, end in spans)
    origins, places = [0], [0]
    for block, folded in zip(blocks, folded_blocks, strict=True):
        origins.append(origins[-1] + len(block))
        places.append(places[-1] + len(folded))
    aligned: dict[int, list[Span]] = {}

    def original(place: int) -> Span:
        number = min(bisect_right(places, place), len(blocks)) - 1
        if number not in aligned:
            aligned[number] = _aligned(blocks[number])
        inside = min(place - places[number], len(aligned[number]) - 1)
        start, end = aligned[number][inside]
        return origins[number] + start, origins[number] + end

    return sorted(
        (original(start)[0], original(end - 1)[1], number)
        for number, spans in enumerate(hits)
        for start, end in spans
        if end > start
    )


def _blocks(text: str) -> Iterator[str]:
    """Yield a text in blocks, none of which begins with a mark."""
    start = 0
    while start < len(text):
        end = len(text) if text.isascii() else _whole(text, start + _BLOCK)
        yield text[start:end]
        start = end


def _aligned(block: str) -> list[Span]:
    """Return for each character of a folded block which characters of the block it stands for."""
    spans: list[Span] = []
    start = 0
    while start < len(block):
        end = _whole(block, start + 1)
        spans += [(start, end)] * len(fold(block[start:end]))
        start = end
    return spans or [(0, len(block))]


def _whole(text: str, place: int) -> int:
    """Return the first place from one on where no letter is parted from its marks; in long runs of marks any."""
    last = min(len(text), place + 50)
    while 0 < place < last and (_is_mark(text[place]) or text[place - 1] == _JOINING):
        place += 1
    return min(place, len(text))


def _is_mark(sign: str) -> bool:
    """Tell whether a character belongs to the one before it: marks, joiners, and the vowels of decomposed Hangul."""
    if sign < "\u0300":
        return False
    return unicodedata.category(sign)[0] == "M" or sign == _JOINING or "\u1160" <= sign <= "\u11ff"


def _best_run(found: Sequence[tuple[int, int, int]], terms: Sequence[Weighted], length: int) -> Span:
    """Return from where to where the hits of the best window go; (0, 0) without hits."""
    worths = [term.weight / math.log(term.frequency + math.e) for term in terms]
    best, best_value = (0, 0), 0.0
    counts = [0] * len(terms)
    left = 0
    for start, end, number in found:
        counts[number] += 1
        while end - found[left][0] > length and found[left][0] < start:
            counts[found[left][2]] -= 1
            left += 1
        value = sum(worth * count / (count + 0.2) for worth, count in zip(worths, counts, strict=True) if count)
        if value > best_value:
            best, best_value = (found[left][0], max(end, found[left][1])), value
    return best


def _cut(text: str, place: int, limit: int, *, is_start: bool) -> int:
    """Return a place between words near one, not beyond ``limit``, where the hits are."""
    if place <= 0 or place >= len(text):
        return max(0, min(place, len(text)))
    if is_start:
        space = _SPACE.search(text, place - 1, min(limit, place + _REACH))
        return space.end() if space else min(_whole(text, place), limit)
    for end in range(place, max(limit, place - _REACH) - 1, -1):
        if text[end].isspace():
            return end
    return _whole(text, place)


def _merged(spans: Sequence[Span]) -> list[Span]:
    """Return spans in order, those that overlap or touch as one."""
    merged: list[Span] = []
    for start, end in sorted(spans):
        if merged and start <= merged[-1][1]:
            merged[-1] = merged[-1][0], max(end, merged[-1][1])
        else:
            merged.append((start, end))
    return merged
