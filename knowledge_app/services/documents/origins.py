"""Where the lines of a document came from: revision, run and messages."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from knowledge_app.models import FactSource, MemoryDocument, MemoryRevision
from knowledge_app.services.documents.blame import blame
from memoryhub.lib.document_size import is_oversize
from sessions_app.models import Entry

MAX_REVISIONS = 500  # read; older lines are attributed to the oldest of them


@dataclass(frozen=True)
class LineOrigin:
    """One line, the revision that introduced it, and the messages that its fact came from."""

    number: int
    text: str
    revision: MemoryRevision
    entries: list[Entry] = field(default_factory=list)

    @property
    def source(self) -> str:
        """The kind of source: run, file, person or agent."""
        kinds = {"sync": "file", "run": "run", "person": "person", "agent": "agent", "command": "command"}
        return kinds.get(self.revision.author_kind, self.revision.author_kind)


def line_origins(document: MemoryDocument) -> list[LineOrigin]:
    """Return the lines of a document's head with their origins, in order."""
    revisions = _revisions(document)
    if not revisions:
        return []
    numbers = blame(_texts(document, first=revisions[0].number))
    last: str = MemoryRevision.objects.values_list("content", flat=True).get(pk=revisions[-1].pk)
    entries: dict[int, list[Entry]] = {}
    sources = FactSource.objects.filter(fact__document=document, fact__died=None, entry__isnull=False)
    for source in sources.select_related("entry__session", "fact"):
        if source.entry:
            entries.setdefault(source.fact.line, []).append(source.entry)
    return [
        LineOrigin(place, line, revisions[number], entries.get(place, []))
        for place, (line, number) in enumerate(zip(last.split("\n"), numbers, strict=True), 1)
    ]


def line_revisions(document: MemoryDocument) -> list[MemoryRevision]:
    """Return the revision that introduced each line of a document's head, without the revisions' texts."""
    revisions = _revisions(document)
    return [revisions[number] for number in blame(_texts(document, first=revisions[0].number))] if revisions else []


def _revisions(document: MemoryDocument) -> list[MemoryRevision]:
    """Return the latest revisions without their texts, oldest first."""
    rows = document.revisions.select_related("run__session", "proposal")
    rows = rows.defer("content", "raw", "proposal__proposed", "proposal__raw")
    return list(rows.order_by("-number")[:MAX_REVISIONS])[::-1]


def _texts(document: MemoryDocument, *, first: int) -> Iterator[str]:
    """Return the texts of a document from a revision on, one at a time. Oversize ones count as empty."""
    rows = document.revisions.filter(number__gte=first).order_by("number").values_list("content", flat=True)
    for text in rows.iterator(chunk_size=4):
        yield "" if is_oversize(text) else text
