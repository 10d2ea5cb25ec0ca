"""Runs of a whole workspace instead of a session."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django.db import transaction

from memoryhub.lib.database import db_retry
from sessions_app.models import Run, Workspace
from sessions_app.services.audit import By, record
from sessions_app.services.workspaces import lock_workspace


@db_retry.retried
@transaction.atomic
def request_workspace_run(
    workspace: Workspace, kind: str, *, options: dict[str, Any], by: By, not_before: datetime | None = None
) -> tuple[Run, bool]:
    """Return the queued run of this kind, and whether it is new; options are merged into one that is queued already.

    ``not_before``: earliest start, default now; a queued run keeps the earlier of both times.
    """
    not_before = not_before or by.at
    workspace = lock_workspace(workspace.pk)  # concurrent requests get the same run
    waiting = Run.objects.filter(workspace=workspace, session=None, kind=kind, status=Run.Status.QUEUED).first()
    if waiting:
        waiting.options |= options
        waiting.not_before = min(waiting.not_before, not_before)
        waiting.save(update_fields=["options", "not_before"])
        return waiting, False
    run = Run.objects.create(
        workspace=workspace,
        kind=kind,
        options=options,
        not_before=not_before,
        requested_by=by.actor.name[:200],
        created_at=by.at,
    )
    text = f"{run.kind.capitalize()} {run.pk} was asked for"
    detail = {"kind": kind, "status": run.status}
    record(by, "run.requested", "run", run.pk, text, workspace=workspace, detail=detail)
    return run, True


def latest_run(workspace: Workspace, kind: str) -> Run | None:
    """Return the latest run of a kind of the whole workspace."""
    return Run.objects.filter(workspace=workspace, session=None, kind=kind).order_by("-id").first()
