"""The origins of a document's lines, as runs of lines with the same origin."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from knowledge_app.models import Fact, FactSource, MemoryDocument, MemoryRevision
from knowledge_app.services.documents.origins import line_revisions
from knowledge_app.services.documents.revisions import is_acceptance
from memoryhub.origins.certainty import best_sources
from memoryhub.origins.explanation import KINDS, certainty_of, kind_of
from sessions_app.models import Entry

PAGE_LINES = 50
_TEXTS = ("born__content", "born__raw", "accepted__content", "accepted__raw")
DEFERRED = (*_TEXTS, "accepted__proposal__proposed", "accepted__proposal__raw")
_HEADING = re.compile(r"^ {0,3}#{1,6}\s")


@dataclass(frozen=True)
class BlameLine:
    """A line with its number from 1 and its fact's primary key, if it is a fact."""

    number: int
    text: str
    fact: int | None = None


@dataclass(frozen=True)
class BlameRun:
    """Consecutive lines of one origin: the revision that added them and, for facts, the best source.

    ``accepted``: the revision with which a person accepted them from a proposal.
    """

    revision: MemoryRevision
    source: FactSource | None = None
    kind: str = ""
    accepted: MemoryRevision | None = None
    lines: list[BlameLine] = field(default_factory=list)

    @property
    def entry(self) -> Entry | None:
        return self.source.entry if self.source else None

    @property
    def label(self) -> str:
        """Return what connects the lines with their source."""
        return str(KINDS[self.source.kind]) if self.source else ""

    @property
    def certainty(self) -> str:
        return certainty_of(self.kind, self.source) if self.source else ""

    @property
    def key(self) -> tuple[int | None, ...]:
        source, accepted = self.source, self.accepted.pk if self.accepted else None
        if source is None:
            return self.revision.pk, accepted
        return self.revision.pk, accepted, source.entry_id, source.run_id, source.history_entry_id


def blame_runs(document: MemoryDocument, texts: Sequence[str], *, first: int = 1) -> list[BlameRun]:
    """Return the origins of a page of lines, from line ``first`` on.

    ``texts``: the lines of the document's head as they are shown. Blank lines belong to the run before them, and
    headings of the same revision to the run after them.
    """
    revisions = line_revisions(document)
    numbers = range(first, min(first + PAGE_LINES, len(texts) + 1, len(revisions) + 1))
    facts = _facts(document, numbers)
    sources = best_sources([fact.pk for fact in facts.values()])
    lines = [_run(revisions[number - 1], number, texts[number - 1], facts, sources) for number in numbers]
    runs: list[BlameRun] = []
    for line in _with_neighbours(lines):
        if runs and runs[-1].key == line.key:
            runs[-1].lines.extend(line.lines)
        else:
            runs.append(line)
    return runs


def _facts(document: MemoryDocument, numbers: range) -> dict[int, Fact]:
    """Return the fact of each line, without the texts of its revisions."""
    rows = Fact.objects.filter(document=document, died=None, line__gte=numbers.start, line__lt=numbers.stop)
    rows = rows.select_related("born", "accepted__proposal").defer(*DEFERRED)
    return {fact.line: fact for fact in rows}


def _run(
    revision: MemoryRevision,
    number: int,
    text: str,
    facts: Mapping[int, Fact],
    sources: Mapping[int, FactSource],
) -> BlameRun:
    """Return a run of one line."""
    fact = facts.get(number)
    if fact is None:
        accepted = revision if is_acceptance(revision) else None
        return BlameRun(revision, accepted=accepted, lines=[BlameLine(number, text)])
    source = sources.get(fact.pk)
    return BlameRun(revision, source, kind_of(fact, source), fact.accepted, [BlameLine(number, text, fact.pk)])


def _with_neighbours(lines: Sequence[BlameRun]) -> list[BlameRun]:
    """Return runs of one line each, where blank lines and headings have the origin of a neighbour."""
    found: list[BlameRun] = []
    after: BlameRun | None = None
    for line in reversed(lines):  # headings and the lines between them and what follows
        text = line.lines[0].text
        is_heading = bool(_HEADING.match(text))
        if is_heading and after is not None and after.revision.pk == line.revision.pk:
            line = replace(after, lines=line.lines)
        if text.strip():
            after = line
        found.append(line)
    found.reverse()
    for place in range(1, len(found)):
        if not found[place].lines[0].text.strip():
            found[place] = replace(found[place - 1], lines=found[place].lines)
    return _lead(found)


def _lead(lines: list[BlameRun]) -> list[BlameRun]:
    """Give blank lines at the beginning the origin of the first line with text."""
    first = next((line for line in lines if line.lines[0].text.strip()), None)
    for place, line in enumerate(lines):
        if line.lines[0].text.strip() or first is None:
            break
        lines[place] = replace(first, lines=line.lines)
    return lines
