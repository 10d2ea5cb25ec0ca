"""Outside edits of memory documents: taken, merged, or held for a person; never a silent loss."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from django.db import transaction

from knowledge_app.models import HeldChange, MemoryDocument, MemoryRevision
from knowledge_app.services.memory import content_hash, open_document, revise_document
from memoryhub.lib.guard import LOSS_LIMIT, compare_facts
from memoryhub.lib.layouts.records import DocumentRecord, Problem
from memoryhub.lib.merge import merge_texts
from memoryhub.lib.tally import Tally
from sessions_app.models import Workspace
from sessions_app.services.audit import Actor, record

SYNC = Actor("sync", "the agent's file")


@dataclass(frozen=True)
class OutsideEdit:
    """What to do about a file's text: ``text`` is the new head for take and merge; ``flags`` say why it is held."""

    verdict: Literal["unchanged", "agreed", "take", "merge", "hold", "empty"]
    text: str = ""
    flags: tuple[str, ...] = ()


def plan_outside_edit(base: str | None, head: str | None, disk: str) -> OutsideEdit:
    """Compare three texts: ``base`` was last seen in the file, ``head`` is the hub's, ``disk`` the file's now.

    One side changed: take it. Both: merge by line, or hold on a conflict. A text that drops more than a tenth of
    the fact lines is held, an empty one is kept out (reliability 5.2, 5.3).
    """
    if head is None:
        return OutsideEdit("take", disk)
    if disk == base:
        return OutsideEdit("unchanged")
    if disk == head:
        return OutsideEdit("agreed")
    if not disk.strip():
        return OutsideEdit("empty")
    if head == base:
        flags = removal_flags(head, disk)
        return OutsideEdit("hold" if flags else "take", disk, flags)
    merged = merge_texts(base or "", head, disk)
    if merged.text is None:
        return OutsideEdit("hold", disk, (f"both sides changed the same lines in {merged.conflict_count} places",))
    flags = removal_flags(head, merged.text)
    return OutsideEdit("hold", disk, flags) if flags else OutsideEdit("merge", merged.text)


def removal_flags(before: str, after: str) -> tuple[str, ...]:
    """Say in words when a change removes more fact lines than the limit; reworded lines are not removed."""
    change = compare_facts(before, after)
    removed = len(change.removed)
    is_too_much = removed and removed / change.old_count > LOSS_LIMIT
    return (f"removes {removed} of {change.old_count} facts",) if is_too_much else ()


def take_document(*, workspace: Workspace, record: DocumentRecord, path: str, now: datetime, dry_run: bool) -> Tally:
    """Bring a document in line with its file as ``plan_outside_edit`` says; a second time changes nothing."""
    tally = Tally()
    document = None
    if workspace.pk:
        documents = MemoryDocument.objects.select_related("head", "synced_revision")
        document = documents.filter(workspace=workspace, name=record.name).first()
    head = document.head if document else None
    base = document.synced_revision if document else None
    edit = plan_outside_edit(base.content if base else None, head.content if head else None, record.content)
    _count(tally, edit, path, is_new=head is None)
    if dry_run or edit.verdict == "unchanged":
        return tally
    with transaction.atomic():
        document = document or open_document(workspace, record.name, path)
        _apply(document, edit, record, now)
    return tally


def _count(tally: Tally, edit: OutsideEdit, path: str, *, is_new: bool) -> None:
    kind = tally.unchanged
    if edit.verdict in ("take", "merge"):
        kind = tally.added if is_new else tally.updated
    kind["documents"] += 1
    if edit.verdict == "empty":
        what = "is empty, and the hub keeps a text"
        tally.problems.append(Problem(path, None, what, "the text is kept", "held"))
    elif edit.verdict == "hold":
        what = f"changed outside the hub: {'; '.join(edit.flags)}"
        tally.problems.append(Problem(path, None, what, "held for review; both texts are kept", "held"))
    elif edit.verdict == "merge":
        what = "changed in the hub and in the file, in different lines"
        tally.problems.append(Problem(path, None, what, "merged", "noted"))


def _apply(document: MemoryDocument, edit: OutsideEdit, item: DocumentRecord, now: datetime) -> None:
    head = document.head
    if edit.verdict == "agreed":
        document.synced_revision = head
    elif edit.verdict == "take":
        reason = "changed in the agent's file" if head else "first seen in the agent's file"
        document.synced_revision = _revise(document, item.content, item.raw, reason, now)
    elif edit.verdict == "merge":
        document.synced_revision = _revise(document, item.content, item.raw, "changed in the agent's file", now)
        _revise(document, edit.text, None, "merged with the hub's own changes", now)
    elif edit.verdict == "hold":
        _hold(document, edit, item, now)
        return
    else:
        return
    document.save(update_fields=["synced_revision"])


def _revise(document: MemoryDocument, text: str, raw: bytes | None, reason: str, now: datetime) -> MemoryRevision:
    return revise_document(document, text, base=document.head, actor=SYNC, reason=reason, now=now, raw=raw)


def _hold(document: MemoryDocument, edit: OutsideEdit, item: DocumentRecord, now: datetime) -> None:
    """Put the file's text into the review inbox once; a newer text of the file takes the place of an older one."""
    proposed_hash = content_hash(item.content)
    held = HeldChange.objects.filter(document=document, base=document.synced_revision, ours=document.head)
    if held.filter(proposed_hash=proposed_hash).exclude(status=HeldChange.Status.SUPERSEDED).exists():
        return
    earlier = HeldChange.objects.filter(document=document, status=HeldChange.Status.PENDING, author_kind=SYNC.kind)
    earlier.update(status=HeldChange.Status.SUPERSEDED, decided_at=now)
    change = HeldChange.objects.create(
        workspace_id=document.workspace_id,
        document=document,
        base=document.synced_revision,
        ours=document.head,
        proposed=item.content,
        proposed_hash=proposed_hash,
        raw=item.raw,
        flags=list(edit.flags),
        reason="; ".join(edit.flags),
        author_kind=SYNC.kind,
        author_name=SYNC.name,
        created_at=now,
    )
    record(
        SYNC,
        "change.held",
        "held_change",
        change.pk,
        f"{document.name}: a change of the file is held ({change.reason})",
        at=now,
        workspace=document.workspace,
        after_hash=proposed_hash,
    )
