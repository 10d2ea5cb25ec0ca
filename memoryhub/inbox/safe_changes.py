"""Held changes that nothing was found in: they can be accepted together."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from functools import lru_cache

from django.contrib.auth.models import User
from django.utils.translation import gettext

from knowledge_app.models import Fact, HeldChange
from knowledge_app.services.documents.change_review import pinned_lines
from memoryhub.inbox.sources import IS_CONFLICT, held_changes
from memoryhub.lib.document_size import is_oversize
from memoryhub.lib.errors import Conflict, MemoryHubError
from memoryhub.lib.masked_text import masked
from memoryhub.lib.text.change_guard import pin_reasons
from memoryhub.lib.text.diff import DiffLine, diff_lines
from memoryhub.runs.flagged_parts import parts_with_warnings
from memoryhub.runs.review import approve
from sessions_app.models import Workspace
from sessions_app.services.audit import By

MAX_CHANGES = 200  # each needs its own merge and revision
MAX_LINES = 12  # shown of each change
MAX_CHARS = 400  # shown of each line
RELATED = ("workspace", "document", "base", "ours", "decided_by", "run__session", "run__workspace")


@dataclass(frozen=True)
class SafeChanges:
    """The oldest pending changes, split by whether anything was found in them. ``more``: others that weren't read."""

    safe: list[HeldChange]
    others: list[HeldChange]
    more: int

    @property
    def all(self) -> list[HeldChange]:
        return sorted((*self.safe, *self.others), key=lambda change: change.pk)


def find_safe_changes(workspace: Workspace) -> SafeChanges:
    """Read the pending changes of a workspace, the oldest first, split by ``safe_pks``."""
    rows = held_changes(Workspace.objects.filter(pk=workspace.pk))
    changes = list(rows.select_related(*RELATED).order_by("pk")[:MAX_CHANGES])
    pks = safe_pks(workspace)
    safe = [change for change in changes if change.pk in pks]
    others = [change for change in changes if change.pk not in pks]
    return SafeChanges(safe, others, rows.count() - len(changes))


def safe_pks(workspace: Workspace) -> set[int]:
    """Return those of the oldest pending changes in which nothing is found, and which touch no pinned fact.

    Conflicts aren't among them: there is a choice to make. A few queries, and more for each change that this process
    hasn't checked yet as it is.
    """
    rows = held_changes(Workspace.objects.filter(pk=workspace.pk)).order_by("pk")
    conflicts = set(rows.filter(IS_CONFLICT).values_list("pk", flat=True))
    pinned: defaultdict[int, set[int]] = defaultdict(set)
    facts = Fact.objects.filter(workspace=workspace, died=None, pinned=True)
    for document, fact in facts.values_list("document", "pk"):
        pinned[document].add(fact)
    columns = ("proposed_hash", "flags", "created_at", "document__head__content_hash", "ours__content_hash")
    changes = rows.select_related("document__head", "ours").only(*columns)[:MAX_CHANGES]
    return {
        change.pk
        for change in changes
        if change.pk not in conflicts
        and not change.findings
        and not _has_warnings(change.pk, change.proposed_hash, change.created_at)
        and not (change.document_id in pinned and _touches(change, frozenset(pinned[change.document_id])))
    }


@lru_cache(maxsize=4096)  # the text of a change stays the same; only forgetting changes it, and its hash
def _has_warnings(pk: int, _proposed_hash: str, _created_at: datetime) -> bool:
    """Tell whether the content check finds something in a change, or can't check it because it is too long."""
    change = HeldChange.objects.select_related(*RELATED).filter(pk=pk).first()
    if change is None or is_oversize(change.proposed) or (change.ours and is_oversize(change.ours.content)):
        return True
    return any(warnings for _, warnings in parts_with_warnings(change))


def _touches(change: HeldChange, pinned: frozenset[int]) -> bool:
    ours, head = (one.content_hash if one else "" for one in (change.ours, change.document.head))
    return _touches_pins(change.pk, change.proposed_hash, ours, head, pinned)


@lru_cache(maxsize=4096)
def _touches_pins(pk: int, _proposed: str, _ours: str, _head: str, _pinned: frozenset[int]) -> bool:
    """Tell whether a change touches pinned facts of its document. Cached by hashes, as above."""
    change = HeldChange.objects.select_related("document__head", "ours").filter(pk=pk).first()
    if change is None:
        return True
    ours = change.ours.content if change.ours else ""
    return bool(pin_reasons(ours, change.proposed, pinned_lines(change.document, ours)))


def changed_lines(change: HeldChange) -> tuple[list[DiffLine], int]:
    """Return the first removed and added lines of a change, with secrets masked, and how many others there are."""
    ours = change.ours.content if change.ours else ""
    rows = [row for row in diff_lines(masked(ours), masked(change.proposed), around=0) if row.mark in ("del", "ins")]
    return [_cut(row) for row in rows[:MAX_LINES]], max(0, len(rows) - MAX_LINES)


def _cut(row: DiffLine) -> DiffLine:
    return row if len(row.text) <= MAX_CHARS else replace(row, text=f"{row.text[:MAX_CHARS]}…", parts=())


def accept_safe_changes(
    workspace: Workspace, pks: Collection[int], *, by: By, user: User
) -> tuple[list[HeldChange], list[str]]:
    """Accept those of the chosen changes that are still safe; return them, and why others weren't accepted."""
    accepted: list[HeldChange] = []
    reasons: list[str] = []
    safe = {change.pk: change for change in find_safe_changes(workspace).safe}
    chosen = HeldChange.objects.select_related("document").filter(workspace=workspace, pk__in=pks)
    for change in chosen.order_by("pk"):
        try:
            approve(_still_safe(change, safe), by=by, user=user)
        except MemoryHubError as error:
            reasons.append(f"{change.document.name}: {error.message}")
        else:
            accepted.append(change)
    return accepted, reasons


def _still_safe(change: HeldChange, safe: Mapping[int, HeldChange]) -> HeldChange:
    """Return a chosen change with its related rows. Raises Conflict if it isn't among the safe ones any more."""
    if change.pk in safe:
        return safe[change.pk]
    if change.status != HeldChange.Status.PENDING:
        raise Conflict(gettext("This change has been decided already."), code="cannot_decide")
    raise Conflict(gettext("This change has a finding or is a conflict by now."), code="cannot_decide")
