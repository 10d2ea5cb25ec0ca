"""Errors of backing up and restoring."""

from memoryhub.lib.errors import Busy, MemoryHubError, Refused


class BackupFailed(MemoryHubError):
    """The backup failed; no partial file is left."""

    code = "backup_failed"


class BackupUnderWay(Busy):
    """Another backup is running."""

    code = "backup_under_way"


class NoLock(Refused):
    """The lock file can't be created."""

    code = "no_lock"


class RestoreUnderWay(Busy):
    """A restore is replacing the database."""

    code = "restore_under_way"
