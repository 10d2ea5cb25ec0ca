"""Squashes create a new database; an existing one is upgraded by the migrations that they replace."""

from __future__ import annotations

import pytest
from django.db import connection
from django.db.migrations.executor import MigrationExecutor
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.recorder import MigrationRecorder

from memoryhub.lib.database.migrations import FORMER_SQUASHES, is_too_old, pending_migrations, unknown_migrations
from tests.upgrading.test_from_827a92b import applied_at_827a92b


def squashes() -> set[str]:
    on_disk = MigrationLoader(None).disk_migrations
    return {f"{app}.{name}" for (app, name), migration in on_disk.items() if migration.replaces}


def chain() -> list[str]:
    """Return the other migrations in the order in which they were applied."""
    graph = MigrationLoader(None, replace_migrations=False).graph
    names = [f"{app}.{name}" for leaf in graph.leaf_nodes() for app, name in graph.forwards_plan(leaf)]
    return [name for name in dict.fromkeys(names) if name not in squashes()]


def planned(applied: set[str], monkeypatch) -> list[str]:
    """Return what Django would apply to a database with these applied migrations, in order."""
    recorded = {tuple(name.split(".")): None for name in applied}
    monkeypatch.setattr(MigrationRecorder, "applied_migrations", lambda _self: dict(recorded))
    executor = MigrationExecutor(connection)
    executor.loader.check_consistent_history(connection)
    plan = executor.migration_plan(executor.loader.graph.leaf_nodes())
    return [f"{migration.app_label}.{migration.name}" for migration, _ in plan]


def test_a_new_database_is_created_by_the_squashes(monkeypatch):
    plan = planned(set(), monkeypatch)

    assert squashes() <= set(plan)
    assert sorted(plan) == pending_migrations(set())
    assert "memoryhub.0001_initial" not in plan


@pytest.mark.parametrize("missing", [1, 2, 5, 10, 20])
def test_an_existing_database_is_upgraded_by_the_migrations_that_it_lacks(missing, monkeypatch):
    order = chain()
    applied = applied_at_827a92b() | set(order[:-missing])

    assert set(planned(applied, monkeypatch)) - squashes() == set(order[-missing:]) - applied
    assert sorted(planned(applied, monkeypatch)) == pending_migrations(applied)
    assert not squashes() & set(pending_migrations(applied))
    assert (unknown_migrations(applied), is_too_old(applied)) == ([], False)


def test_a_database_that_lacks_nothing_records_the_squashes(db):
    recorder = MigrationRecorder(connection)
    for name in squashes():
        recorder.record_unapplied(*name.split("."))
    executor = MigrationExecutor(connection)
    leaves = executor.loader.graph.leaf_nodes()

    assert executor.migration_plan(leaves) == []
    assert pending_migrations({f"{app}.{name}" for app, name in recorder.applied_migrations()}) == []
    executor.migrate(leaves)
    assert squashes() <= {f"{app}.{name}" for app, name in recorder.applied_migrations()}


@pytest.mark.parametrize("former", sorted(FORMER_SQUASHES))
def test_a_database_that_an_earlier_squash_created_is_upgraded(former, monkeypatch):
    last = former.rpartition("squashed_")[2]
    order = chain()
    applied = {former, *order[: order.index(f"{former.partition('.')[0]}.{last}") + 1]} | applied_at_827a92b()

    assert tuple(former.split(".")) not in MigrationLoader(None).disk_migrations
    assert set(planned(applied, monkeypatch)) - squashes() == set(order) - applied
    assert (unknown_migrations(applied), is_too_old(applied)) == ([], False)


def test_no_squash_replaces_another():
    on_disk = MigrationLoader(None).disk_migrations
    replaced = {key for migration in on_disk.values() for key in migration.replaces}

    assert not [key for key in replaced & set(on_disk) if on_disk[key].replaces]  # Django 5.2 can't resolve them
