"""Grip's own searches over a workspace's rows, with its results: MEMORY.md, HISTORY.md and the knowledge base.

What is searched is the text that Grip would have in its files: no archives, held or withdrawn rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime

from knowledge_app.models import Fact, HistoryEntry, KnowledgeEntry, MemoryDocument
from knowledge_app.services.held_rows import unheld
from memoryhub.search.grip_scoring import (
    DEFAULT_DECAY,
    history_lines,
    history_text,
    log_opening,
    memory_lines,
    search_lines,
)
from sessions_app.models import SourceFile, Workspace

MEMORY, HISTORY, KNOWLEDGE = "memory", "history", "knowledge"
MEMORY_NAME, LOG_NAME = "MEMORY.md", "HISTORY.md"
MEMORY_LIMIT, HISTORY_LIMIT, KNOWLEDGE_LIMIT = 10, 20, 20  # Grip's defaults


@dataclass(frozen=True)
class GripHit:
    """One matching line of ``kind`` memory, history or knowledge.

    ``id``: the history or knowledge entry; in memory, the fact on that line (``is_fact``), else the document. None
    for the heading of a history. ``score``: None where Grip computes none. ``position``: the line number in MEMORY.md
    from 1, or the history entry's position.
    """

    kind: str
    id: int | None
    line: str
    score: float | None = None
    occurred_at: datetime | None = None
    position: int | None = None
    session_key: str | None = None
    is_fact: bool = False


@dataclass(frozen=True)
class _Logged:
    """A history entry as written in its file; ``pk`` is None for the file's heading."""

    text: str
    pk: int | None = None
    position: int | None = None
    occurred_at: datetime | None = None
    session_key: str | None = None
    source: str = ""
    is_withdrawn: bool = False


def search_memory(
    workspace: Workspace, query: str, *, category: str = "", limit: int = MEMORY_LIMIT
) -> list[GripHit]:
    """Return the lines of MEMORY.md that Grip's ``search_memory`` returns; two queries. Reads only.

    A query without words returns the first lines. A workspace without MEMORY.md has none.
    """
    document = MemoryDocument.objects.filter(workspace=workspace, name=MEMORY_NAME).select_related("head").first()
    if document is None or document.head is None:
        return []
    numbered = memory_lines(document.head.content)
    lines = [line for _, line in numbered]
    found = search_lines(lines, query, limit=limit, category=category, first_without_words=True)
    facts = dict(Fact.objects.filter(document=document, died=None).values_list("line", "pk")) if found else {}
    hits = []
    for hit in found:
        number = numbered[hit.index][0]
        fact = facts.get(number)
        pk = document.pk if fact is None else fact
        hits.append(GripHit(MEMORY, pk, hit.line, hit.score, position=number, is_fact=fact is not None))
    return hits


def search_history(
    workspace: Workspace, query: str, *, decay: float = DEFAULT_DECAY, now: datetime, limit: int = HISTORY_LIMIT
) -> list[GripHit]:
    """Return the lines of HISTORY.md that Grip's ``search_history`` returns; at most three queries. Reads only.

    ``decay`` per hour of age at ``now``, 0 for none. An entry of several lines is as many lines, as in Grip.
    """
    entries = [entry for entry in _log(workspace) if not entry.is_withdrawn]
    placed = [(line, entry) for entry in entries for line in history_lines(entry.text)]
    found = search_lines([line for line, _ in placed], query, limit=limit, decay=decay, now=now)
    return [_history_hit(hit.line, hit.score, placed[hit.index][1]) for hit in found]


def _history_hit(line: str, score: float | None, entry: _Logged) -> GripHit:
    return GripHit(HISTORY, entry.pk, line, score, entry.occurred_at, entry.position, entry.session_key)


def _log(workspace: Workspace) -> list[_Logged]:
    """Return the lines of HISTORY.md in order, withdrawn entries marked.

    An entry that a rotation cut in two is one archived row; how much of it is in the file, and whether the heading
    still is, follows from the file's size.
    """
    entries = list(_read_log(workspace, is_archived=False))
    sources = SourceFile.objects.filter(workspace=workspace, folder=None, kind="history", path__endswith=LOG_NAME)
    source = sources.order_by("pk").values_list("path", "size").first()
    if workspace.layout != Workspace.Layout.GRIP or source is None:
        return entries
    path, size = source
    rest = size - sum(len(f"{entry.text}\n".encode()) for entry in entries if entry.source == path)
    if rest <= 0:
        return entries
    last = next(_read_log(workspace, is_archived=True), None)
    opening = log_opening(rest, last.text if last else "")
    return [replace(last, text=opening) if last else _Logged(opening), *entries]


def _read_log(workspace: Workspace, *, is_archived: bool) -> Iterator[_Logged]:
    """Yield the entries of the log in order; if ``is_archived``, only the last archived one."""
    rows = HistoryEntry.objects.filter(workspace=workspace, is_archived=is_archived, hold=None)
    names = ("pk", "position", "content", "occurred_at", "occurred_at_text", "session__key", "source", "withdrawn_at")
    ordered = rows.in_order().reverse()[:1] if is_archived else rows.in_order()
    for pk, position, content, occurred_at, written, key, source, withdrawn_at in ordered.values_list(*names):
        text = history_text(content, occurred_at=occurred_at, written=written)
        yield _Logged(text, pk, position, occurred_at, key, source, withdrawn_at is not None)


def search_knowledge(
    workspace: Workspace, query: str, *, category: str = "", limit: int = KNOWLEDGE_LIMIT
) -> list[GripHit]:
    """Return the knowledge that Grip's search returns, its content as the line; one query. Reads only.

    An entry matches if its content, tags and source, joined by spaces, contain the query, ignoring case. Most used
    first, then newest, then in insertion order. An empty query matches all.
    """
    rows = unheld(KnowledgeEntry.objects.filter(workspace=workspace, withdrawn_at=None)).order_by("pk")
    if category:
        rows = rows.filter(category=category)
    sought = query.lower()
    found = [row for row in rows if sought in f"{row.content} {' '.join(row.tags)} {row.source}".lower()]
    found.sort(key=lambda row: (row.access_count, _created(row)), reverse=True)
    return [GripHit(KNOWLEDGE, row.pk, row.content, occurred_at=row.created_at) for row in found[: max(0, limit)]]


def _created(row: KnowledgeEntry) -> float:
    """Return the creation time in seconds, from the agent's file where that is more precise than the column."""
    written = row.extra.get("created_at")
    if isinstance(written, int | float):
        return float(written)
    return row.created_at.timestamp() if row.created_at else 0.0
