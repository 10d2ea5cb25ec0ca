"""Connections to PostgreSQL itself, where DATABASE_URL is the address of a pooler in transaction mode.

Through such a pooler, statements of different transactions reach different sessions. So advisory locks, pg_dump and
migrations need their own connection (DATABASE_DIRECT_URL).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from django.conf import settings
from django.db import DEFAULT_DB_ALIAS, connections
from django.db.backends.base.base import BaseDatabaseWrapper


def new_direct_connection(database: BaseDatabaseWrapper) -> BaseDatabaseWrapper:
    """Return a new connection to the same database, not through a pooler. The caller closes it."""
    own = database.copy()
    own.settings_dict = {**own.settings_dict, **settings.DIRECT_DATABASE}
    return own


@contextmanager
def direct_connection(database: BaseDatabaseWrapper) -> Iterator[BaseDatabaseWrapper]:
    """Yield a new connection to the same database, not through a pooler."""
    own = new_direct_connection(database)
    try:
        yield own
    finally:
        own.close()


@contextmanager
def default_is_direct() -> Iterator[None]:
    """Replace this thread's default connection with a direct one during the block, if a pooler is used."""
    if not settings.DIRECT_DATABASE:
        yield
        return
    pooled = connections[DEFAULT_DB_ALIAS]
    with direct_connection(pooled) as own:
        connections[DEFAULT_DB_ALIAS] = own
        try:
            yield
        finally:
            connections[DEFAULT_DB_ALIAS] = pooled
