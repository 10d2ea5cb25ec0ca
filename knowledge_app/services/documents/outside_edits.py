"""Changes made to memory documents outside the hub: imported, merged, or held for review."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal

from django.db import transaction
from django.db.models import Q, QuerySet

from knowledge_app.models import HeldChange, MemoryDocument, MemoryRevision
from knowledge_app.services.documents.revisions import content_hash, open_document, revise_document
from memoryhub.lib.import_counts import ImportCounts
from memoryhub.lib.layouts.records import DocumentRecord, Problem
from memoryhub.lib.text.change_guard import LOSS_LIMIT, compare_facts
from memoryhub.lib.text.merge import merge_texts
from sessions_app.models import Workspace
from sessions_app.services.audit import Actor, By, record

SYNC = Actor("sync", "the agent's file")
LATE = Actor("sync", "the agent's file, while it was replaced")
LATE_AFTER_WRITE = timedelta(
    minutes=10
)  # for which an agent may still write a text based on the one the hub replaced


@dataclass(frozen=True)
class OutsideEdit:
    """What to do about a file's text. ``text``: the new head for take and merge. ``flags``: why it is held.

    ``note``: a clause to add to the message. ``revision``: the earlier revision that the file contains.
    """

    verdict: Literal["unchanged", "agreed", "behind", "take", "merge", "hold", "empty"]
    text: str = ""
    flags: tuple[str, ...] = ()
    note: str = ""
    revision: MemoryRevision | None = None


def plan_outside_edit(base: str | None, head: str | None, disk: str, *, before: str | None = None) -> OutsideEdit:
    """Compare three texts: ``base`` was last seen in the file, ``head`` is the hub's, ``disk`` is now in the file.

    If one side changed, take it; if both, merge by line, or hold on a conflict. A text that drops more than a tenth
    of the fact lines is held, an empty one ignored (reliability 5.2, 5.3). ``before``: the file's text until the hub
    wrote ``base`` a short while ago. An agent may have based its text on that, so the hub's changes are merged in
    again unless they conflict.
    """
    if head is None:
        return OutsideEdit("take", disk)
    if disk == base:
        return OutsideEdit("unchanged")
    if disk == head:
        return OutsideEdit("agreed")
    if not disk.strip():
        return OutsideEdit("empty")
    theirs = disk
    if before is not None and base is not None:
        theirs = merge_texts(before, base, disk).text or disk
    note = "was made of the text from before the hub's last change" if theirs != disk else ""
    return (
        _plan_change(head, disk, theirs, note) if head == base else _plan_both(base or "", head, disk, theirs, note)
    )


def _plan_change(head: str, disk: str, theirs: str, note: str) -> OutsideEdit:
    """Plan for a change of the file alone."""
    flags = removal_flags(head, theirs)
    if flags:
        return OutsideEdit("hold", disk, flags)
    return OutsideEdit("merge", theirs, note=note) if note else OutsideEdit("take", disk)


def _plan_both(base: str, head: str, disk: str, theirs: str, note: str) -> OutsideEdit:
    """Plan for changes on both sides."""
    merged = merge_texts(base, head, theirs)
    if merged.text is None:
        return OutsideEdit("hold", disk, (f"both sides changed the same lines in {_places(merged.conflict_count)}",))
    flags = removal_flags(head, merged.text)
    if flags:
        return OutsideEdit("hold", disk, flags)
    return OutsideEdit("merge", merged.text, note=note or "changed in the hub and in the file, in different lines")


def removal_flags(before: str, after: str) -> tuple[str, ...]:
    """Return a message if a change removes more fact lines than the limit. Reworded lines don't count."""
    change = compare_facts(before, after)
    removed = len(change.removed)
    is_too_much = removed and removed / change.old_count > LOSS_LIMIT
    return (f"removes {removed} of {change.old_count} facts",) if is_too_much else ()


def import_document(
    *, workspace: Workspace, record: DocumentRecord, path: str, now: datetime, dry_run: bool
) -> ImportCounts:
    """Update a document from its file as ``plan_outside_edit`` decides. Idempotent."""
    tally = ImportCounts()
    document = None
    if workspace.pk:
        document = _documents().filter(workspace=workspace, name=record.name).first()
    edit = _plan(document, record, now)
    _count(tally, edit, path, is_new=document is None or document.head is None)
    if dry_run or edit.verdict == "unchanged":
        return tally
    with transaction.atomic():
        document = document or open_document(workspace, record.name, path)
        if document.path != path and edit.verdict != "empty":
            MemoryDocument.objects.filter(pk=document.pk).update(path=path)
        _apply(document, edit, record, now)
    return tally


@transaction.atomic
def import_late_text(document: MemoryDocument, item: DocumentRecord, now: datetime) -> OutsideEdit:
    """Import a text written to a file while the hub was replacing it: merge it with the hub's text, or hold it.

    By now the file has the hub's text. A text that is stored as a revision changes nothing.
    """
    locked = _documents().select_for_update(of=("self",)).get(pk=document.pk)
    base, head = locked.written_over or locked.synced_revision, locked.head
    if head is None or _revision_of(locked, item.content, after=0) is not None:
        return OutsideEdit("unchanged")
    edit = plan_outside_edit(base.content if base else None, head.content, item.content)
    if edit.verdict in ("take", "merge"):
        _store_intermediate(locked, item, "written while the hub replaced the file", now)
        text = edit.text if edit.verdict == "merge" else item.content
        _revise(locked, text, None, "merged with what was written meanwhile", now)
    elif edit.verdict == "hold":
        _hold(locked, edit, item, now, base=base, author=LATE)
    return edit


