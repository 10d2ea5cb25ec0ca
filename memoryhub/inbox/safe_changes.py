"""Held changes that nothing was found in: they can be accepted together."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from django.contrib.auth.models import User
from django.utils.translation import gettext

from knowledge_app.models import HeldChange
from memoryhub.inbox.sources import IS_CONFLICT, held_changes
from memoryhub.lib.errors import Conflict, MemoryHubError
from memoryhub.runs.flagged_parts import parts_with_warnings
from memoryhub.runs.review import approve
from sessions_app.models import Workspace
from sessions_app.services.audit import By

MAX_CHANGES = 200  # each needs its own merge and revision


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
    """Read the pending changes of a workspace, the oldest first, and check those without a flag again.

    Conflicts aren't safe: there is a choice to make.
    """
    rows = held_changes(Workspace.objects.filter(pk=workspace.pk))
    related = ("workspace", "document", "base", "ours", "decided_by", "run__session", "run__workspace")
    changes = list(rows.select_related(*related).order_by("pk")[: MAX_CHANGES + 1])
    conflicts = set(rows.filter(IS_CONFLICT).values_list("pk", flat=True))
    safe = [change for change in changes[:MAX_CHANGES] if change.pk not in conflicts and is_safe(change)]
    pks = {change.pk for change in safe}
    others = [change for change in changes[:MAX_CHANGES] if change.pk not in pks]
    return SafeChanges(safe, others, rows.count() - len(changes[:MAX_CHANGES]))


def is_safe(change: HeldChange) -> bool:
    return not change.findings and not any(warnings for _, warnings in parts_with_warnings(change))


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
