"""What may keep a backup from being made or restored."""

from __future__ import annotations

from memoryhub.lib.errors import Busy, MemoryHubError, Refused


class BackupFailed(MemoryHubError):
    """No backup was made, and nothing half-made is left."""

    code = "backup_failed"


class BackupUnderWay(Busy):
    """Another backup is being made at this moment."""

    code = "backup_under_way"


class NoLock(Refused):
    """The file that stands for the database's users can't be made."""

    code = "no_lock"


class RestoreUnderWay(Busy):
    """The database is being replaced, and nothing may start on it."""

    code = "restore_under_way"
