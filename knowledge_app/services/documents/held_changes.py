"""Decide on held changes: as a whole, by hunk, or with an edited text. All versions are kept."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.contrib.auth.models import User
from django.db import transaction
from django.utils.translation import gettext

from knowledge_app.models import HeldChange, MemoryDocument
from knowledge_app.models.documents import DECIDED_FILE, REQUESTED, RULES
from knowledge_app.services.documents.change_review import judge, store_held
from knowledge_app.services.documents.outside_edits import SYNC
from knowledge_app.services.documents.revisions import content_hash, lock_document, revise_document
from memoryhub.lib.errors import Conflict
from memoryhub.lib.text.change_guard import check_change
from memoryhub.lib.text.diff import line_changes
from memoryhub.lib.text.merge import merge_texts, overlapping, overlay_texts
from sessions_app.services.audit import Actor, By, record


@dataclass(frozen=True)
class Hunk:
    """A difference of a held text: lines [start, end) of ours, counted from 0, become ``new``."""

    number: int
    start: int
    end: int
    old: list[str]
    new: list[str]


def hunks_of(change: HeldChange) -> list[Hunk]:
    """Return the hunks by which a held text differs from the hub's text at that time, in order."""
    ours = _ours(change).split("\n")
    proposed = change.proposed.split("\n")
    places = [row for row in line_changes(ours, proposed) if row[0] != "equal"]
    return [
        Hunk(number, start, end, ours[start:end], proposed[j:j_end])
        for number, (_, start, end, j, j_end) in enumerate(places)
    ]


def text_with(change: HeldChange, chosen: Collection[int]) -> str:
    """Return the hub's text of that time with some of the hunks applied. Raises Conflict for an unknown number."""
    hunks = hunks_of(change)
    unknown = set(chosen) - {hunk.number for hunk in hunks}
    if unknown:
        words = gettext("There is no hunk %(number)s: this change has hunks 0 to %(last)s.")
        raise Conflict(words % {"number": min(unknown), "last": len(hunks) - 1}, code="cannot_decide")
    lines = _ours(change).split("\n")
    for hunk in reversed(hunks):
        if hunk.number in chosen:
            lines[hunk.start : hunk.end] = hunk.new
    return "\n".join(lines)


def refused_lines(change: HeldChange, kept: str) -> list[int]:
    """Return the numbers of the lines that a change would add and that a person didn't keep in the decided text."""
    known = {*_ours(change).split("\n"), *kept.split("\n")}
    return [
        number for number, line in enumerate(change.proposed.split("\n"), 1) if line.strip() and line not in known
    ]


def _ours(change: HeldChange) -> str:
    return change.ours.content if change.ours else ""


def stale_hunks(change: HeldChange) -> set[int]:
    """Return the numbers of the hunks whose lines the document has changed since, so that they can't be applied."""
    head = MemoryDocument.objects.select_related("head").get(pk=change.document_id).head
    current, hunks = head.content if head else "", hunks_of(change)
    stale = overlapping(_ours(change), current, [(hunk.start, hunk.end, hunk.new) for hunk in hunks])
    return {hunk.number for hunk, is_stale in zip(hunks, stale, strict=True) if is_stale}


def close_change(
    change: HeldChange,
    *,
    approve: bool,
    by: By,
    user: User | None,
    reason: str,
    parts: Mapping[str, Any] | None = None,
) -> None:
    """Mark a pending change as decided, with its record. Call inside a transaction. Raises Conflict.

    ``parts``: the ``decided_parts`` if it is decided in parts or with an edited text.
    """
    status = HeldChange.Status.APPROVED if approve else HeldChange.Status.REJECTED
    pending = HeldChange.objects.filter(pk=change.pk, status=HeldChange.Status.PENDING)
    if not pending.update(
        status=status, decided_by=user, decided_at=by.at, decision_reason=reason, decided_parts=dict(parts or {})
    ):
        raise Conflict(gettext("This change has been decided already."), code="cannot_decide")
    verb = "approved" if approve else "rejected"
    record(
        by,
        f"change.{verb}",
        "held_change",
        change.pk,
        f"held change of {change.document.name} {verb}",
        workspace=change.workspace,
        after_hash=change.proposed_hash,
    )


