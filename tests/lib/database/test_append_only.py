from __future__ import annotations

from collections.abc import Callable

import pytest
from django.db import DatabaseError, connection, transaction

from memoryhub.lib.database.append_only import Protection, install_sql, remove_sql
from sessions_app.models import MutationGuard

pytestmark = pytest.mark.django_db


def run(*statements: str) -> None:
    with transaction.atomic(), connection.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)


def refuses(statement: str) -> bool:
    try:
        run(statement)
    except DatabaseError as error:
        return "append-only" in str(error)
    return False


@pytest.fixture
def protect() -> Callable[[Protection], None]:
    run("CREATE TABLE probe (id integer, content text, seen integer)", "INSERT INTO probe VALUES (1, 'said', 0)")
    return lambda protection: run(*install_sql(connection, protection))


def test_protected_columns_and_rows_cannot_change_but_free_columns_can(protect):
    protect(Protection("probe", free=("seen",)))

    assert refuses("UPDATE probe SET content = 'another'")
    assert refuses("UPDATE probe SET content = NULL")
    assert refuses("DELETE FROM probe")
    assert not refuses("UPDATE probe SET seen = 1")


def test_rows_cannot_be_replaced_or_truncated(protect):
    run("CREATE TABLE keyed (id integer PRIMARY KEY, key text UNIQUE, content text)")
    run("INSERT INTO keyed VALUES (1, 'a', 'said')")
    run(*install_sql(connection, Protection("keyed")))
    is_sqlite = connection.vendor == "sqlite"
    replace = "INSERT OR REPLACE INTO keyed" if is_sqlite else "INSERT INTO keyed"
    suffix = "" if is_sqlite else " ON CONFLICT (id) DO UPDATE SET content = excluded.content"

    assert refuses(f"{replace} VALUES (1, 'b', 'forged'){suffix}")
    assert not refuses("INSERT INTO keyed VALUES (2, 'c', 'said too')")
    if is_sqlite:
        run("PRAGMA recursive_triggers = OFF")
        assert refuses("REPLACE INTO keyed VALUES (1, 'b', 'forged')")
        assert refuses("REPLACE INTO keyed VALUES (3, 'a', 'forged')")
        assert refuses("INSERT OR REPLACE INTO keyed (key, content) VALUES ('a', 'forged')")
        run("PRAGMA recursive_triggers = ON")
        assert refuses("UPDATE OR REPLACE keyed SET id = 1 WHERE id = 2")
    else:
        assert refuses("TRUNCATE keyed")
    MutationGuard.objects.create(reason="forget")
    assert not refuses(f"{replace} VALUES (1, 'b', 'corrected'){suffix}")


def test_the_guard_lifts_a_guarded_protection(protect):
    protect(Protection("probe"))
    MutationGuard.objects.create(reason="forget")

    assert not refuses("UPDATE probe SET content = 'another'")
    assert not refuses("DELETE FROM probe")


def test_the_guard_does_not_lift_an_unguarded_protection(protect):
    protect(Protection("probe", guarded=False))
    MutationGuard.objects.create(reason="forget")

    assert refuses("UPDATE probe SET content = 'another'")
    assert refuses("DELETE FROM probe")


def test_a_removed_protection_leaves_nothing_behind(protect):
    protection = Protection("probe")
    protect(protection)

    run(*remove_sql(connection, protection))

    assert not refuses("UPDATE probe SET content = 'another'")
    assert not refuses("DELETE FROM probe")
    protect(protection)
