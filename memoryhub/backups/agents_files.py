"""After a restore, the hub writes to no agent's file until a person turns that on again.

The restored texts lack what people changed since the backup, and the files have it.
"""

from __future__ import annotations

from contextlib import suppress
from datetime import UTC, datetime

from django.db import DatabaseError
from django.db.backends.base.base import BaseDatabaseWrapper

TABLES = {"sessions_app_workspace", "memoryhub_job"}
_WRITTEN = "SELECT slug FROM sessions_app_workspace WHERE write_back ORDER BY slug"
_STOP = "UPDATE sessions_app_workspace SET write_back = false WHERE write_back"
_CANCEL = """
    UPDATE memoryhub_job SET status = 'cancelled', finished_at = %s, lease_owner = ''
    WHERE kind = 'sync' AND status IN ('queued', 'running') AND options LIKE %s
"""


def stop_writing(database: BaseDatabaseWrapper) -> list[str]:
    """Turn off writing, and cancel what people asked to send; return the slugs of the workspaces."""
    try:
        with database.cursor() as cursor:
            if not set(database.introspection.table_names(cursor)) >= TABLES:
                return []
            cursor.execute(_WRITTEN)
            slugs = [slug for (slug,) in cursor.fetchall()]
            cursor.execute(_STOP)
            with suppress(DatabaseError):  # the queue of an older hub, which had nothing to send
                cursor.execute(_CANCEL, [datetime.now(UTC).isoformat(sep=" "), '%"send"%'])
    finally:
        database.close()
    return slugs
