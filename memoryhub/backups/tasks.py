from __future__ import annotations

import logging

from django.utils import timezone
from django_tasks import task

from memoryhub.backups.folder import check_kept_backup, is_cancelled, make_kept_backup
from memoryhub.lib.errors import MemoryHubError
from sessions_app.services.audit import Actor

logger = logging.getLogger(__name__)


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
