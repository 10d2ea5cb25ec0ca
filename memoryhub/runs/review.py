"""Approve and reject held changes and held runs, for pages and commands."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from django.contrib.auth.models import User
from django.db import transaction
from django.utils.translation import gettext, ngettext

from knowledge_app.models import HeldChange
from knowledge_app.services.documents.change_review import supersede
from knowledge_app.services.documents.held_changes import (
    accept_text,
    close_change,
    hold_rest,
    hunks_of,
    keep_ours,
    refused_lines,
    rest_flags,
    stale_hunks,
    text_with,
)
from knowledge_app.services.rows.proposed_edits import approve_edit
from memoryhub.lib.document_size import is_oversize
from memoryhub.lib.errors import Conflict, Invalid
from memoryhub.processes import this_process
from memoryhub.runs.compress import approve_held
from memoryhub.runs.consolidate import approve_held_run, approved_proposal
from memoryhub.runs.flagged_parts import parts_with_warnings
from sessions_app.models import Run
from sessions_app.services.audit import By
from sessions_app.services.runs import cancel_run


def approve(
    change: HeldChange,
    *,
    by: By,
    user: User | None = None,
    hunks: Collection[int] | None = None,
    text: str | None = None,
    reason: str = "",
    waiting: Collection[int] = (),
) -> None:
    """Accept a held change: all of it, some of its hunks, or an edited text. ``waiting``: the hunks that still wait.

    The other lines are refused. If a whole consolidation was held, its revision, history entry and pointer are
    committed together. Raises Conflict or RunNotFitting and changes nothing if it can't.
    """
    approved = text if text is not None else change.proposed if hunks is None else text_with(change, hunks)
    run = change.run if change.run and change.run.status == Run.Status.HELD else None
    proposal = approved_proposal(run, change, approved) if run else None
    parts = _parts(change, hunks, waiting) if hunks is not None else {"refused": refused_lines(change, approved)}
    with transaction.atomic():
        close_change(change, approve=True, by=by, user=user, reason=reason, parts=parts)
        if run and proposal:
            approve_held_run(run, change, proposal, owner=this_process(), by=by)
        else:
            accept_text(change, approved, by=by)


def _parts(change: HeldChange, accepted: Collection[int], waiting: Collection[int]) -> dict[str, Any]:
    """Return the ``decided_parts`` of a change of which some parts were accepted and some still wait."""
    rejected = len(hunks_of(change)) - len(accepted) - len(waiting)
    refused = refused_lines(change, text_with(change, {*accepted, *waiting}))
    return {"accepted": len(accepted), "rejected": rejected, "waiting": len(waiting), "refused": refused}


def approve_unflagged(change: HeldChange, *, by: By, user: User | None = None, reason: str = "") -> int:
    """Accept a held change except the parts that the content check flags, or can't check; return how many still wait.

    These stay pending, as a change of their own if other parts are accepted. Raises Conflict, RunNotFitting.
    """
    parts = parts_with_warnings(change)
    is_checked = not is_oversize(change.proposed)
    accepted = [hunk.number for hunk, warnings in parts if is_checked and not warnings]
    if len(accepted) == len(parts):
        approve(change, by=by, user=user, reason=reason)
    elif change.status != HeldChange.Status.PENDING:
        raise Conflict(gettext("This change has been decided already."), code="cannot_decide")
    elif accepted:
        flags = dict.fromkeys(text for _, warnings in parts for texts in warnings.values() for text in texts)
        with transaction.atomic():
            waiting = [hunk.number for hunk, _ in parts if hunk.number not in accepted]
            approve(change, by=by, user=user, hunks=accepted, reason=reason, waiting=waiting)
            hold_rest(change, text_with(change, accepted), change.proposed, flags=list(flags), by=by)
    return len(parts) - len(accepted)


@dataclass(frozen=True)
class Decided:
    """How many parts were accepted, were rejected, and still wait in ``rest``.

    ``stale``: how many wait although they were accepted, since the document has changed in their lines.
    """

    accepted: int
    rejected: int
    waiting: int = 0
    stale: int = 0
    rest: HeldChange | None = None


def decide_parts(
    change: HeldChange,
    *,
    accepted: Collection[int],
    rejected: Collection[int],
    by: By,
    user: User | None = None,
    reason: str = "",
) -> Decided:
    """Accept and reject parts of a held change. The others wait as a change of their own, with the current text.

    Accepted parts wait too if the document has changed in their lines. Raises Conflict, RunNotFitting, and Invalid if
    no part is decided.
    """
    parts = parts_with_warnings(change)
    numbers = {hunk.number for hunk, _ in parts}
    if not numbers & {*accepted, *rejected}:
        raise Invalid(gettext("Accept or reject at least one part."), code="nothing_chosen")
    stale = stale_hunks(change) & set(accepted)
    taken = set(accepted) - stale
    waiting = numbers - taken - set(rejected)
    if not waiting and not taken:
        reject(change, by=by, user=user, reason=reason)
        return Decided(0, len(rejected))
    flags = [text for hunk, found in parts if hunk.number in waiting for texts in found.values() for text in texts]
    rest = None
    with transaction.atomic():
        if taken:
            hunks = None if taken == numbers else taken
            approve(change, by=by, user=user, hunks=hunks, reason=reason, waiting=waiting)
        elif rejected:
            close_change(change, approve=False, by=by, user=user, reason=reason, parts=_parts(change, (), waiting))
        elif not supersede(HeldChange.objects.filter(pk=change.pk), by=by):
            raise Conflict(gettext("This change has been decided already."), code="cannot_decide")
        if not taken and change.run is None:  # a held consolidation waits with the other parts
            keep_ours(change, by=by)
        if waiting:
            wanted = text_with(change, {*taken, *waiting})
            accepted_text = text_with(change, taken)
            flags = list(dict.fromkeys(flags)) or rest_flags(change, accepted_text, wanted)
            rest = hold_rest(change, accepted_text, wanted, flags=flags, by=by)
    return Decided(len(taken), len(rejected), len(waiting), len(stale), rest)


def approve_run(run: Run, *, by: By) -> int:
    """Commit a held run: a summary, an agent's edit, or a consolidation with its held change except flagged parts.

    Returns how many flagged parts still wait. Raises RunNotFitting, Conflict.
    """
    change = HeldChange.objects.filter(run=run, status=HeldChange.Status.PENDING).first()
    if change:
        return approve_unflagged(change, by=by)
    if run.kind == Run.Kind.EDIT:
        approve_edit(run, by=by)
    else:
        approve_held(run, owner=this_process(), by=by)
    return 0


def flagged_text(count: int) -> str:
    """Return a message about flagged parts that weren't approved together with others."""
    text = ngettext(
        "%(count)s flagged part still waits. To approve it, open its change and select it.",
        "%(count)s flagged parts still wait. To approve them, open their changes and select them.",
        count,
    )
    return text % {"count": f"{count:,}"}


def reject(change: HeldChange, *, by: By, user: User | None = None, reason: str = "") -> None:
    """Reject a held change. A held consolidation is cancelled; its messages stay unconsolidated."""
    with transaction.atomic():
        close_change(change, approve=False, by=by, user=user, reason=reason)
        if change.run and change.run.status == Run.Status.HELD:
            cancel_run(change.run, by=by)
        elif change.run is None:
            keep_ours(change, by=by)
