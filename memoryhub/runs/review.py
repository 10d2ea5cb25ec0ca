"""Approve and reject held changes and held runs, for pages and commands."""

from __future__ import annotations

from collections.abc import Collection

from django.contrib.auth.models import User
from django.db import transaction

from knowledge_app.models import HeldChange
from knowledge_app.services.documents.held_changes import accept_text, close_change, keep_ours, text_with
from memoryhub.processes import this_process
from memoryhub.runs.compress import approve_held
from memoryhub.runs.consolidate import approve_held_run
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
) -> None:
    """Accept a held change: all of it, some of its hunks, or an edited text.

    If a whole consolidation was held, its revision, history entry and pointer are committed together. Raises Conflict
    or RunNotFitting and changes nothing if it can't.
    """
    approved = text if text is not None else change.proposed if hunks is None else text_with(change, hunks)
    with transaction.atomic():
        close_change(change, approve=True, by=by, user=user, reason=reason)
        if change.run and change.run.status == Run.Status.HELD:
            approve_held_run(change.run, change, approved, owner=this_process(), by=by)
        else:
            accept_text(change, approved, by=by)


def approve_run(run: Run, *, by: By) -> None:
    """Commit a held run: a summary, or a consolidation with its held change. Raises RunNotFitting, Conflict."""
    change = HeldChange.objects.filter(run=run, status=HeldChange.Status.PENDING).first()
    if change:
        approve(change, by=by)
    else:
        approve_held(run, owner=this_process(), by=by)


def reject(change: HeldChange, *, by: By, user: User | None = None, reason: str = "") -> None:
    """Reject a held change. A held consolidation is cancelled; its messages stay unconsolidated."""
    with transaction.atomic():
        close_change(change, approve=False, by=by, user=user, reason=reason)
        if change.run and change.run.status == Run.Status.HELD:
            cancel_run(change.run, by=by)
        elif change.run is None:
            keep_ours(change, by=by)
