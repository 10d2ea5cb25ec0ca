"""Snapshots of a workspace at a moment, and the comparison of two.

Moments are on the hub's own clock: a snapshot is what the hub knew then. ``rows`` and ``sessions`` rebuild it from
what the tables keep; ``gaps`` names what they don't keep.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from django.db.models import QuerySet

from knowledge_app.models import HistoryEntry
from memoryhub.lib.document_size import shown_part
from memoryhub.lib.masked_text import masked
from memoryhub.lib.text.change_guard import compare_facts
from memoryhub.lib.text.diff import DiffLine, diff_lines
from memoryhub.time_travel.gaps import Gap, gaps_of
from memoryhub.time_travel.parsing import known_since
from memoryhub.time_travel.rows import (
    CURATED,
    DocumentAt,
    FactAt,
    HistoryAt,
    Keys,
    KeyValueAt,
    KnowledgeAt,
    ObservationAt,
    changed_between,
    documents_at,
    facts_at,
    history_entries_at,
    history_of,
    read_states,
    states_at,
)
from memoryhub.time_travel.sessions import SessionAt, SummaryAt, known_sessions, sessions_at, touched_sessions
from sessions_app.models import Session, Workspace

Became = Literal["added", "changed", "withdrawn", "returned", "removed", "same"]
Row = KnowledgeAt | ObservationAt | KeyValueAt


@dataclass(frozen=True)
class WorkspaceAt:
    """A workspace at a moment, with the gaps. ``since``: when the hub's record of the workspace begins."""

    at: datetime
    since: datetime
    documents: tuple[DocumentAt, ...]
    facts: tuple[FactAt, ...]
    knowledge: tuple[KnowledgeAt, ...]
    observations: tuple[ObservationAt, ...]
    key_values: tuple[KeyValueAt, ...]
    history: tuple[HistoryAt, ...]
    sessions: tuple[SessionAt, ...]
    gaps: tuple[Gap, ...]


@dataclass(frozen=True)
class DocumentChange:
    """A document at two moments (None: it didn't exist), its diff, and the numbers of changed facts."""

    name: str
    pk: int
    before: DocumentAt | None
    after: DocumentAt | None
    diff: list[DiffLine]
    facts_added: int
    facts_removed: int
    facts_reworded: int


@dataclass(frozen=True)
class RowChange:
    """A change to a curated row; ``diff`` is empty for secrets. "same": only dates changed."""

    pk: int
    became: Became
    before: Row | None
    after: Row | None

    @property
    def shown(self) -> Row | None:
        """The row after the change, or before it if it was removed."""
        return self.after or self.before

    diff: list[DiffLine]


@dataclass(frozen=True)
class SessionChange:
    """Changes to a session: new entries, pointer, epoch, and added and removed summaries."""

    pk: int
    key: str
    before: SessionAt | None
    after: SessionAt
    new_entries: int
    new_summaries: tuple[SummaryAt, ...]
    gone_summaries: tuple[SummaryAt, ...]

    @property
    def is_moved(self) -> bool:
        """Whether the pointer or the epoch changed."""
        was = (self.before.epoch, self.before.pointer) if self.before else (0, 0)
        return was != (self.after.epoch, self.after.pointer)

    @property
    def is_nothing(self) -> bool:
        changed = self.is_moved or self.new_entries or self.new_summaries or self.gone_summaries
        return self.before is not None and not changed


@dataclass(frozen=True)
class Comparison:
    """Changes to a workspace after ``first``, up to and including ``second``."""

    first: datetime
    second: datetime
    documents: tuple[DocumentChange, ...]
    knowledge: tuple[RowChange, ...]
    observations: tuple[RowChange, ...]
    key_values: tuple[RowChange, ...]
    new_history: tuple[HistoryAt, ...]
    withdrawn_history: tuple[HistoryAt, ...]
    sessions: tuple[SessionChange, ...]
    gaps: tuple[Gap, ...]


def as_of(workspace: Workspace, at: datetime) -> WorkspaceAt:
    """Return a workspace as the hub knew it at a moment. Reads only.

    The number of queries is constant, except for five per 200 sessions.
    """
    documents = documents_at(workspace, at)
    states = {part: read_states(part, states_at(model, workspace, at)) for part, model in CURATED.items()}
    return WorkspaceAt(
        at=at,
        since=known_since(workspace),
        documents=tuple(documents),
        facts=tuple(facts_at(workspace, documents, at)),
        knowledge=tuple(states["knowledge"]),
        observations=tuple(states["observations"]),
        key_values=tuple(states["key-values"]),
        history=tuple(history_of(workspace, history_entries_at(workspace, at).order_by("position"), at)),
        sessions=tuple(sessions_at(known_sessions(workspace, at).order_by("id"), at)),
        gaps=tuple(gaps_of(workspace, at)),
    )


def compare(workspace: Workspace, first: datetime, second: datetime) -> Comparison:
    """Return the changes between two moments, the earlier first. Reads only changed rows and the documents."""
    rows = {part: _curated_changes(workspace, part, first, second) for part in CURATED}
    touched = touched_sessions(workspace, first, second).order_by("id")
    return Comparison(
        first=first,
        second=second,
        documents=tuple(document_changes(workspace, first, second)),
        knowledge=rows["knowledge"],
        observations=rows["observations"],
        key_values=rows["key-values"],
        new_history=tuple(history_of(workspace, new_history(workspace, first, second).order_by("position"), second)),
        withdrawn_history=tuple(
            history_of(workspace, withdrawn_history(workspace, first, second).order_by("position"), second)
        ),
        sessions=tuple(session_changes(workspace, touched, first, second)),
        gaps=tuple(gaps_of(workspace, first)),
    )


