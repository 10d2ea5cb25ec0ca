from __future__ import annotations

import logging

from django.utils import timezone
from django_tasks import task

from memoryhub.lib.errors import MemoryHubError
from memoryhub.sync.import_requests import carry_out_import
from memoryhub.sync.syncing import sync_workspace
from sessions_app.models import Workspace
from sessions_app.services.audit import Actor, By

logger = logging.getLogger(__name__)


@task()
def import_folder(report_id: int) -> None:
    """Carry out an import that a page asked for; the report says how it went."""
    carry_out_import(report_id, clock=timezone.now)


@task()
def sync_folder(workspace_id: int, requested_by: str) -> None:
    """Carry out a sync that a page asked for, every file read; the workspace's state says how it went."""
    workspace = Workspace.objects.filter(pk=workspace_id).first()
    if workspace is None:
        return
    try:
        sync_workspace(workspace, by=By(Actor("person", requested_by), timezone.now()), full=True)
    except MemoryHubError as error:
        logger.warning("sync of workspace %s failed: %s", workspace_id, error.code)
