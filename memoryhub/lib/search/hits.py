"""Find the terms of a query in a text.

Texts aren't tokenised: only the places where the prefix of a word occurs are examined, which is fast in long texts.
Words match by stem, also inside camelCase; words in paired scripts and emoji match anywhere in a run.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from memoryhub.lib.search.tokenizing import PAIRED, fold, fold_keeping_case, is_emoji, is_paired, stem
from memoryhub.lib.text_caches import text_cache

MAX_OCCURRENCES = 100  # of one word in one text; further ones are ignored
MAX_WORD = 100  # characters of a word in a text that are compared, or as many as the query's word has
Span = tuple[int, int]
_WORD_REST = re.compile(f"[^\\W_{PAIRED}]*")
_SEPARATORS = re.compile(r"[\W_]*")
_CAMEL_CASE = re.compile("(?<=[a-z])[A-Z]")


@dataclass(frozen=True)
class WeightedTerm:
    """A term of a query: one or more folded words in order.

    ``is_prefix``: the last word is a prefix. ``weight``: 1, or less for words that only phrase a question and for
    terms that the semantic graph added (``is_added``). ``frequency``: the number of rows in the collection that
    contain the term. ``literal``: a text with signs, such as "c++", that is scored beside the words; a term that has
    it as its only word matches it alone.
    """

    words: tuple[str, ...]
    is_prefix: bool = False
    weight: float = 1.0
    frequency: int = 0
    is_added: bool = False
    literal: str = ""

    @property
    def text(self) -> str:
        return " ".join(self.words)

    @property
    def is_literal(self) -> bool:
        return self.words == (self.literal,)


def find_hits(terms: Sequence[WeightedTerm], text: str) -> list[list[Span]]:
    """Return the spans of each term in the folded text, in order."""
    return find_folded_hits(terms, fold(text), text)


def find_folded_hits(terms: Sequence[WeightedTerm], folded: str, text: str) -> list[list[Span]]:
    """Return the spans of each term in a text that is folded already; ``text`` is the original, for camelCase."""
    cased = text if len(text) == len(folded) else fold_keeping_case(text)
    cased = cased if len(cased) == len(folded) else folded
    return [_term_hits(term, folded, cased) for term in terms]


def join_adjacent(spans: Sequence[Span], others: Sequence[Span], folded: str) -> list[Span]:
    """Return the spans from one of ``spans`` to one of ``others`` with only separators in between."""
    if not spans or not others:
        return []
    ends = dict(others)
    joined = [(start, ends.get(_skip_separators(folded, end))) for start, end in spans]
    return [(start, end) for start, end in joined if end is not None]


def _skip_separators(folded: str, start: int) -> int:
    separators = _SEPARATORS.match(folded, start)
    return separators.end() if separators else start


def _literal_hits(literal: str, folded: str) -> list[Span]:
    """Return where a text occurs and doesn't continue as a word."""
    spans = [(start, start + len(literal)) for start in _occurrences(literal, folded)]
    return [(start, end) for start, end in spans if not (_continues(folded, start) or _continues(folded, end))]


def _continues(folded: str, place: int) -> bool:
    around = folded[max(0, place - 1) : place + 1]
    return len(around) == 2 and around.isalnum() and not is_paired(around)


def _term_hits(term: WeightedTerm, folded: str, cased: str) -> list[Span]:
    if term.is_literal:
        return _literal_hits(term.literal, folded)
    last = len(term.words) - 1
    hits: list[Span] = []
    for number, word in enumerate(term.words):
        spans = _word_hits(word, folded, cased, is_prefix=term.is_prefix and number == last)
        hits = join_adjacent(hits, spans, folded) if number else spans
        if not hits:
            return []
    return hits


def _word_hits(word: str, folded: str, cased: str, *, is_prefix: bool) -> list[Span]:
    prefix = _common_prefix(word, is_prefix=is_prefix)
    if prefix not in folded:
        return []
    starts = _occurrences(prefix, folded)
    if is_paired(word) or is_emoji(word):
        return [(start, start + len(word)) for start in starts]
    ends = ((start, _word_end(word, folded, cased, start, is_prefix=is_prefix)) for start in starts)
    return [(start, end) for start, end in ends if end]


@text_cache(10_000)
def _common_prefix(word: str, *, is_prefix: bool) -> str:
    """Return the prefix that all words with the same stem share: Porter turns y into i, and adds e or le."""
    if is_prefix or is_paired(word) or is_emoji(word):
        return word
    stemmed = stem(word)
    return stemmed[:-1] if len(stemmed) > 1 and stemmed[-1] in "iel" else stemmed


def _occurrences(part: str, folded: str) -> Iterator[int]:
    start = folded.find(part)
    for _ in range(MAX_OCCURRENCES):
        if start < 0:
            return
        yield start
        start = folded.find(part, start + len(part))


def _word_end(word: str, folded: str, cased: str, start: int, *, is_prefix: bool) -> int:
    """Return the end of the word at ``start`` if it matches ``word``, in camelCase the end of its part; else 0."""
    if not _starts_word(folded, cased, start):
        return 0
    rest = _WORD_REST.match(folded, start, start + max(MAX_WORD, len(word) + 1))
    end = rest.end() if rest else start
    if is_prefix or stem(folded[start:end]) == stem(word):
        return end
    hump = _CAMEL_CASE.search(cased, start + 1, end)
    return hump.start() if hump and stem(folded[start : hump.start()]) == stem(word) else 0


def _starts_word(folded: str, cased: str, start: int) -> bool:
    before = folded[start - 1] if start else " "
    if not before.isalnum() or is_paired(before):
        return True
    return bool(_CAMEL_CASE.match(cased, start))
