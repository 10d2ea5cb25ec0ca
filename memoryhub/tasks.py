"""Long work, done by the worker. Tasks take ids, read again, and may run twice without harm."""

from __future__ import annotations

import logging

from django.utils import timezone
from django_tasks import task

from memoryhub.flows.backups.folder import check_kept_backup, is_cancelled, make_kept_backup
from memoryhub.flows.imports import carry_out_import
from memoryhub.flows.live_sync import sync_workspace
from memoryhub.lib.errors import MemoryHubError
from sessions_app.models import Workspace
from sessions_app.services.audit import Actor

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
        sync_workspace(workspace, actor=Actor("person", requested_by), now=timezone.now(), full=True)
    except MemoryHubError as error:
        logger.warning("sync of workspace %s failed: %s", workspace_id, error.code)


@task()
def back_up(requested_by: str, wish: str = "") -> None:
    """Make the backup that a page asked for; the folder's state says how it went."""
    if is_cancelled(wish):
        return
    try:
        make_kept_backup(actor=Actor("person", requested_by), clock=timezone.now)
    except MemoryHubError as error:
        logger.warning("a backup failed: %s", error.message)


@task()
def check_backup(name: str, wish: str = "") -> None:
    """Check a backup that a page asked for; the folder's state says how it went."""
    if is_cancelled(wish):
        return
    try:
        check_kept_backup(name, now=timezone.now())
    except MemoryHubError as error:
        logger.warning("a backup was not checked: %s", error.message)
