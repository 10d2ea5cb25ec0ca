"""Check a whole text, line by line and across line breaks."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise

from memoryhub.lib.content_check.hidden_content import hidden_in
from memoryhub.lib.content_check.resemblance import SENTENCE_END
from memoryhub.lib.content_check.shape import EXPLANATIONS, INSTRUCTION, may_have_finding, resembles, shape_of
from memoryhub.lib.text_caches import text_cache

RESEMBLES = "resembles instructions to a model"
MAX_LINE_CHARS = 4_000  # a longer line is checked in overlapping pieces
OVERLAP_CHARS = 200
MAX_JOINED_LINES = 4
MAX_RUN_CHARS = 2_000  # of lines that are checked together first
END_CHARS = 20  # of a line, which tell whether its sentence goes on
_STARTS_ITEM = re.compile(r"\s*(?:[-*+•]\s|[>|#]|\d{1,3}[.)]\s|```|~~~|\[\d{4}-\d\d-\d\d)")
_UNFINISHED = re.compile(
    r"(?:[,:;|\\(\[{<&=+/-]|\.\.\.|…|\b(?:the|an?|to|of|and|or|all|any|every|each|with|from|in|on|at|by|for|your|you|must"
    r"|should|always|never|please|run|send|ignore|execute|del?|la|el|los|las|les|le|des|der|die|das|und|et|y|e"
    r"|il|o|os"
    r"|as|и|в|на|все|den|dem|alle|toutes?|todas?|todos?|tutte|tutti|previous|prior))\s*$",
    re.IGNORECASE,
)
_STARTS_SENTENCE = re.compile(r"[A-ZÀ-ÞА-Я][^\WA-Z\d_]")
_FINISHED = re.compile(r"[.!?。！？।؟][\"')\]*_`]*\s*$")


_Passage = list[tuple[list[int], str]]  # joins of lines that begin at the same one


@dataclass(frozen=True)
class Finding:
    """Why a line of a text shouldn't be stored without review. ``line`` counts from 1."""

    code: str
    line: int
    message: str


def check_text(text: str, *, only: Collection[int] | None = None) -> list[Finding]:
    """Return the findings of a text in the order of its lines, at most one per line; an empty list for a plain text.

    Lines are checked alone, and joined with their neighbours where a sentence goes on, so that a line break doesn't
    hide an instruction. ``only``: the numbers of the lines to check, by default all.
    """
    lines = text.split("\n")
    passages = list(_passages(lines))
    joins = [join for passage in passages for join in passage]
    checked = set(range(1, len(lines) + 1)) if only is None else _with_neighbours(only, joins)
    found = {number: finding for number in checked if (finding := _check_line(lines[number - 1], number))}
    wanted = [passage for passage in passages if passage[0][0][0] in checked]
    for numbers, joined in (join for passage in _suspicious(wanted, lines) for join in passage):
        if _may_share(numbers, found, lines) and (code := shape_of(joined)):
            for number in numbers:
                found.setdefault(number, Finding(code, number, EXPLANATIONS[code]))
    for numbers, _ in (passage[0] for passage in wanted):
        if _may_share(numbers, found, lines) and resembles(
            _sentence_across(*(lines[number - 1] for number in numbers))
        ):
            found = {number: Finding(INSTRUCTION, number, RESEMBLES) for number in numbers} | found
    return [found[number] for number in sorted(found) if only is None or number in only]


def flagged_lines(text: str) -> set[int]:
    """Return the numbers of the lines that have findings."""
    return {finding.line for finding in check_text(text)}


@text_cache(512)  # agents read the same summaries and titles again and again
def unflagged(text: str) -> str:
    """Return a text without the lines that have findings."""
    flagged = flagged_lines(text)
    return "\n".join(line for number, line in enumerate(text.split("\n"), 1) if number not in flagged)