def _curated_changes(workspace: Workspace, part: str, first: datetime, second: datetime) -> tuple[RowChange, ...]:
    touched = changed_between(CURATED[part], workspace, first, second).order_by().values("id")
    return tuple(row_changes(workspace, part, touched, first, second))


def changed_documents(
    workspace: Workspace, first: datetime, second: datetime
) -> list[tuple[DocumentAt | None, DocumentAt]]:
    """Return (before, after) of each document whose text differs between two moments. Two queries."""
    old = {document.pk: document for document in documents_at(workspace, first)}
    pairs = [(old.get(after.pk), after) for after in documents_at(workspace, second)]
    return [(before, after) for before, after in pairs if before is None or before.content != after.content]


def document_changes(workspace: Workspace, first: datetime, second: datetime) -> list[DocumentChange]:
    """Return the changed documents with their diffs and fact changes. Takes seconds for long texts."""
    changes = []
    for before, after in changed_documents(workspace, first, second):
        was = before.content if before else ""
        facts = compare_facts(was, after.content)
        changes.append(
            DocumentChange(
                name=after.name,
                pk=after.pk,
                before=before,
                after=after,
                diff=compared(shown_part(was) if before else None, shown_part(after.content)),
                facts_added=len(facts.added),
                facts_removed=len(facts.removed),
                facts_reworded=len(facts.rewritten),
            )
        )
    return changes


def row_changes(workspace: Workspace, part: str, pks: Keys, first: datetime, second: datetime) -> list[RowChange]:
    """Return the changes to rows of ``part`` (knowledge, observations, key-values). Two to four queries."""
    old, new = (
        {row.pk: row for row in read_states(part, states_at(CURATED[part], workspace, at, pks=pks))}
        for at in (first, second)
    )
    return [_row_change(part, pk, old.get(pk), new.get(pk)) for pk in sorted(old.keys() | new.keys())]


def _row_change(part: str, pk: int, before: Any, after: Any) -> RowChange:
    old, new = (WORDS_OF[part](row) if row else None for row in (before, after))
    is_shown = not any(getattr(row, "is_secret", False) for row in (before, after))
    diff = compared(old, new) if is_shown else []
    return RowChange(pk, _became(before, after, differs=old != new), before, after, diff)


def compared(old: str | None, new: str | None) -> list[DiffLine]:
    """Return the diff of two texts with secrets masked, empty if they are equal. None is no text at all."""
    is_equal = old == new
    old, new = (text if text is None else masked(text) for text in (old, new))
    if old is None:
        return [DiffLine("ins", line, new_number=number) for number, line in enumerate((new or "").split("\n"), 1)]
    if new is None:
        return [DiffLine("del", line, number) for number, line in enumerate(old.split("\n"), 1)]
    return [] if is_equal else diff_lines(old, new)


def _became(before: Any, after: Any, *, differs: bool) -> Became:
    if before is None or after is None:
        return "added" if before is None else "removed"
    if before.withdrawn != after.withdrawn:
        return "withdrawn" if after.withdrawn else "returned"
    is_other_secret = getattr(after, "is_secret", False) and before.state != after.state
    return "changed" if differs or is_other_secret else "same"


def _knowledge_words(row: Any) -> str:
    tags = f"\n{', '.join(row.tags)}" if row.tags else ""
    return f"[{row.category}] {row.content}{tags}"


def _observation_words(row: Any) -> str:
    return f"[{row.category}] {row.content}"


def _value_words(row: Any) -> str:
    return str(row.value)


WORDS_OF: dict[str, Callable[[Any], str]] = {
    "knowledge": _knowledge_words,
    "observations": _observation_words,
    "key-values": _value_words,
}


def new_history(workspace: Workspace, first: datetime, second: datetime) -> QuerySet[HistoryEntry]:
    """Return the history entries recorded after ``first``, up to ``second``."""
    return HistoryEntry.objects.filter(workspace=workspace, recorded_at__gt=first, recorded_at__lte=second)


def withdrawn_history(workspace: Workspace, first: datetime, second: datetime) -> QuerySet[HistoryEntry]:
    """Return the history entries recorded by ``first`` and withdrawn after it, up to ``second``."""
    return HistoryEntry.objects.filter(
        workspace=workspace, recorded_at__lte=first, withdrawn_at__gt=first, withdrawn_at__lte=second
    )


def session_changes(
    workspace: Workspace, sessions: Iterable[Session], first: datetime, second: datetime
) -> list[SessionChange]:
    """Return the changes to sessions between two moments, without unchanged ones."""
    rows = list(sessions)
    pks = [row.pk for row in rows]
    known = set(known_sessions(workspace, first).filter(pk__in=pks).values_list("pk", flat=True))
    old = {session.pk: session for session in sessions_at([row for row in rows if row.pk in known], first)}
    changes = [_session_change(old.get(after.pk), after) for after in sessions_at(rows, second)]
    return [change for change in changes if not change.is_nothing]


def _session_change(before: SessionAt | None, after: SessionAt) -> SessionChange:
    earlier = before.summaries if before else ()
    had, has = {_name(one) for one in earlier}, {_name(one) for one in after.summaries}
    return SessionChange(
        pk=after.pk,
        key=after.key,
        before=before,
        after=after,
        new_entries=after.entry_count - (before.entry_count if before else 0),
        new_summaries=tuple(one for one in after.summaries if _name(one) not in had),
        gone_summaries=tuple(one for one in earlier if _name(one) not in has),
    )


def _name(summary: SummaryAt) -> tuple[str, int]:
    """Return what identifies a summary in both snapshots: its run (its row is gone once undone) or its key."""
    return ("run", summary.run) if summary.run else ("row", summary.pk or 0)
