"""Syncs requested by people, as jobs."""

from __future__ import annotations

from typing import Any

from django.db import transaction
from django.utils.translation import gettext

from memoryhub.jobs.kinds import Clock
from memoryhub.jobs.progress import Progress
from memoryhub.jobs.queue import LIVE, request_job
from memoryhub.lib.errors import Refused
from memoryhub.lib.import_counts import ImportCounts
from memoryhub.models import Job
from memoryhub.sync.other_machines import leave_to_others
from memoryhub.sync.source_folders import sync_folders
from memoryhub.sync.syncing import SyncResult, sync_workspace
from sessions_app.models import Workspace
from sessions_app.services.audit import Actor, By, record


@transaction.atomic
def request_sync(workspace: Workspace, *, by: By, send: bool = False) -> Job:
    """Queue a sync of a workspace that reads every file. Raises Refused.

    ``send``: also write the hub's newer texts, even if two-way sync is off.
    """
    if not workspace.path and (send or not workspace.source_folders.filter(removed_at=None).exists()):
        raise Refused(
            gettext("This workspace has no folder. Its agent writes directly to the hub."), code="cannot_sync"
        )
    if send and not workspace.can_be_written:
        message = gettext("The hub never writes to %(program)s folders.")
        raise Refused(message % {"program": workspace.get_layout_display()}, code="cannot_sync")
    job, _ = request_job("sync", workspace, {"send": True} if send else {}, by=by)
    text = "Sending to the agent requested" if send else "Sync requested"
    record(by, "workspace.sync_requested", "workspace", workspace.pk, text, workspace=workspace)
    return job


def is_requested(workspace: Workspace) -> bool:
    """Tell whether a requested sync is queued or running."""
    return Job.objects.filter(workspace=workspace, kind=Job.Kind.SYNC, status__in=LIVE).exists()


def carry_out_sync(job: Job, _progress: Progress, clock: Clock) -> dict[str, Any]:
    """Sync a workspace with its folders. The results are stored in its SyncState and its source folders."""
    if job.workspace is None:
        raise Refused("This job has no workspace.", code="cannot_sync")
    if job.workspace.path:
        leave_to_others(job, job.workspace.path)
    by = By(Actor("person", job.requested_by), clock())
    counts = ImportCounts()
    for _, result in sync_folders(job.workspace, by=by, full=True):
        if isinstance(result, SyncResult):
            counts.include(result.tally)
    if job.workspace.path:
        own = sync_workspace(job.workspace, by=by, full=True, send=bool(job.options.get("send")))
        counts.include(own.tally)
    return {"added": dict(+counts.added), "updated": dict(+counts.updated)}