def _check_line(line: str, number: int) -> Finding | None:
    if not line.strip():
        return None
    if hidden := hidden_in(line):
        return Finding(hidden[0], number, hidden[1])
    step = MAX_LINE_CHARS - OVERLAP_CHARS
    for start in range(0, len(line), step):
        if code := shape_of(line[start : start + MAX_LINE_CHARS]):
            return Finding(code, number, EXPLANATIONS[code])
    return Finding(INSTRUCTION, number, RESEMBLES) if resembles(line) else None


def _passages(lines: list[str]) -> Iterator[_Passage]:
    """Yield the joins that begin at each line, shorter ones first: numbers and text of lines that may be a sentence.

    The last join of a passage contains the others, so that one check is enough for a plain text.
    """
    kept = [(number, line) for number, line in enumerate(lines, 1) if line.strip()]
    for index in range(len(kept) - 1):
        numbers, text = [kept[index][0]], kept[index][1]
        passage = []
        for number, line in kept[index + 1 : index + MAX_JOINED_LINES]:
            if not _goes_on(text, line):
                break
            text = f"{text.rstrip()} {_bare(line)}"
            numbers = [*numbers, number]
            if len(text) <= MAX_LINE_CHARS:
                passage.append((numbers, text))
        if passage:
            yield passage


def _suspicious(passages: list[_Passage], lines: list[str]) -> Iterator[_Passage]:
    """Yield the passages that have a finding. Those of consecutive lines are first checked together, to save time."""
    start = 0
    while start < len(passages):
        numbers, size, end = set(passages[start][-1][0]), len(passages[start][-1][1]), start + 1
        while end < len(passages) and passages[end][0][0][0] in numbers and size < MAX_RUN_CHARS:
            numbers |= set(passages[end][-1][0])
            size += len(lines[passages[end][-1][0][-1] - 1])
            end += 1
        first, *others = sorted(numbers)
        if end - start < 3 or may_have_finding([lines[first - 1], *(_bare(lines[number - 1]) for number in others)]):
            yield from (passage for passage in passages[start:end] if shape_of(passage[-1][1]))
        start = end


def _with_neighbours(numbers: Collection[int], joins: Iterable[tuple[list[int], str]]) -> set[int]:
    """Return the numbers of lines, and of all lines that are joined with them, directly or through others.

    Joins are of consecutive lines, in the order of the first; each line is added to its passage once.
    """
    passages: list[list[int]] = []
    for joined, _ in joins:
        if passages and joined[0] <= passages[-1][-1]:
            passages[-1] += [number for number in joined if number > passages[-1][-1]]
        else:
            passages.append([*joined])
    wanted = set(numbers)
    return wanted.union(*(passage for passage in passages if not wanted.isdisjoint(passage)))


def _goes_on(text: str, line: str) -> bool:
    """Return whether a line may continue the sentence at the end of a text."""
    if _UNFINISHED.search(text.rstrip()[-END_CHARS:]):
        return True
    if _STARTS_ITEM.match(line) or _FINISHED.search(text):
        return False
    return line[0].isspace() or not _STARTS_SENTENCE.match(line)


def _sentence_across(first: str, second: str) -> str:
    """Return the sentence that begins in a line and goes on in the next one."""
    return f"{SENTENCE_END.split(first.rstrip())[-1]} {SENTENCE_END.split(_bare(second))[0]}"


def _may_share(numbers: list[int], found: dict[int, Finding], lines: list[str]) -> bool:
    """Return whether lines that are joined may have a finding together that not all of them have."""
    known = [number for number in numbers if number in found]
    return not known or (len(known) < len(numbers) and _is_wrapped(lines, numbers))


def _is_wrapped(lines: list[str], numbers: list[int]) -> bool:
    """Return whether each line but the first is indented, or follows a line that can't be the end of a sentence."""
    return all(
        (lines[number - 1][0].isspace() and not _STARTS_ITEM.match(lines[number - 1]))
        or _UNFINISHED.search(lines[before - 1].rstrip()[-END_CHARS:])
        for before, number in pairwise(numbers)
    )


def _bare(line: str) -> str:
    return re.sub(r"^[\s>]*(?:[-*+•|]\s|\d{1,3}[.)]|#{1,6})?\s*", "", line)
