"""The history log, which is append-only."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from datetime import datetime

from django.db import transaction
from django.db.models import Max

from knowledge_app.models import HistoryEntry
from memoryhub.lib import db_retry
from memoryhub.lib.import_counts import ImportCounts
from memoryhub.lib.layouts.records import HistoryLog, HistoryRecord, Problem
from memoryhub.lib.text.list_alignment import align
from memoryhub.lib.validation import clean_text
from sessions_app.models import Run, Session, Workspace
from sessions_app.services.audit import By, record


def import_history(*, workspace: Workspace, log: HistoryLog, path: str, now: datetime, dry_run: bool) -> ImportCounts:
    """Append the entries of a log that aren't stored yet. Importing a log twice adds nothing.

    The log is aligned with the stored entries by position and text, so that a rotation, a trimmed journal or the
    upgrade from HISTORY.md to a journal neither loses nor duplicates entries.
    """
    kept = _kept(workspace)
    hashes = [text_hash(entry.content) for entry in log.entries]
    alignment = align([source_hash for _, source_hash, _ in kept], hashes, unique_hashes=False)
    new = log.entries[alignment.append_from :]
    tally = ImportCounts()
    tally.added["history"] += len(new)
    tally.unchanged["history"] += len(log.entries) - len(new)
    if alignment.verdict in ("restarted", "rewritten", "shorter"):
        what = {
            "restarted": f"none of its {len(log.entries)} entries continue the {len(kept)} kept before",
            "rewritten": f"differs from what was kept after entry {alignment.append_from}",
            "shorter": f"holds {len(log.entries)} of the {len(kept)} entries that the hub keeps",
        }[alignment.verdict]
        action = f"{len(new)} entries appended; nothing is removed from the hub"
        tally.problems.append(Problem(path, None, what, action, "held" if not new else "noted"))
    if not dry_run:
        with transaction.atomic():
            _mark_archived(kept, log.entries, alignment.offset)
            append_history(workspace, new, now=now)
    return tally


def append_history(
    workspace: Workspace, records: Sequence[HistoryRecord], *, now: datetime, run: Run | None = None
) -> None:
    """Append records to the log. Raises IntegrityError if another writer appended first."""
    if not records:
        return
    last = HistoryEntry.objects.filter(workspace=workspace).aggregate(last=Max("position"))["last"]
    first = 0 if last is None else last + 1
    keys = {entry.session_key for entry in records if entry.session_key}
    sessions = dict(Session.objects.filter(workspace=workspace, key__in=keys).values_list("key", "pk"))
    HistoryEntry.objects.bulk_create(
        (
            HistoryEntry(
                workspace=workspace,
                session_id=sessions.get(entry.session_key),
                run=run,
                position=position,
                content=entry.content,
                occurred_at=entry.occurred_at,
                occurred_at_text=entry.occurred_at_text,
                source=entry.file,
                source_hash=text_hash(entry.content),
                is_archived=entry.is_archived,
                extra=entry.extra,
                recorded_at=now,
            )
            for position, entry in enumerate(records, first)
        ),
        batch_size=500,
    )


@db_retry.retried
@transaction.atomic
def add_note(workspace: Workspace, text: str, *, by: By, session_key: str = "") -> HistoryEntry:
    """Append a note of a person or an agent and return its entry."""
    Workspace.objects.select_for_update().get(pk=workspace.pk)  # serialize concurrent notes
    noted = HistoryRecord(content=clean_text(text), source_hash="", occurred_at=by.at, session_key=session_key)
    append_history(workspace, [noted], now=by.at)
    words = "A note was added to the history"
    record(by, "history.noted", "workspace", workspace.pk, words, workspace=workspace)
    return HistoryEntry.objects.select_related("session").filter(workspace=workspace).latest("position")


def _kept(workspace: Workspace) -> list[tuple[int, str, bool]]:
    if workspace.pk is None:
        return []
    rows = HistoryEntry.objects.filter(workspace=workspace).exclude(source="").order_by("position")
    return list(rows.values_list("pk", "source_hash", "is_archived"))


def _mark_archived(kept: list[tuple[int, str, bool]], entries: Sequence[HistoryRecord], offset: int) -> None:
    """Mark entries that a rotation moved into an archive file."""
    moved = [
        pk
        for (pk, _, was_archived), entry in zip(kept[offset:], entries, strict=False)
        if entry.is_archived and not was_archived
    ]
    for start in range(0, len(moved), 500):
        HistoryEntry.objects.filter(pk__in=moved[start : start + 500]).update(is_archived=True)


def text_hash(content: str) -> str:
    """Return the hash that identifies a log entry's text."""
    return hashlib.sha256(content.strip().encode()).hexdigest()
