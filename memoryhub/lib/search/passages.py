"""Select the passage of a text to show for a search, and the characters to highlight.

Terms are found in the folded text, whose length may differ. So text is folded in blocks, and blocks with hits are
aligned with the original character by character. Spans never separate a letter from its combining marks.
"""

from __future__ import annotations

import math
import re
import unicodedata
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from memoryhub.lib.search.hits import Span, WeightedTerm, find_folded_hits
from memoryhub.lib.search.tokenizing import INVISIBLE, fold

LENGTH = 240  # characters
MAX_SEARCHED = 200_000  # characters searched for hits
MAX_SHOWN = 100_000  # characters of a text that is highlighted in full
_BLOCK = 1_000
_SHARE_BEFORE = 0.3  # share of the context shown before the hits
_BOUNDARY_CHARS = 24  # how far a cut may move to a word boundary
_SPACE = re.compile(r"\s")
_ZERO_WIDTH_JOINER = "\u200d"
_PLAIN = re.compile(r"[\x00-\x7f]+(?=[\x00-\x7f])")  # characters that fold to one each, without marks after them
_INVISIBLE = re.compile(f"[{INVISIBLE}]")


@dataclass(frozen=True)
class Passage:
    """A part of a text from ``start``, with the spans to highlight in it."""

    text: str
    spans: tuple[Span, ...] = ()
    has_before: bool = False
    has_after: bool = False
    start: int = 0

    @property
    def pieces(self) -> list[tuple[str, bool]]:
        """The text as (text, is_hit) pieces."""
        return split_spans(self.text, self.spans)


def passage(text: str, terms: Sequence[WeightedTerm], *, length: int = LENGTH) -> Passage:
    """Return the passage of about ``length`` characters that matches the terms best, or the start if none match.

    Different terms count more than repeated ones, and rare terms more than common ones.
    """
    hits = _find_spans(text[:MAX_SEARCHED], terms)
    first, last = _best_window(hits, terms, length)
    context = max(0, length - (last - first))
    earliest = max(0, min(first - round(context * _SHARE_BEFORE), len(text) - length))
    start = _word_boundary(text, earliest, first, is_start=True)
    end = _word_boundary(text, min(len(text), max(start + length, last)), max(start, last), is_start=False)
    spans = merge_spans([(begin - start, stop - start) for begin, stop, _ in hits if begin >= start and stop <= end])
    return Passage(text[start:end], tuple(spans), start > 0, end < len(text), start)


def highlight(text: str, terms: Sequence[WeightedTerm], *, limit: int = MAX_SHOWN) -> list[tuple[str, bool]]:
    """Return the first ``limit`` characters of a text as (text, is_hit) pieces."""
    shown = text[: _character_end(text, limit)] if limit < len(text) else text
    hits = _find_spans(shown[:MAX_SEARCHED], terms)
    return split_spans(shown, merge_spans([(start, end) for start, end, _ in hits]))


def split_spans(text: str, spans: Sequence[Span]) -> list[tuple[str, bool]]:
    """Split a text at ordered, disjoint spans into (text, is_in_span) pieces."""
    pieces = []
    position = 0
    for start, end in spans:
        pieces += [(text[position:start], False), (text[start:end], True)]
        position = end
    return [piece for piece in [*pieces, (text[position:], False)] if piece[0]]


def _find_spans(text: str, terms: Sequence[WeightedTerm]) -> list[tuple[int, int, int]]:
    """Return the hits as ordered (start, end, index of the term), with offsets in the original text."""
    blocks = list(_blocks(text))
    folded_blocks = [fold(block) for block in blocks]
    hits = find_folded_hits(terms, "".join(folded_blocks), text)
    if text.isascii():
        return sorted((start, end, number) for number, spans in enumerate(hits) for start, end in spans)
    offsets, folded_offsets = [0], [0]
    for block, folded in zip(blocks, folded_blocks, strict=True):
        offsets.append(offsets[-1] + len(block))
        folded_offsets.append(folded_offsets[-1] + len(folded))
    aligned: dict[int, list[Span]] = {}

    def original(position: int) -> Span:
        number = min(bisect_right(folded_offsets, position), len(blocks)) - 1
        if number not in aligned:
            aligned[number] = _align(blocks[number])
        index = min(position - folded_offsets[number], len(aligned[number]) - 1)
        start, end = aligned[number][index]
        return offsets[number] + start, offsets[number] + end

    return sorted(
        (original(start)[0], original(end - 1)[1], number)
        for number, spans in enumerate(hits)
        for start, end in spans
        if end > start
    )


def _blocks(text: str) -> Iterator[str]:
    """Yield a text in blocks that don't start with a combining mark."""
    start = 0
    while start < len(text):
        end = len(text) if text.isascii() else _character_end(text, start + _BLOCK)
        yield text[start:end]
        start = end


def _align(block: str) -> list[Span]:
    """Return for each character of the folded block the span of the original characters."""
    spans: list[Span] = []
    start = 0
    while start < len(block):
        if plain := _PLAIN.match(block, start):
            spans += [(place, place + 1) for place in range(start, plain.end())]
            start = plain.end()
        end = _character_end(block, start + 1)
        spans += [(start, end)] * len(fold(block[start:end]))
        start = end
    return spans or [(0, len(block))]


def _character_end(text: str, position: int) -> int:
    """Return the first position from ``position`` on that isn't between a letter and its marks (at most 50 on)."""
    last = min(len(text), position + 50)
    while 0 < position < last and (_is_combining(text[position]) or text[position - 1] == _ZERO_WIDTH_JOINER):
        position += 1
    return min(position, len(text))


def _is_combining(sign: str) -> bool:
    """Return whether a character belongs to the previous one: marks, invisible ones, vowels of decomposed Hangul."""
    if sign < "\u00ad":
        return False
    return unicodedata.category(sign)[0] == "M" or bool(_INVISIBLE.match(sign)) or "\u1160" <= sign <= "\u11ff"


def _best_window(hits: Sequence[tuple[int, int, int]], terms: Sequence[WeightedTerm], length: int) -> Span:
    """Return the span of the hits in the best window; (0, 0) without hits."""
    weights = [term.weight / math.log(term.frequency + math.e) for term in terms]
    best, best_value = (0, 0), 0.0
    counts = [0] * len(terms)
    left = 0
    for start, end, number in hits:
        counts[number] += 1
        while end - hits[left][0] > length and hits[left][0] < start:
            counts[hits[left][2]] -= 1
            left += 1
        value = sum(weight * count / (count + 0.2) for weight, count in zip(weights, counts, strict=True) if count)
        if value > best_value:
            best, best_value = (hits[left][0], max(end, hits[left][1])), value
    return best


def _word_boundary(text: str, position: int, limit: int, *, is_start: bool) -> int:
    """Return a word boundary near ``position``, but not beyond ``limit``, where the hits are."""
    if position <= 0 or position >= len(text):
        return max(0, min(position, len(text)))
    if is_start:
        space = _SPACE.search(text, position - 1, min(limit, position + _BOUNDARY_CHARS))
        return space.end() if space else min(_character_end(text, position), limit)
    for end in range(position, max(limit, position - _BOUNDARY_CHARS) - 1, -1):
        if text[end].isspace():
            return end
    return _character_end(text, position)


def merge_spans(spans: Sequence[Span]) -> list[Span]:
    """Sort spans and merge overlapping and adjacent ones."""
    merged: list[Span] = []
    for start, end in sorted(spans):
        if merged and start <= merged[-1][1]:
            merged[-1] = merged[-1][0], max(end, merged[-1][1])
        else:
            merged.append((start, end))
    return merged
