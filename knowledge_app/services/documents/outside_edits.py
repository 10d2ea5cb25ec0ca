"""Changes made to memory documents outside the hub: imported, merged, or held for review."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import Q, QuerySet

from knowledge_app.models import HeldChange, MemoryDocument, MemoryRevision
from knowledge_app.models.documents import BEFORE_MERGING, BYTES_OF_FILE, HELD_FILE, WHILE_REPLACED
from knowledge_app.services.decisions import PEOPLE
from knowledge_app.services.documents.change_review import pinned_lines, returned_reason, store_held, supersede
from knowledge_app.services.documents.limits import limit_fields
from knowledge_app.services.documents.outside_edit_plan import (
    LineEdits,
    OutsideEdit,
    hub_edits,
    line_edits,
    plan_outside_edit,
    set_back_flags,
)
from knowledge_app.services.documents.revisions import content_hash, lock_document, open_document, revise_document
from knowledge_app.services.removed_texts import MAX_REVISIONS, RemovedTexts
from memoryhub.lib.document_size import MAX_DOCUMENT_CHARS, is_oversize
from memoryhub.lib.import_counts import ImportCounts
from memoryhub.lib.layouts.records import DocumentRecord, Problem
from memoryhub.lib.text.change_guard import CheckedChange, check_change, pin_reasons, safe_part, safety_reasons
from sessions_app.models import SourceFolder, Workspace
from sessions_app.services.audit import Actor, By

SYNC = Actor("sync", "the agent's file")
LATE = Actor("sync", "the agent's file, while it was replaced")
CHANGED, MERGED = "changed in the agent's file", "merged with the hub's own changes"
SAFE_LINES = "the safe lines of the agent's file"
ACCEPTED_REASONS = (CHANGED, MERGED, SAFE_LINES)  # of the revisions that accept an agent's change
# How long after a write an agent may still write a text based on the one that the hub replaced.
LATE_AFTER_WRITE = timedelta(minutes=10)


def import_document(
    *,
    workspace: Workspace,
    record: DocumentRecord,
    path: str,
    now: datetime,
    dry_run: bool,
    modified_at: datetime | None = None,
    folder: SourceFolder | None = None,
) -> ImportCounts:
    """Update a document from its file as ``plan_outside_edit`` decides. Idempotent.

    ``modified_at``: when the file was last modified, if known. ``folder``: which it is in; None for the workspace's
    own. A document of another folder with the same name isn't changed.
    """
    found = _documents().filter(workspace=workspace.pk or 0, name=record.name).first()
    if found and found.folder_id != (folder.pk if folder else None):
        what = f"another folder of the workspace already has a document named {record.name}"
        return ImportCounts(problems=[Problem(path, None, what, "not imported", "rejected")])
    if dry_run:
        edit = _planned(workspace, found, record, modified_at, now, folder=folder)
        return _counted(edit, path, found)
    with transaction.atomic():
        document = lock_document(found.pk) if found else open_document(workspace, record.name, path, folder=folder)
        _set_limits(document, record)
        edit = _planned(workspace, document, record, modified_at, now, folder=folder)
        tally = _counted(edit, path, document)
        if edit.verdict != "unchanged":
            if document.path != path and edit.verdict != "empty":
                MemoryDocument.objects.filter(pk=document.pk).update(path=path)
            _apply(document, edit, record, now)
    return tally


def _planned(
    workspace: Workspace,
    document: MemoryDocument | None,
    record: DocumentRecord,
    modified_at: datetime | None,
    now: datetime,
    *,
    folder: SourceFolder | None,
) -> OutsideEdit:
    if document is None or document.head is None:
        plan = plan_outside_edit(None, None, record.content, policy=_policy_for_new(workspace, folder, now))
    else:
        plan = _plan(document, document.head, record, _written_at(document, modified_at, now))
    return _checked(workspace, document, plan, record)


def _policy_for_new(workspace: Workspace, folder: SourceFolder | None, now: datetime) -> str:
    """Return the policy for new documents. A person who imports a folder for the first time sees what they import."""
    is_first_import = folder.succeeded_at is None if folder else workspace.created_at == now
    if is_first_import or workspace.pk is None:
        return Workspace.AgentChanges.HOLD_RISKY
    return Workspace.objects.values_list("agent_changes", flat=True).get(pk=workspace.pk)


def _set_limits(document: MemoryDocument, record: DocumentRecord) -> None:
    changed = {name: value for name, value in limit_fields(record).items() if getattr(document, name) != value}
    for name, value in changed.items():
        setattr(document, name, value)
    if changed:
        document.save(update_fields=list(changed))


@transaction.atomic
def import_late_text(document: MemoryDocument, item: DocumentRecord, now: datetime) -> OutsideEdit:
    """Import a text written to a file while the hub was replacing it: merge it with the hub's text, or hold it.

    By now the file has the hub's text. A text that is stored as a revision changes nothing.
    """
    locked = lock_document(document.pk)
    base, head = locked.written_over or locked.synced_revision, locked.head
    if head is None or _revision_of(locked, item.content, after=0) is not None:
        return OutsideEdit("unchanged")
    read, unseen = _read_by_agent(locked, head, now)
    text, policy = base.content if base else None, locked.workspace.agent_changes
    plan = plan_outside_edit(text, head.content, item.content, read=read, unseen=unseen, policy=policy)
    edit = _checked(locked.workspace, locked, plan, item)
    if edit.verdict in ("take", "merge"):
        _store_intermediate(locked, item, WHILE_REPLACED, now)
        _revise(locked, edit.text, None, "merged with a change made at the same time", now)
        if edit.flags:
            _hold(locked, OutsideEdit("hold", edit.proposed, edit.flags), item, now, base=base, author=LATE)
    elif edit.verdict == "hold":
        _hold(locked, edit, item, now, base=base, author=LATE)
    return edit


@transaction.atomic
def hold_emptied(document: MemoryDocument, now: datetime) -> None:
    """Hold the emptying of a file for review; until then the hub keeps its text."""
    locked = lock_document(document.pk)
    edit = OutsideEdit("hold", "", ("the file was emptied",))
    asked = HeldChange.objects.filter(
        document=locked, base=locked.synced_revision, proposed_hash=content_hash("")
    ).exclude(status=HeldChange.Status.SUPERSEDED)
    if locked.head is not None and locked.head.content.strip() and not asked.exists():
        _hold(locked, edit, DocumentRecord(locked.name, ""), now, base=locked.synced_revision)


@transaction.atomic
def keep_bytes(document: MemoryDocument, item: DocumentRecord, now: datetime) -> None:
    """Store the bytes of a file whose text is known, before it is overwritten."""
    locked = lock_document(document.pk)
    head = locked.head
    if head is None or locked.synced_revision is None or locked.synced_revision.content != item.content:
        return
    locked.synced_revision = _store_intermediate(locked, item, BYTES_OF_FILE, now)
    raw = bytes(head.raw) if head.raw is not None else None
    _revise(locked, head.content, raw, "the hub's text, which the file is to get", now)
    locked.save(update_fields=["synced_revision"])


def _documents() -> QuerySet[MemoryDocument]:
    return MemoryDocument.objects.select_related("workspace", "head", "synced_revision", "written_over")


def _written_at(document: MemoryDocument, modified_at: datetime | None, now: datetime) -> datetime:
    """Return when the agent wrote a file: at its modification time, unless the hub wrote it later."""
    if modified_at is None or (document.written_at and modified_at < document.written_at):
        return now
    return min(modified_at, now)


def _plan(document: MemoryDocument, head: MemoryRevision, item: DocumentRecord, written_at: datetime) -> OutsideEdit:
    base = document.synced_revision
    if base is not None and base.content == item.content:
        return OutsideEdit("unchanged")
    read, unseen = _read_by_agent(document, head, written_at)
    text, policy = base.content if base else None, document.workspace.agent_changes
    edit = plan_outside_edit(text, head.content, item.content, read=read, unseen=unseen, policy=policy)
    if edit.verdict in ("take", "merge", "hold") and head != base:
        earlier = _revision_of(document, item.content, after=base.number if base else 0)
        if earlier is not None:  # the hub wrote it, but stopped before it recorded that
            return OutsideEdit("behind", revision=earlier)
    if edit.verdict in ("take", "merge") and base is not None:
        flags = _set_back(document, base, head, edit, item)
        return OutsideEdit("hold", edit.text, flags) if flags else edit
    return edit


def _set_back(
    document: MemoryDocument, base: MemoryRevision, head: MemoryRevision, edit: OutsideEdit, item: DocumentRecord
) -> tuple[str, ...]:
    """Return a message if a file was set back to an older text, and so lacks what people added since."""
    removed = line_edits(head.content, edit.text).removed
    if not removed:
        return ()
    rows = MemoryRevision.objects.filter(document=document, number__lte=head.number).select_related("base")
    latest = rows.order_by("-number")
    by_people = list(latest.filter(author_kind__in=PEOPLE)[:MAX_REVISIONS])
    people = hub_edits(by_people, head.content)
    texts = [*latest[:MAX_REVISIONS], *(row.base for row in by_people if row.base)]
    older = list(dict.fromkeys(row.content for row in texts if row.number < base.number))
    return set_back_flags(item.content, base=base.content, older=older, lost=people.added & removed)


def _checked(
    workspace: Workspace, document: MemoryDocument | None, edit: OutsideEdit, item: DocumentRecord
) -> OutsideEdit:
    """Return an edit that holds flagged lines, changes of pinned facts, and lines that people removed."""
    if edit.verdict not in ("take", "merge"):
        return edit
    head = document.head.content if document and document.head else ""
    text = edit.text if edit.verdict == "merge" else item.content
    if is_oversize(text) or is_oversize(item.content):
        why = f"has {len(text):,} characters; the limit is {MAX_DOCUMENT_CHARS:,}"
        return OutsideEdit("hold", item.content, (why,))
    change = check_change(head, text)
    pins = pinned_lines(document, head)
    removed = RemovedTexts(workspace, document=document)
    flags, returned = _flags(change, pins, removed)
    if not flags:
        return edit
    safe = safe_part(change, pinned=pins, held=returned)
    is_known = document is not None and document.head is not None
    if (is_known and safe == head) or _flags(check_change(head, safe), pins, removed)[0]:
        return OutsideEdit("hold", text, flags)
    return OutsideEdit("merge", safe, flags, proposed=text)


def _flags(
    change: CheckedChange, pins: Collection[int], removed: RemovedTexts
) -> tuple[tuple[str, ...], Collection[int]]:
    """Return the reasons to hold lines of a change, and the numbers of the lines that people removed before."""
    returned = removed.added_again(change.before, change.after)
    flags = pin_reasons(change.before, change.after, pins) + safety_reasons(change)
    return (*flags, *([returned_reason(len(returned))] if returned else [])), returned


def _read_by_agent(document: MemoryDocument, head: MemoryRevision, at: datetime) -> tuple[list[str], LineEdits]:
    """Return the texts that an agent which wrote ``at`` a time may have read before, and the hub's edits since.

    These are the texts since the one that the hub replaced within the last ten minutes. The hub may have written even
    the latest ones, and stopped before it recorded that.
    """
    since = at - LATE_AFTER_WRITE
    base, over = document.synced_revision, document.written_over
    is_recent = document.written_at is not None and document.written_at >= since
    first = over if over is not None and is_recent else base
    number = first.number if first else 0
    rows = MemoryRevision.objects.filter(Q(number__gte=number) | Q(created_at__gte=since), document=document)
    revisions = list(rows.select_related("base").order_by("number"))
    read = [] if first else [""]
    read += [revision.content for revision in revisions if revision.number >= number]
    hubs = [row for row in revisions if row.author_kind != SYNC.kind]
    recent = [row for row in hubs if row.number > number or row.created_at >= since]
    return read, hub_edits(recent, head.content)


def _revision_of(document: MemoryDocument, content: str, *, after: int) -> MemoryRevision | None:
    same = MemoryRevision.objects.filter(document=document, content_hash=content_hash(content), number__gt=after)
    return same.order_by("-number").first()


def _counted(edit: OutsideEdit, path: str, document: MemoryDocument | None) -> ImportCounts:
    tally = ImportCounts()
    kind = tally.unchanged
    if edit.verdict in ("take", "merge"):
        kind = tally.added if document is None or document.head is None else tally.updated
    kind["documents"] += 1
    if edit.verdict == "empty":
        what = "is empty, and the hub keeps a text"
        tally.problems.append(Problem(path, None, what, "the text is kept", "held"))
    elif edit.verdict == "hold":
        what = f"changed outside the hub: {'; '.join(edit.flags)}"
        tally.problems.append(Problem(path, None, what, "held for review; both texts are kept", "held"))
    elif edit.verdict == "merge" and edit.flags:
        what = f"changed outside the hub: {'; '.join(edit.flags)}"
        tally.problems.append(Problem(path, None, what, "held for review; the other lines were imported", "held"))
    elif edit.verdict == "merge":
        tally.problems.append(Problem(path, None, edit.note, "merged", "noted"))
    return tally


def _apply(document: MemoryDocument, edit: OutsideEdit, item: DocumentRecord, now: datetime) -> None:
    head = document.head
    if edit.verdict in ("agreed", "behind"):
        document.synced_revision = edit.revision or head
        document.save(update_fields=["synced_revision"])
        return
    if edit.verdict == "take":
        reason = CHANGED if head else "first seen in the agent's file"
        document.synced_revision = _revise(document, item.content, item.raw, reason, now)
    elif edit.verdict == "merge":
        document.synced_revision = _store_intermediate(document, item, BEFORE_MERGING, now)
        reason = SAFE_LINES if edit.flags else MERGED
        _revise(document, edit.text, None, reason, now)
        if edit.flags:
            held = OutsideEdit("hold", edit.proposed, edit.flags)
            _hold(document, held, item, now, base=document.synced_revision)
    elif edit.verdict == "hold":
        _hold(document, edit, item, now, base=document.synced_revision)
        return
    else:
        return
    document.save(update_fields=["synced_revision"])


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
    """Hold a text of the file for review, once; it supersedes older ones.

    With two-way sync, the file gets the hub's text again at once, if the hub has one.
    """
    is_guarded = author == SYNC and document.workspace.is_two_way and document.head is not None
    proposed = item.content if author == SYNC and not is_guarded else edit.text
    if not _is_held(document, proposed, base, is_guarded=is_guarded):
        _supersede(document, proposed, author, now, is_guarded=is_guarded)
        change = HeldChange(
            document=document,
            base=base,
            ours=document.head,
            proposed=proposed,
            raw=item.raw if proposed == item.content else None,
            flags=list(edit.flags),
            reason="; ".join(edit.flags),
            author_kind=author.kind,
            author_name=author.name,
            file_restored_at=now if is_guarded else None,
        )
        store_held(change, f"a change of the file is held ({change.reason})", by=By(author, now))
    if is_guarded:
        _restore_file(document, item, now)


def _is_held(document: MemoryDocument, proposed: str, base: MemoryRevision | None, *, is_guarded: bool) -> bool:
    """Tell whether the same text was held before, and isn't superseded."""
    same = HeldChange.objects.filter(document=document, proposed_hash=content_hash(proposed))
    if not is_guarded:
        same = same.filter(base=base, ours=document.head)
        return same.exclude(status=HeldChange.Status.SUPERSEDED).exists()
    head_hash = document.head.content_hash if document.head else ""
    rejected = Q(status=HeldChange.Status.REJECTED, ours__content_hash=head_hash)
    return same.filter(rejected | Q(status=HeldChange.Status.PENDING)).exists()