@transaction.atomic
def hold_emptied(document: MemoryDocument, now: datetime) -> None:
    """Hold the emptying of a file for review; until then the hub keeps its text."""
    locked = _documents().select_for_update(of=("self",)).get(pk=document.pk)
    edit = OutsideEdit("hold", "", ("the file was emptied",))
    asked = HeldChange.objects.filter(
        document=locked, base=locked.synced_revision, proposed_hash=content_hash("")
    ).exclude(status=HeldChange.Status.SUPERSEDED)
    if locked.head is not None and locked.head.content.strip() and not asked.exists():
        _hold(locked, edit, DocumentRecord(locked.name, ""), now, base=locked.synced_revision)


@transaction.atomic
def keep_bytes(document: MemoryDocument, item: DocumentRecord, now: datetime) -> None:
    """Store the bytes of a file whose text is known, before it is overwritten."""
    locked = _documents().select_for_update(of=("self",)).get(pk=document.pk)
    head = locked.head
    if head is None or locked.synced_revision is None or locked.synced_revision.content != item.content:
        return
    locked.synced_revision = _store_intermediate(locked, item, "the bytes of the agent's file", now)
    raw = bytes(head.raw) if head.raw is not None else None
    _revise(locked, head.content, raw, "the hub's text, which the file is to get", now)
    locked.save(update_fields=["synced_revision"])


def _documents() -> QuerySet[MemoryDocument]:
    return MemoryDocument.objects.select_related("head", "synced_revision", "written_over")


def _plan(document: MemoryDocument | None, item: DocumentRecord, now: datetime) -> OutsideEdit:
    if document is None or document.head is None:
        return plan_outside_edit(None, None, item.content)
    base = document.synced_revision
    written = document.written_at is not None and now - document.written_at <= LATE_AFTER_WRITE
    before = document.written_over.content if written and document.written_over else None
    edit = plan_outside_edit(base.content if base else None, document.head.content, item.content, before=before)
    if edit.verdict in ("take", "merge", "hold") and document.head != base:
        earlier = _revision_of(document, item.content, after=base.number if base else 0)
        if earlier is not None:  # the hub wrote it, but stopped before it recorded that
            return OutsideEdit("behind", revision=earlier)
    return edit


def _revision_of(document: MemoryDocument, content: str, *, after: int) -> MemoryRevision | None:
    same = MemoryRevision.objects.filter(document=document, content_hash=content_hash(content), number__gt=after)
    return same.order_by("-number").first()


def _count(tally: ImportCounts, edit: OutsideEdit, path: str, *, is_new: bool) -> None:
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
        tally.problems.append(Problem(path, None, edit.note, "merged", "noted"))


def _apply(document: MemoryDocument, edit: OutsideEdit, item: DocumentRecord, now: datetime) -> None:
    head = document.head
    if edit.verdict in ("agreed", "behind"):
        document.synced_revision = edit.revision or head
        document.save(update_fields=["synced_revision"])
        return
    if edit.verdict == "take":
        reason = "changed in the agent's file" if head else "first seen in the agent's file"
        document.synced_revision = _revise(document, item.content, item.raw, reason, now)
    elif edit.verdict == "merge":
        document.synced_revision = _store_intermediate(document, item, "changed in the agent's file", now)
        _revise(document, edit.text, None, "merged with the hub's own changes", now)
    elif edit.verdict == "hold":
        _hold(document, edit, item, now, base=document.synced_revision)
        return
    else:
        return
    document.written_over = None  # from now on the agent knows the text that the hub wrote
    document.save(update_fields=["synced_revision", "written_over"])


def _revise(document: MemoryDocument, text: str, raw: bytes | None, reason: str, now: datetime) -> MemoryRevision:
    return revise_document(document, text, base=document.head, by=By(SYNC, now), reason=reason, raw=raw)


def _store_intermediate(document: MemoryDocument, item: DocumentRecord, reason: str, now: datetime) -> MemoryRevision:
    """Store a file's text as an intermediate revision, so that facts keep their pins and dates."""
    return revise_document(
        document,
        item.content,
        base=document.head,
        by=By(SYNC, now),
        reason=reason,
        raw=item.raw,
        is_intermediate=True,
    )


def _hold(
    document: MemoryDocument,
    edit: OutsideEdit,
    item: DocumentRecord,
    now: datetime,
    *,
    base: MemoryRevision | None,
    author: Actor = SYNC,
) -> None:
    """Hold the file's text for review, once; it supersedes an older text of the file."""
    proposed_hash = content_hash(item.content)
    held = HeldChange.objects.filter(document=document, base=base, ours=document.head)
    if held.filter(proposed_hash=proposed_hash).exclude(status=HeldChange.Status.SUPERSEDED).exists():
        return
    earlier = HeldChange.objects.filter(document=document, status=HeldChange.Status.PENDING, author_kind=author.kind)
    earlier.filter(Q(author_name=author.name) | Q(proposed_hash=proposed_hash)).update(
        status=HeldChange.Status.SUPERSEDED, decided_at=now
    )
    change = HeldChange.objects.create(
        workspace_id=document.workspace_id,
        document=document,
        base=base,
        ours=document.head,
        proposed=item.content,
        proposed_hash=proposed_hash,
        raw=item.raw,
        flags=list(edit.flags),
        reason="; ".join(edit.flags),
        author_kind=author.kind,
        author_name=author.name,
        created_at=now,
    )
    record(
        By(author, now),
        "change.held",
        "held_change",
        change.pk,
        f"{document.name}: a change of the file is held ({change.reason})",
        workspace=document.workspace,
        after_hash=proposed_hash,
    )


def _places(count: int) -> str:
    return "1 place" if count == 1 else f"{count:,} places"
