"""Invariants of the database itself: integrity, triggers, search indexes, tenancy."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator
from functools import cache

from django.apps import apps
from django.db import connection
from django.db.migrations.loader import MigrationLoader
from django.db.models import F, ForeignKey, Model

from memoryhub.lib.database.append_only import Protect, Protection, installed_triggers, trigger_names
from memoryhub.lib.search.index_maintenance import index_problems
from memoryhub.lib.search.operations import indexes
from sessions_app.models import AuditRecord, IndexGuard, MutationGuard, Workspace
from sessions_app.services.audit_chain import audit_problems

Finding = tuple[str, str]
FIXED_SQLITE = (3, 51, 3)


def warnings() -> list[str]:
    """Return warnings about the database's version."""
    if connection.vendor == "sqlite" and sqlite3.sqlite_version_info < FIXED_SQLITE:
        return [
            f"SQLite {sqlite3.sqlite_version} has a rare bug that can damage a database when several processes "
            "write to it at once (fixed in 3.51.3). Keep backups, or use PostgreSQL."
        ]
    return []


def check_integrity() -> tuple[int, Iterable[Finding]]:
    """SQLite's own checks; on PostgreSQL, every constraint is validated."""
    found: list[Finding] = []
    with connection.cursor() as cursor:
        if connection.vendor == "sqlite":
            cursor.execute("PRAGMA integrity_check")
            found += [("the database file is damaged", row[0]) for row in cursor.fetchall() if row[0] != "ok"]
            cursor.execute("PRAGMA foreign_key_check")
            found += [("refers to a row that doesn't exist", f"{row[0]} row {row[1]}") for row in cursor.fetchall()]
        else:
            cursor.execute("SELECT conname, conrelid::regclass::text FROM pg_constraint WHERE NOT convalidated")
            found += [("a constraint is not validated", f"{row[1]} {row[0]}") for row in cursor.fetchall()]
        tables = connection.introspection.table_names(cursor)
    return len(tables), found


@cache
def protections() -> tuple[Protection, ...]:
    """Return the tables that migrations protect as append-only. Cached, since migrations don't change."""
    loader = MigrationLoader(None)
    by_table = {
        operation.protection.table: operation.protection
        for key in sorted(loader.disk_migrations)
        for operation in loader.disk_migrations[key].operations
        if isinstance(operation, Protect)
    }
    return tuple(by_table.values())


def check_triggers() -> tuple[int, Iterable[Finding]]:
    """Every protected table has its triggers."""
    installed = installed_triggers(connection)
    tables, vendor = [protection.table for protection in protections()], connection.vendor
    names = [(name, table) for table in tables for name in trigger_names(table, vendor)]
    missing = [("missing trigger: rows could be changed", f"{table} {name}") for name, table in names]
    return len(names), [finding for finding, (name, _) in zip(missing, names, strict=True) if name not in installed]


def check_guard() -> tuple[int, Iterable[Finding]]:
    """No guard is left open."""
    guards = list(MutationGuard.objects.values_list("pk", "reason")[:10])
    found = [("append-only rows can be removed", f"guard {pk}: {reason}") for pk, reason in guards]
    tables = list(IndexGuard.objects.values_list("indexed_table", flat=True)[:10])
    found += [("new rows are not indexed for search", f"guard of {table}") for table in tables]
    return len(guards) + len(tables), found


def check_audit() -> tuple[int, Iterable[Finding]]:
    """Every audit record was written by this hub, and none was deleted."""
    return AuditRecord.objects.count(), audit_problems()


def check_search() -> tuple[int, Iterable[Finding]]:
    """Every search index exists and agrees with its rows."""
    all_indexes = indexes(connection)
    return len(all_indexes), [
        (fault, index.table) for index in all_indexes for fault in index_problems(connection, index)
    ]


def _parents(model: type[Model]) -> Iterator[ForeignKey[Model, Model]]:
    for field in model._meta.get_fields():
        if isinstance(field, ForeignKey) and _has_workspace(field.related_model):
            yield field


def _has_workspace(model: object) -> bool:
    return (
        isinstance(model, type)
        and issubclass(model, Model)
        and any(field.name == "workspace" for field in model._meta.get_fields())
    )


def check_tenancy() -> tuple[int, Iterable[Finding]]:
    """A row and everything it refers to belong to one workspace."""
    found: list[Finding] = []
    count = Workspace.objects.count()
    for label in ("sessions_app", "knowledge_app"):
        for model in apps.get_app_config(label).get_models():
            if not _has_workspace(model):
                continue
            for parent in _parents(model):
                foreign = model._default_manager.exclude(**{f"{parent.name}__workspace_id": F("workspace_id")})
                foreign = foreign.exclude(
                    **{f"{parent.name}__workspace": None, "workspace": None}
                )  # of the whole hub
                rows = foreign.filter(**{f"{parent.name}__isnull": False}).values_list("pk", flat=True)[:10]
                problem = f"its {parent.name} belongs to another workspace"
                found += [(problem, f"{model._meta.verbose_name} {pk}") for pk in rows]
    return count, found
