"""The review inbox: one door for pages and commands, whatever the change came from."""

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
    """Take a held change: all of it, some of its hunks, or a text that a person made of it.

    A consolidation that waited as a whole is committed with it: revision, history entry and pointer together. Raises
    Conflict, RunNotFitting; then nothing changed.
    """
    wanted = text if text is not None else change.proposed if hunks is None else text_with(change, hunks)
    with transaction.atomic():
        close_change(change, approve=True, by=by, user=user, reason=reason)
        if change.run and change.run.status == Run.Status.HELD:
            approve_held_run(change.run, change, wanted, owner=this_process(), by=by)
        else:
            accept_text(change, wanted, by=by)


def approve_run(run: Run, *, by: By) -> None:
    """Commit a run that waits for a decision: a summary as it was shown, a consolidation with its held change.

    Raises RunNotFitting, Conflict.
    """
    change = HeldChange.objects.filter(run=run, status=HeldChange.Status.PENDING).first()
    if change:
        approve(change, by=by)
    else:
        approve_held(run, owner=this_process(), by=by)


def reject(change: HeldChange, *, by: By, user: User | None = None, reason: str = "") -> None:
    """Leave the document as it is. A consolidation that waited is cancelled: its messages stay unconsolidated."""
    with transaction.atomic():
        close_change(change, approve=False, by=by, user=user, reason=reason)
        if change.run and change.run.status == Run.Status.HELD:
            cancel_run(change.run, by=by)
        elif change.run is None:
            keep_ours(change, by=by)
