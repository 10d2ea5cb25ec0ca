"""What may keep a backup from being made or restored."""

from __future__ import annotations

from memoryhub.lib.errors import MemoryHubError


class BackupFailed(MemoryHubError):
    """No backup was made, and nothing half-made is left."""

    code = "backup_failed"


class BackupUnderWay(MemoryHubError):
    """Another backup is being made at this moment."""

    code = "backup_under_way"


class BackupCancelled(MemoryHubError):
    """Somebody asked that the backup ends; nothing of it is left."""

    code = "backup_cancelled"


class BackupIsOver(MemoryHubError):
    """There is no backup, or none any more, that could be cancelled."""

    code = "backup_is_over"


class RestoreRefused(MemoryHubError):
    """Nothing was restored, and nothing was changed."""

    code = "restore_refused"


class HubRuns(RestoreRefused):
    """The hub, or something else, uses the database that would be replaced."""

    code = "hub_runs"


class NoLock(MemoryHubError):
    """The file that stands for the database's users can't be made."""

    code = "no_lock"


class RestoreUnderWay(MemoryHubError):
    """The database is being replaced, and nothing may start on it."""

    code = "restore_under_way"
