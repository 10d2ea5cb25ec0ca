"""Fact lines: the bullets of a memory document, and which is which from one revision to the next."""

from __future__ import annotations

import re
import unicodedata
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

_HEADING = re.compile(r"^ {0,3}(#{1,6})\s+(.*?)\s*#*\s*$")
_BULLET = re.compile(r"^\s*[-*+]\s+(?:\[(?P<category>[\w-]{1,64})\]\s+)?(?P<text>\S.*?)\s*$")
_FENCE = re.compile(r"^ {0,3}(```|~~~)")
LIKENESS = 0.6  # below it, two lines of a section are two facts
MAX_COMPARED = 200  # lines of a section compared with each other; beyond it only equal ones match
MAX_CHAR_PAIRS = 100_000_000  # of characters of such lines, some seconds; beyond it likewise


@dataclass(frozen=True)
class FactLine:
    """One bullet: its section heading, optional ``[category]``, text, and line number from 1."""

    section: str
    category: str
    text: str
    line: int


@dataclass(frozen=True)
class Section:
    """A heading with its level (0 before the first) and the line numbers [start, end) of heading and body."""

    title: str
    level: int
    start: int
    end: int


def split_sections(text: str) -> list[Section]:
    """Cut a document at its headings; headings inside code fences are text. Lines count from 1."""
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


def fact_lines(text: str) -> list[FactLine]:
    """Return the bullets of a document in order; bullets inside code fences are text."""
    facts: list[FactLine] = []
    section, fenced = "", False
    for number, line in enumerate(text.split("\n"), 1):
        if _FENCE.match(line):
            fenced = not fenced
        elif fenced:
            continue
        elif heading := _HEADING.match(line):
            section = heading.group(2)
        elif bullet := _BULLET.match(line):
            facts.append(FactLine(section, bullet["category"] or "", bullet["text"], number))
    return facts


def normal_form(text: str) -> str:
    """Return what equal facts share: marks, spaces, case and compatibility forms aside. Numbers and signs count."""
    folded = unicodedata.normalize("NFKC", text).casefold()
    return " ".join(re.sub(r"[*_`~]+", "", folded).split()).rstrip(".")


def match_facts(old: Sequence[FactLine], new: Sequence[FactLine]) -> dict[int, int]:
    """Tell which new line continues which old one: ``{index in new: index in old}``.

    First equal normal forms, the same section before another; then, within a section, the likeliest pairs of what is
    left (difflib ratio >= 0.6), best first. A line that matches none is new; an old one matched by none is gone.
    """
    pairs: dict[int, int] = {}
    taken: set[int] = set()
    for with_section in (True, False):
        places: defaultdict[tuple[str, str], list[int]] = defaultdict(list)
        for index, line in enumerate(old):
            if index not in taken:
                places[_identity(line, with_section=with_section)].append(index)
        for index, line in enumerate(new):
            waiting = places.get(_identity(line, with_section=with_section))
            if index not in pairs and waiting:
                pairs[index] = waiting.pop(0)
                taken.add(pairs[index])
    _match_by_likeness(old, new, pairs, taken)
    return pairs


def _identity(line: FactLine, *, with_section: bool) -> tuple[str, str]:
    return (line.section if with_section else "", normal_form(line.text))


def _match_by_likeness(
    old: Sequence[FactLine], new: Sequence[FactLine], pairs: dict[int, int], taken: set[int]
) -> None:
    left: defaultdict[str, tuple[list[int], list[int]]] = defaultdict(lambda: ([], []))
    for index, line in enumerate(old):
        if index not in taken:
            left[line.section][0].append(index)
    for index, line in enumerate(new):
        if index not in pairs:
            left[line.section][1].append(index)
    room = MAX_CHAR_PAIRS
    for gone, come in left.values():
        olds = [(i, normal_form(old[i].text)) for i in gone[:MAX_COMPARED]]
        news = [(j, normal_form(new[j].text)) for j in come[:MAX_COMPARED]]
        likely, room = _likely_pairs(olds, news, room)
        for _, j, i in sorted(likely):
            if j not in pairs and i not in taken:
                pairs[j] = i
                taken.add(i)


def _likely_pairs(
    olds: Sequence[tuple[int, str]], news: Sequence[tuple[int, str]], room: int
) -> tuple[list[tuple[float, int, int]], int]:
    """Return the pairs that are alike, (-ratio, new, old), and how many pairs of characters are left to compare."""
    found = []
    matcher = SequenceMatcher(None, autojunk=False)
    for j, text in news:
        matcher.set_seq2(text)
        for i, earlier in olds:
            matcher.set_seq1(earlier)
            cost = len(earlier) * len(text)
            if cost > room or matcher.real_quick_ratio() < LIKENESS:
                continue
            room -= cost
            if matcher.quick_ratio() >= LIKENESS and (ratio := matcher.ratio()) >= LIKENESS:
                found.append((-ratio, j, i))
    return found, room
