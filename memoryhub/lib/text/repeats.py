"""Recognise text that says again what was removed: with other marks, in another order, or within a longer line."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import cache
from html import unescape
from itertools import accumulate, chain

from memoryhub.lib.content_check.normalising import plain_form
from memoryhub.lib.text.change_guard import count_negations
from memoryhub.lib.text.facts import normal_form
from memoryhub.lib.text_caches import text_cache

LEAST_WORDS = 3  # of a text that is recognised in another order, or within a longer one
LEAST_LETTERS = 6  # the same for scripts without spaces, where each letter counts as a word
ENOUGH_WORDS = 4  # of a text that is recognised also before further words, which may change what fewer ones say
Words = tuple[str, ...]
_MARK = re.compile(r"^[\s>|]*(?:[-*+•]\s|\d{1,3}[.)]\s|#{1,6}\s)?\s*(?:\[[ xX]\]\s+)?(?:\[[\w-]{1,64}\]\s+)?")
_LABEL = re.compile(  # "Note: ", "**Deploy day:** ", "(2026-03-04) "
    r"^[\s*_(\[]*(?:\d{4}-\d\d-\d\d(?:[ T]\d\d:\d\d(?::\d\d)?)?[*_)\]]*(?:[:：,–—-]|(?=\s))"
    r"|[^\W\d_][\w'’.&/-]{0,30}(?: [\w'’.&/-]{1,30}){0,2}[*_)\]]*[:：])[*_]*(?:\s+|(?<=：))"
)
_UNSPACED = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff"
_NUMBER = r"(?:[<>≤≥]=?\s?|(?<![^\s(:])[-−+])?\d[^\W_]*"  # with what changes its meaning
_SHORT_NAME = r"(?<![^\W_])[a-z]{1,2}(?:\+\+|#)(?![^\W_])"  # C++, F#
_WORD = re.compile(rf"[{_UNSPACED}]|{_NUMBER}|{_SHORT_NAME}|[^\W\d_{_UNSPACED}][^\W_{_UNSPACED}]*")
_LETTER = re.compile(rf"[{_UNSPACED}]")
_BREAK = re.compile(r"</?(?:br|div|hr|li|p|t[dhr])\b[^<>]{0,200}>|(?<=[^\W_])_(?=[^\W_])", re.IGNORECASE)
_TAG = re.compile(r"</?[a-z][^<>]{0,200}>", re.IGNORECASE)
_SPELLED = re.compile(r"(?<![^\W_])[^\W\d_](?:[ .\-*·|/~][^\W\d_](?![^\W_])){2,}")  # k n o w n
_RUNS_ON = re.compile(r"(?<![^\W_])[^\W\d_]\n[^\W\d_](?![^\W_])|[<>≤≥]=?\n\d|^\n|\n$")  # k\nn, <\n5
_BETWEEN = re.compile(r"[ .\-*·|/~]")
_CLAUSE_END = re.compile(r"[;:.!?()\[\]|—–,、。；：，！？（）]+(?=\s|$|[^\x00-\x7f])|\s-\s|\s[(\[]")
_CLAUSE_DIFFERS = re.compile(r"[<>&]|\[[-+]\d|[.|][^\x00-\x7f]|[^\w\s][−－＋﹣﹢⁻⁺]")  # it may read as other words


@text_cache(20_000)
def words_of(text: str) -> Words:
    """Return the words of a text without its list mark, category, markup, accents, disguises and case."""
    return _words_in(_plain(_MARK.sub("", text, count=1)))


def _plain(text: str) -> str:
    return plain_form(normal_form(_TAG.sub("", _BREAK.sub(" ", unescape(text)))))


def _words_in(plain: str) -> Words:
    spelled = _SPELLED.sub(lambda word: _BETWEEN.sub("", word[0]), plain)
    return tuple(word.replace(" ", "") for word in _WORD.findall(spelled))


def _all_words(line: str) -> set[str]:
    """Return the words of a line and of its clauses, with and without a list mark."""
    parts = {part.strip() for part in (line, *_CLAUSE_END.split(f" {line} "))}
    return set(chain.from_iterable(map(_words_in, map(_plain, parts | {_MARK.sub("", part) for part in parts}))))


def _runs_on(line: str, following: str) -> bool:
    """Return whether a word may begin on a line and end on the following one, also within a tag or an entity."""
    both = f"{line}\n{following}"
    return "<" in both or "&" in both or bool(_RUNS_ON.search(f"{_plain(line)}\n{_plain(following)}"))


def joined(lines: Iterable[str]) -> str:
    """Return lines as one, without their list marks."""
    return " ".join(_MARK.sub("", line, count=1) for line in lines)


class Repeats:
    """Texts, and whether others repeat them."""

    def __init__(self, texts: Iterable[str]) -> None:
        self._texts: dict[Words, str] = {words: text for text in texts if (words := words_of(text))}
        self._sorted: defaultdict[Words, set[Words]] = defaultdict(set)
        self._by_start: defaultdict[Words, set[Words]] = defaultdict(set)
        for words in filter(is_telling, self._texts):
            self._sorted[tuple(sorted(words))].add(words)
            self._by_start[words[:3]].add(words)
        self._unlabelled: defaultdict[Words, set[Words]] = defaultdict(set)
        for words, text in self._texts.items():
            if is_telling(rest := _without_label(text)):
                self._unlabelled[rest].add(words)
        self._longest = max(map(len, self._texts), default=0)
        self._known_by_rarest = _by_rarest(map(frozenset, {*self._texts, *self._unlabelled}))

    def __bool__(self) -> bool:
        return bool(self._texts)

    def may_find_in(self, lines: Sequence[str]) -> Callable[[int, int], bool]:
        """Return a function that tells quickly whether ``found_in`` may find a text in lines joined by spaces.

        It takes the index of the first line and the one after the last. It misses nothing: a text is found where all
        its words are, and joined lines have the words of each line, unless one runs on from a line to the next.
        """

        @cache  # of the lines that are asked for: most of a long document doesn't change
        def words_at(place: int) -> set[str]:
            return _all_words(lines[place])

        @cache
        def runs_on_at(place: int) -> bool:
            return _runs_on(lines[place], lines[place + 1])

        def may_find(first: int, last: int) -> bool:
            there = set(chain.from_iterable(map(words_at, range(first, last))))
            found = (there.issuperset(known) for word in there for known in self._known_by_rarest.get(word, ()))
            return any(map(runs_on_at, range(first, last - 1))) or any(found)

        return may_find

    def found_in(self, line: str) -> set[Words]:
        """Return the words of each text that a line repeats.

        It has the same words, in any order if there are several, or all but a label; or it or one of its clauses
        contains them, with as many negations.
        """
        words = words_of(line)
        found = {words} & self._texts.keys() | self._unlabelled.get(words, set())
        found |= {known for known in self._sorted.get(tuple(sorted(words)), ()) if not _are_swapped(known, words)}
        if self._by_start.keys().isdisjoint(_threes(words)) and not _CLAUSE_DIFFERS.search(line):
            return found
        return found.union(*(self._inside(part) for part in (line, *_CLAUSE_END.split(line))))

    def found_across(self, lines: Sequence[str], new: Collection[int]) -> Iterator[tuple[int, int]]:
        """Yield the first and last of lines whose words run on from one to the next to say a known text.

        ``new``: the lines of which one must be among them. All by index.
        """
        words = [word for line in lines for word in words_of(line)]
        said = self._said_by(words)
        ends = list(accumulate(len(words_of(line)) for line in lines))
        reaches = len(words) + 1  # what a text must reach to have words of a new line
        for number in range(len(lines) - 1, -1, -1):
            first, end = ends[number - 1] if number else 0, ends[number]
            reaches = first + 1 if number in new else reaches
            if end + self._longest > reaches:
                for start in range(first, end):
                    yield from (
                        (number, bisect_left(ends, last)) for last in said[start] if last >= max(end + 1, reaches)
                    )

    def _said_by(self, words: Sequence[str]) -> defaultdict[int, list[int]]:
        """Return where the known texts end that words say, by where they start."""
        found: defaultdict[int, list[int]] = defaultdict(list)
        for known in self._candidates(words):
            for end in _ends(known, words):
                found[end - len(known)].append(end)
        return found

    def _inside(self, part: str) -> set[Words]:
        words, negations = words_of(part), count_negations(part)
        return {
            known
            for known in self._candidates(words)
            if _says(known, words) and count_negations(self._texts[known]) == negations
        }

    def _candidates(self, words: Sequence[str]) -> Iterator[Words]:
        """Yield the known texts whose every three consecutive words occur."""
        there = _threes(words)
        near = (known for three in there & self._by_start.keys() for known in self._by_start[three])
        return (known for known in near if there.issuperset(_threes(known)))


def _by_rarest(texts: Iterable[frozenset[str]]) -> defaultdict[str, list[frozenset[str]]]:
    """Return sets of words by the word of each that the fewest sets have."""
    known = list(texts)
    counts, found = Counter(chain.from_iterable(known)), defaultdict(list)
    for words in known:
        found[min(words, key=lambda word: (counts[word], word))].append(words)
    return found


def _threes(words: Sequence[str]) -> set[Words]:
    return set(zip(words, words[1:], words[2:], strict=False))


def _without_label(text: str) -> Words:
    """Return the words after a text's label or date, or () if it has no label, or one that negates them."""
    marked = _MARK.sub("", text, count=1)
    label = _LABEL.match(marked)
    return words_of(marked[label.end() :]) if label and not count_negations(label.group()) else ()