@transaction.atomic
def accept_text(change: HeldChange, text: str, *, by: By) -> None:
    """Make an approved text the document's head, merged with what changed since. Raises Conflict."""
    document = lock_document(change.document_id)
    head = document.head.content if document.head else ""
    merged = merge_texts(_ours(change), head, text)
    if merged.text is None:
        words = gettext(
            "The same lines of %(document)s have changed since. Edit the document by hand, then reject this change."
        )
        raise Conflict(words % {"document": document.name}, code="cannot_decide")
    is_file = _is_text_of_file(change, document)
    if is_file and merged.text != change.proposed:
        _keep_text_of_file(change, document, by.at)
    if document.head is None or merged.text != document.head.content:
        raw = change.raw if is_file and merged.text == change.proposed else None
        revise_document(
            document,
            merged.text,
            base=document.head,
            by=by,
            reason="approved a held change",
            proposal=change,
            raw=bytes(raw) if raw is not None else None,
        )
    if is_file and merged.text == change.proposed:
        document.synced_revision = document.head
        document.save(update_fields=["synced_revision"])


def hold_rest(change: HeldChange, accepted: str, wanted: str, *, flags: Sequence[str], by: By) -> HeldChange | None:
    """Hold what ``wanted`` has beyond the accepted text of a partly decided change; None if the document has it.

    Call inside a transaction.
    """
    document = MemoryDocument.objects.select_related("head").get(pk=change.document_id)
    head = document.head.content if document.head else ""
    proposed = overlay_texts(accepted, head, wanted)
    if proposed == head:
        return None
    pending = HeldChange.objects.filter(document=document, status=HeldChange.Status.PENDING)
    same = pending.filter(proposed_hash=content_hash(proposed)).first()
    if same:
        return same
    rest = HeldChange(
        document=document,
        run=change.run,
        base=document.head,
        ours=document.head,
        proposed=proposed,
        flags=list(flags),
        reason=change.reason if change.has_own_reason else "; ".join(flags) or change.reason,
        author_kind=change.author_kind,
        author_name=change.author_name,
        file_restored_at=change.file_restored_at,
    )
    words = f"undecided parts of change {change.pk} are held"
    return store_held(rest, words, by=by, at=change.created_at)


def rest_flags(change: HeldChange, accepted: str, wanted: str) -> list[str]:
    """Return why a person must review what still waits of a change, without what was found in its decided parts."""
    if not change.findings:
        return list(change.flags)
    rules = [flag for flag in change.flags if flag in RULES]
    return [*rules, *judge(change.document, check_change(accepted, wanted))] or [REQUESTED]


@transaction.atomic
def keep_ours(change: HeldChange, *, by: By) -> None:
    """After rejecting a file's text: keep it as a revision, and restore the hub's text as the head to be written.

    An empty file has no text to keep.
    """
    document = lock_document(change.document_id)
    head = document.head
    if head is None or not _is_text_of_file(change, document):
        return
    if change.proposed:
        _keep_text_of_file(change, document, by.at)
    raw = bytes(head.raw) if head.raw is not None else None
    revise_document(document, head.content, base=document.head, by=by, reason="kept the hub's text", raw=raw)


def _is_text_of_file(change: HeldChange, document: MemoryDocument) -> bool:
    """Tell whether a change has the text that was last seen in the agent's file."""
    is_found = (change.author_kind, change.author_name) == (SYNC.kind, SYNC.name)
    return is_found and change.file_restored_at is None and change.base_id == document.synced_revision_id


def _keep_text_of_file(change: HeldChange, document: MemoryDocument, now: datetime) -> None:
    raw = bytes(change.raw) if change.raw is not None else None
    document.synced_revision = revise_document(
        document,
        change.proposed,
        base=document.head,
        by=By(Actor(change.author_kind, change.author_name), now),
        reason=DECIDED_FILE,
        raw=raw,
        is_intermediate=True,
    )
    document.save(update_fields=["synced_revision"])
