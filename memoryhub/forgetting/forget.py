"""Erase rows and vacuum the database."""

from __future__ import annotations

import logging
from datetime import datetime

from django.apps import apps
from django.db import OperationalError, connection

from knowledge_app.models import Forgotten
from memoryhub.forgetting.erasure import ErasureRequest, apply_forget
from memoryhub.jobs.downloads import discard_downloads
from memoryhub.jobs.uploads import discard_tables, discard_uploads
from memoryhub.lib.search.index_maintenance import optimize
from memoryhub.lib.search.operations import indexes
from sessions_app.models import Workspace
from sessions_app.services.audit import By

logger = logging.getLogger(__name__)
APPS = ("sessions_app", "knowledge_app", "memoryhub", "admin")


def forget(
    workspace: Workspace, erasure: ErasureRequest, *, expected: int, reason: str, by: By
) -> tuple[Forgotten, bool]:
    """Erase in every table and vacuum the database; return the receipt and whether the vacuum was done.

    Raises Invalid, Conflict.
    """
    receipt = apply_forget(workspace, erasure, expected=expected, reason=reason, by=by)
    discard_copies(workspace, by.at)
    return receipt, vacuum()


def discard_copies(workspace: Workspace, now: datetime) -> None:
    """Delete files that may contain what was erased: exports that wait for download, archives that were imported into
    the workspace, and tables that wait to be confirmed.
    """
    discard_downloads(workspace, now)
    discard_uploads(workspace)
    discard_tables()


def vacuum() -> bool:
    """Rewrite the database so that its files keep nothing of deleted rows; return whether that was done.

    Not done inside a transaction, or if the database stays locked. SQLite: the file and its write-ahead log.
    PostgreSQL: the hub's tables (VACUUM FULL).
    """
    if connection.in_atomic_block:
        return False
    try:
        _vacuum()
    except OperationalError as error:
        logger.warning("the database was not vacuumed: %s", error)
        return False
    return True


def _vacuum() -> None:
    with connection.cursor() as cursor:
        if connection.vendor == "sqlite":
            for index in indexes(connection):  # index pages keep the words of deleted rows until merged
                optimize(connection, index)
            cursor.execute("VACUUM")
            cursor.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            if cursor.fetchone()[0]:  # another connection is reading
                raise OperationalError("the write-ahead log is in use")
            return
        for label in APPS:
            for model in apps.get_app_config(label).get_models():
                cursor.execute(f"VACUUM (FULL) {connection.ops.quote_name(model._meta.db_table)}")
