"""What a run changed in a memory document."""

from __future__ import annotations

from dataclasses import dataclass

from knowledge_app.models import HeldChange, MemoryRevision
from memoryhub.lib.document_size import shown_part
from memoryhub.lib.masked_text import masked
from memoryhub.lib.text.change_guard import compare_facts
from memoryhub.lib.text.diff import DiffLine, diff_lines
from sessions_app.models import Run

MAX_LINES = 200


@dataclass(frozen=True)
class DocumentChange:
    """The facts that a run added, removed and reworded, and the first lines of the diff.

    ``is_held``: the change waits for review, or was rejected.
    """

    document_pk: int
    name: str
    added: int
    removed: int
    reworded: int
    lines: list[DiffLine]
    has_more: bool
    is_held: bool
    revisions: list[int]


def document_changes(run: Run) -> list[DocumentChange]:
    """Return a run's changes to documents: each revision that it made, and each change of it that was held."""
    revisions = MemoryRevision.objects.filter(run=run).select_related("document", "base").order_by("id")
    held = HeldChange.objects.filter(run=run).exclude(status=HeldChange.Status.APPROVED)
    changes = [
        _change(one.document_id, one.document.name, one.base, one.content, revision=one.number) for one in revisions
    ]
    held = held.select_related("document", "ours").order_by("id")
    return changes + [_change(one.document_id, one.document.name, one.ours, one.proposed) for one in held]


def _change(pk: int, name: str, base: MemoryRevision | None, text: str, *, revision: int = 0) -> DocumentChange:
    before, after = shown_part(base.content) if base else "", shown_part(text)
    facts = compare_facts(before, after)
    lines = [line for line in diff_lines(masked(before), masked(after), around=0) if line.mark != "same"]
    seen = [number for number in (base.number if base else 0, revision) if number]
    return DocumentChange(
        document_pk=pk,
        name=name,
        added=len(facts.added),
        removed=len(facts.removed),
        reworded=len(facts.rewritten),
        lines=lines[:MAX_LINES],
        has_more=len(lines) > MAX_LINES,
        is_held=not revision,
        revisions=seen,
    )
