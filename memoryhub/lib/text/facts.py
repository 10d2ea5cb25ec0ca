"""Parse the fact lines (bullets) of a memory document, and match them between revisions."""

from __future__ import annotations

import re
import unicodedata
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

from memoryhub.lib.text.separated import separator_in, split_entries
from memoryhub.lib.text_caches import text_cache

_HEADING = re.compile(r"^ {0,3}(#{1,6})\s+(.*?)\s*#*\s*$")
BULLET = re.compile(r"^\s*[-*+]\s+")
_FACT = re.compile(rf"{BULLET.pattern}(?:\[(?P<category>[\w-]{{1,64}})\]\s+)?(?P<text>\S.*)$")  # its end is stripped
_FENCE = re.compile(r"^ {0,3}(```|~~~)")
_MARKUP = re.compile(r"[*_`~]+")
_BULLETS, _FENCES = frozenset("-*+"), frozenset("`~")
MIN_SIMILARITY = 0.6  # difflib ratio from which two lines of a section are the same fact
MAX_COMPARED = 200  # lines per section compared for similarity; further lines match only if equal
MAX_CHAR_PAIRS = 100_000_000  # character pairs compared, a few seconds; further lines match only if equal


@dataclass(frozen=True)
class FactLine:
    """A bullet with its section heading, optional ``[category]``, text and line number from 1.

    In a document with separators, an entry: without section or category, possibly of several lines.
    """

    section: str
    category: str
    text: str
    line: int


@dataclass(frozen=True)
class Section:
    """A heading, its level (0 for text before the first heading) and the line numbers [start, end) of the section."""

    title: str
    level: int
    start: int
    end: int


def split_sections(text: str) -> list[Section]:
    """Split a document at its headings, ignoring code fences. Line numbers count from 1."""
    starts: list[tuple[str, int, int]] = []
    fenced = False
    lines = text.split("\n")
    for number, line in enumerate(lines, 1):
        if _FENCE.match(line):
            fenced = not fenced
        elif not fenced and (heading := _HEADING.match(line)):
            starts.append((heading.group(2), len(heading.group(1)), number))
    if not starts or starts[0][2] > 1:
        starts.insert(0, ("", 0, 1))
    ends = [start for _, _, start in starts[1:]] + [len(lines) + 1]
    return [Section(title, level, start, end) for (title, level, start), end in zip(starts, ends, strict=True)]


def fact_lines(text: str, separator: str = "", *, only: str = "") -> list[FactLine]:
    """Return the bullets of a document in order, ignoring code fences; with a separator, its entries.

    ``separator``: default: the one that the text contains, if any. ``only``: the text of the facts to return; finding
    them takes less time than reading all.
    """
    if separator := separator or separator_in(text):
        entries = split_entries(text, separator)
        return [FactLine("", "", entry.text, entry.line) for entry in entries if only in ("", entry.text)]
    facts: list[FactLine] = []
    section, fenced = "", False
    for number, line in enumerate(text.split("\n"), 1):
        stripped = line.strip()
        mark = stripped[:1]  # tells what a line may be, which is faster than matching all patterns
        if mark in _BULLETS:
            fact = _FACT.match(stripped) if stripped.endswith(only) and not fenced else None
            if fact and only in ("", fact["text"]):
                facts.append(FactLine(section, fact["category"] or "", fact["text"], number))
        elif mark in _FENCES and _FENCE.match(line):
            fenced = not fenced
        elif mark == "#" and not fenced and (heading := _HEADING.match(line)):
            section = heading.group(2)
    return facts


def is_fence(line: str) -> bool:
    """Tell whether a line opens or closes a code block."""
    return line.lstrip().startswith(("```", "~~~"))


@text_cache(10_000)  # each change of a document asks for all of its lines several times
def normal_form(text: str) -> str:
    """Return text for comparison: without markup and final periods, with case, Unicode and spaces normalised."""
    folded = unicodedata.normalize("NFKC", text).casefold()
    return " ".join(_MARKUP.sub("", folded).split()).rstrip(".")


def match_facts(old: Sequence[FactLine], new: Sequence[FactLine]) -> dict[int, int]:
    """Match the facts of two revisions and return ``{index in new: index in old}``.

    Equal ones match first, then the most similar remaining lines of each section (difflib ratio >= 0.6). Unmatched
    new lines are additions, unmatched old lines removals.
    """
    pairs = match_equal_facts(old, new)
    _match_similar(old, new, pairs, set(pairs.values()))
    return pairs


def match_equal_facts(old: Sequence[FactLine], new: Sequence[FactLine]) -> dict[int, int]:
    """Match only the facts with equal normal forms, preferably in the same section."""
    pairs: dict[int, int] = {}
    matched: set[int] = set()
    for with_section in (True, False):
        candidates: defaultdict[tuple[str, str], list[int]] = defaultdict(list)
        for index, line in enumerate(old):
            if index not in matched:
                candidates[_identity(line, with_section=with_section)].append(index)
        for index, line in enumerate(new):
            same = candidates.get(_identity(line, with_section=with_section))
            if index not in pairs and same:
                pairs[index] = same.pop(0)
                matched.add(pairs[index])
    return pairs


def _identity(line: FactLine, *, with_section: bool) -> tuple[str, str]:
    return (line.section if with_section else "", normal_form(line.text))


def _match_similar(
    old: Sequence[FactLine], new: Sequence[FactLine], pairs: dict[int, int], matched: set[int]
) -> None:
    unmatched: defaultdict[str, tuple[list[int], list[int]]] = defaultdict(lambda: ([], []))
    for index, line in enumerate(old):
        if index not in matched:
            unmatched[line.section][0].append(index)
    for index, line in enumerate(new):
        if index not in pairs:
            unmatched[line.section][1].append(index)
    budget = MAX_CHAR_PAIRS
    for removed, added in unmatched.values():
        olds = [(i, normal_form(old[i].text)) for i in removed[:MAX_COMPARED]]
        news = [(j, normal_form(new[j].text)) for j in added[:MAX_COMPARED]]
        similar, budget = _similar_pairs(olds, news, budget)
        for _, j, i in sorted(similar):
            if j not in pairs and i not in matched:
                pairs[j] = i
                matched.add(i)


def _similar_pairs(
    olds: Sequence[tuple[int, str]], news: Sequence[tuple[int, str]], budget: int
) -> tuple[list[tuple[float, int, int]], int]:
    """Return the similar pairs as (-ratio, new, old), and the rest of the budget of character pairs."""
    pairs = []
    matcher = SequenceMatcher(None, autojunk=False)
    for j, text in news:
        matcher.set_seq2(text)
        for i, earlier in olds:
            matcher.set_seq1(earlier)
            cost = len(earlier) * len(text)
            if cost > budget or matcher.real_quick_ratio() < MIN_SIMILARITY:
                continue
            budget -= cost
            if matcher.quick_ratio() >= MIN_SIMILARITY and (ratio := matcher.ratio()) >= MIN_SIMILARITY:
                pairs.append((-ratio, j, i))
    return pairs, budget
