"""Keep long-running commands and restores from running at the same time."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from django.core.management.base import CommandError
from django.db.backends.base.base import BaseDatabaseWrapper

from memoryhub.backups.errors import NoLock, RestoreUnderWay
from memoryhub.backups.in_use_lock import using_database


@contextmanager
def in_use(database: BaseDatabaseWrapper) -> Iterator[None]:
    """Hold the database's shared lock during the block. Raises CommandError if a restore is running."""
    try:
        with using_database(database):
            yield
    except RestoreUnderWay as error:
        raise CommandError(error.message) from None
    except NoLock as error:
        raise CommandError(error.message) from error
