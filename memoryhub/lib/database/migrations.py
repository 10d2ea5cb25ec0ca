"""The migrations on disk, and those that they replace."""

from __future__ import annotations

from collections.abc import Set
from functools import cache

from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.recorder import MigrationRecorder

OLDEST = "827a92b"  # the last commit with the replaced migrations that aren't on disk
FORMER_SQUASHES = frozenset(
    {"knowledge_app.0001_squashed_0011_document_limits", "sessions_app.0001_squashed_0012_projects"}
)
REMOVED_APPS = ("django_tasks_database",)  # of that commit, with tables that a migration drops


def applied_migrations(connection: BaseDatabaseWrapper) -> set[str]:
    """Return the migrations that a database has recorded, as ``app.name``."""
    return {f"{app}.{name}" for app, name in MigrationRecorder(connection).applied_migrations()}


def unknown_migrations(applied: Set[str]) -> list[str]:
    """Return the applied migrations that are neither on disk, nor replaced there, nor of a removed app."""
    known = FORMER_SQUASHES.union(_replaced(), *_replaced().values())
    return sorted(name for name in applied - known if name.partition(".")[0] not in REMOVED_APPS)


def pending_migrations(applied: Set[str]) -> list[str]:
    """Return the migrations that ``migrate`` would apply to a database with these applied ones.

    As in Django, a squash takes the place of those that it replaces unless some of them have been applied.
    """
    squashes = {name: replaced for name, replaced in _replaced().items() if replaced}
    unused = {name for name, replaced in squashes.items() if not replaced.isdisjoint(applied)}
    unused.update(*(replaced for name, replaced in squashes.items() if name not in unused))
    return sorted(_replaced().keys() - applied - unused)


def is_too_old(applied: Set[str]) -> bool:
    """Return whether a database has some migrations that a squash replaces, but lacks some that aren't on disk.

    Such a database was last migrated before ``OLDEST``, and can't be upgraded with the migrations on disk.
    """
    return any(
        not replaced.isdisjoint(applied) and not replaced - _replaced().keys() <= applied
        for replaced in _replaced().values()
    )


@cache
def _replaced() -> dict[str, frozenset[str]]:
    """Return the migrations on disk, each with those that it replaces; cached."""
    on_disk = MigrationLoader(None).disk_migrations.items()
    return {
        f"{app}.{name}": frozenset(f"{other}.{old}" for other, old in migration.replaces)
        for (app, name), migration in on_disk
    }
