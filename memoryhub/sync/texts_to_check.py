"""Find the texts of a file that need the content check, so that they are checked before the transaction."""

from __future__ import annotations

from collections.abc import Iterator

from knowledge_app.models import HistoryEntry, KeyValue, KnowledgeEntry, Observation
from memoryhub.lib.layouts.records import (
    FileRead,
    HistoryLog,
    KeyValueRecord,
    KnowledgeRecord,
    ObservationRecord,
    text_hash,
)
from sessions_app.models import Workspace


def new_texts(workspace: Workspace, read: FileRead) -> Iterator[str]:
    """Yield the texts of a file's rows that the workspace doesn't have yet."""
    known: set[str] = set()
    kinds = {type(item) for item in read.items}
    if workspace.pk is not None:
        for kind, model, names in (
            (KnowledgeRecord, KnowledgeEntry, ("content", "source")),
            (ObservationRecord, Observation, ("content", "source")),
            (KeyValueRecord, KeyValue, ("key", "value")),
        ):
            if kind in kinds:
                rows = model._default_manager.filter(workspace=workspace)
                known.update(text for row in rows.values_list(*names).iterator() for text in row)
    for item in read.items:
        if isinstance(item, HistoryLog):
            hashes = _history_hashes(workspace)
            yield from (entry.content for entry in item.entries if text_hash(entry.content) not in hashes)
        else:
            yield from (text for text in _texts(item) if text not in known)


def _texts(item: object) -> list[str]:
    if isinstance(item, KnowledgeRecord):
        return [item.content, item.source, *(tag for tag in item.tags if isinstance(tag, str))]
    if isinstance(item, ObservationRecord):
        return [item.content, item.source]
    if isinstance(item, KeyValueRecord):
        return [item.key, item.value]
    return []


def _history_hashes(workspace: Workspace) -> set[str]:
    if workspace.pk is None:
        return set()
    return set(HistoryEntry.objects.filter(workspace=workspace).values_list("source_hash", flat=True))
