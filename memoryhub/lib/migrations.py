"""The migrations on disk, and the ones of commit 827a92b that they replace."""

from __future__ import annotations

from collections.abc import Set
from functools import cache

from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.recorder import MigrationRecorder

OLDEST = "827a92b"  # the last commit that has the replaced migrations
REMOVED_APPS = ("django_tasks_database",)  # of that commit, with tables that a migration drops


def applied_migrations(connection: BaseDatabaseWrapper) -> set[str]:
    """Return the migrations that a database has recorded, as ``app.name``."""
    return {f"{app}.{name}" for app, name in MigrationRecorder(connection).applied_migrations()}


def unknown_migrations(applied: Set[str]) -> list[str]:
    """Return the applied migrations that are neither on disk, nor replaced there, nor of a removed app."""
    known = set(_replaced()).union(*_replaced().values())
    return sorted(name for name in applied - known if name.partition(".")[0] not in REMOVED_APPS)


def pending_migrations(applied: Set[str]) -> list[str]:
    """Return the migrations on disk that a database with these applied ones still needs."""
    return sorted(
        name
        for name, replaced in _replaced().items()
        if name not in applied and not (replaced and replaced <= applied)
    )


def is_too_old(applied: Set[str]) -> bool:
    """Return whether a database has some, but not all, of the migrations that one on disk replaces.

    Such a database was last migrated before ``OLDEST``, and can't be upgraded with the migrations on disk.
    """
    return any(
        not replaced <= applied and (name in applied or not replaced.isdisjoint(applied))
        for name, replaced in _replaced().items()
    )


@cache
def _replaced() -> dict[str, frozenset[str]]:
    """Return the migrations on disk, each with those that it replaces; cached."""
    on_disk = MigrationLoader(None).disk_migrations.items()
    return {
        f"{app}.{name}": frozenset(f"{other}.{old}" for other, old in migration.replaces)
        for (app, name), migration in on_disk
    }