def contains(words: Words, inner: Words) -> bool:
    """Return whether words contain others, in their order and without gaps."""
    return any(_ends(inner, words))


def _ends(known: Words, words: Sequence[str]) -> Iterator[int]:
    """Yield where words have said what is known.

    By Knuth, Morris and Pratt (1977), because the words of an agent may repeat themselves.
    """
    if _spaced(known) not in _spaced(words):
        return
    sequence = (*known, None, *words)
    borders = [0] * len(sequence)  # how many of the first words end here
    for at in range(1, len(sequence)):
        length = borders[at - 1]
        while length and sequence[at] != sequence[length]:
            length = borders[length - 1]
        borders[at] = length + (sequence[at] == sequence[length])
        if borders[at] == len(known):
            yield at - len(known)


def _spaced(words: Iterable[str]) -> str:
    return f" {' '.join(words)} "


def _says(known: Words, words: Words) -> bool:
    """Return whether words say what is known. Few words must be the last, or others change them."""
    return any(
        end == len(words) or (len(known) >= ENOUGH_WORDS and words[end] != "s")  # in "Initech's rival"
        for end in _ends(known, words)
    )


def _are_swapped(known: Words, words: Words) -> bool:
    """Return whether two words have changed places, as in "Bob manages Ana" instead of "Ana manages Bob"."""
    return sum(one != other for one, other in zip(known, words, strict=True)) == 2


def is_telling(words: Sequence[str]) -> bool:
    """Return whether words are enough to be recognised in another order, or within others."""
    letters = sum(bool(_LETTER.match(word)) for word in words)
    return len(words) - letters >= LEAST_WORDS or letters >= LEAST_LETTERS