def _supersede(document: MemoryDocument, proposed: str, author: Actor, now: datetime, *, is_guarded: bool) -> None:
    """Supersede pending texts of the file that it doesn't contain any more, or that a new one includes."""
    pending = HeldChange.objects.filter(document=document, status=HeldChange.Status.PENDING, author_kind=author.kind)
    replaced = pending.filter(author_name=author.name, file_restored_at=None)
    numbers = set(replaced.values_list("pk", flat=True))
    if is_guarded and document.head:
        new = line_edits(document.head.content, proposed)
        guarded = pending.exclude(file_restored_at=None).select_related("ours")
        numbers |= {
            change.pk
            for change in guarded
            if new.include(line_edits(change.ours.content if change.ours else "", change.proposed))
        }
    supersede(pending.filter(pk__in=numbers), by=By(author, now))


def _restore_file(document: MemoryDocument, item: DocumentRecord, now: datetime) -> None:
    """Store the file's text, and make the hub's text the head again, to be written."""
    head = document.head
    if head is None:
        raise ValueError("a document without text has nothing to restore")
    if item.content:
        document.synced_revision = _store_intermediate(document, item, HELD_FILE, now)
        document.save(update_fields=["synced_revision"])
    _revise(document, head.content, bytes(head.raw) if head.raw is not None else None, "kept the approved text", now)
