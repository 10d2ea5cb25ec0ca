"""Recognise text that says again what was removed: with other marks, in another order, or within a longer line."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable
from functools import lru_cache

from memoryhub.lib.content_check.normalising import plain_form
from memoryhub.lib.text.change_guard import count_negations
from memoryhub.lib.text.facts import normal_form

LEAST_WORDS = 3  # of a text that is recognised in another order, or within a longer one
LEAST_LETTERS = 6  # the same for scripts without spaces, where each letter counts as a word
_MARK = re.compile(r"^[\s>|]*(?:[-*+•]\s|\d{1,3}[.)]\s|#{1,6}\s)?\s*(?:\[[ xX]\]\s+)?(?:\[[\w-]{1,64}\]\s+)?")
_UNSPACED = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff"
_WORD = re.compile(rf"[{_UNSPACED}]|[^\W{_UNSPACED}]+")
_LETTER = re.compile(rf"[{_UNSPACED}]")


@lru_cache(20_000)
def words_of(text: str) -> tuple[str, ...]:
    """Return the words of a text without its list mark, category, markup, accents, disguises and case."""
    return tuple(_WORD.findall(plain_form(normal_form(_MARK.sub("", text, count=1)))))


class Repeats:
    """Texts, and whether others repeat them."""

    def __init__(self, texts: Iterable[str]) -> None:
        self._texts: dict[tuple[str, ...], str] = {words: text for text in texts if (words := words_of(text))}
        self._sorted: defaultdict[tuple[str, ...], set[tuple[str, ...]]] = defaultdict(set)
        self._by_word: defaultdict[str, set[tuple[str, ...]]] = defaultdict(set)
        for words in filter(_is_telling, self._texts):
            self._sorted[tuple(sorted(words))].add(words)
            self._by_word[words[0]].add(words)

    def __bool__(self) -> bool:
        return bool(self._texts)

    def found_in(self, line: str) -> set[tuple[str, ...]]:
        """Return the words of each text that a line repeats.

        It has the same words, in any order if there are several; or it contains them, with the same negations.
        """
        words = words_of(line)
        found = {words} & self._texts.keys() | self._sorted.get(tuple(sorted(words)), set())
        inside = {
            known
            for start, word in enumerate(words)
            for known in self._by_word.get(word, ())
            if words[start : start + len(known)] == known
        }
        negations = count_negations(line)
        return found | {known for known in inside if count_negations(self._texts[known]) == negations}


def _is_telling(words: tuple[str, ...]) -> bool:
    letters = sum(bool(_LETTER.match(word)) for word in words)
    return len(words) - letters >= LEAST_WORDS or letters >= LEAST_LETTERS
