"""The first lines that an erasure affects in a workspace, with links to their pages. Reads only."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import NamedTuple

from django.db.models import Model
from django.urls import reverse

from knowledge_app.models import CachedResponse, Fact, HeldChange, KnowledgeEntry, Observation
from memoryhub.forgetting.matching import Redaction, composed
from memoryhub.forgetting.rules import Affected, base_of, brief, texts_of
from sessions_app.models import Entry, Session, Workspace

SHOWN = 3
PAGES: dict[type[Model], str] = {
    Entry: "sessions:entry",
    Session: "sessions:detail",
    Fact: "documents:fact",
    KnowledgeEntry: "knowledge:knowledge-entry",
    Observation: "knowledge:observation",
    CachedResponse: "knowledge:cached-response",
    HeldChange: "held-change",
}


class Line(NamedTuple):
    """A line that is affected, and the URL of its row's page; "" if it has none."""

    text: str
    url: str


@dataclass
class AffectedLines:
    """The first lines of each table."""

    workspace: Workspace | None
    found: defaultdict[type[Model], list[Line]] = field(default_factory=lambda: defaultdict(list))

    def add(self, row: Model, affected: Affected, redaction: Redaction) -> None:
        """Add the line of a row that mentions the words, unless its table has enough."""
        lines = self.found[base_of(row)]
        if len(lines) < SHOWN and affected.example:
            lines.append(Line(_line(row, redaction) or affected.example, self._url(row)))

    @property
    def first(self) -> list[Line]:
        """Different lines with a link, of as many tables as possible; without one if none has it."""
        every = [(rank, line) for lines in self.found.values() for rank, line in enumerate(lines)]
        ranked = [line for _, line in sorted(every, key=lambda one: one[0])]
        linked = [line for line in ranked if line.url] or ranked
        return list({line.text: line for line in reversed(linked)}.values())[::-1][:SHOWN]

    def _url(self, row: Model) -> str:
        page = PAGES.get(type(row))
        return reverse(page, args=[self.workspace.slug, row.pk]) if page and self.workspace else ""


def _line(row: Model, redaction: Redaction) -> str:
    """Return the first line that mentions the words; "" if they go over several lines."""
    lines = (line for text in texts_of(row) for line in composed(text).split("\n"))
    return brief(next((line for line in lines if redaction.mentions(line)), ""))
