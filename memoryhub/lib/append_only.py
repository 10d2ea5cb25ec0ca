"""Database triggers that make rows append-only, the same on SQLite and PostgreSQL.

An update of a protected column, or a delete, is refused unless a row stands in the guard table: whoever lawfully
removes rows puts one there and takes it away inside the same transaction, so that nobody else ever sees it.
"""

from __future__ import annotations

from dataclasses import dataclass

from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.migrations.operations.base import Operation
from django.db.migrations.state import ProjectState

GUARD_TABLE = "sessions_app_mutationguard"


@dataclass(frozen=True)
class Protection:
    """Which columns of a table may still change (``free``), and whether an open guard lifts the rest."""

    table: str
    free: tuple[str, ...] = ()
    guarded: bool = True


def trigger_names(table: str) -> tuple[str, str]:
    return f"{table}_no_update", f"{table}_no_delete"


def _columns(connection: BaseDatabaseWrapper, protection: Protection) -> list[str]:
    generated = "SELECT attname FROM pg_attribute WHERE attrelid = %s::regclass AND attgenerated <> ''"
    with connection.cursor() as cursor:
        described = connection.introspection.get_table_description(cursor, protection.table)
        if connection.vendor == "postgresql":
            cursor.execute(generated, [protection.table])  # those have no value yet where a trigger looks
            derived = {name for (name,) in cursor.fetchall()}
        else:
            derived = set()
    return [column.name for column in described if column.name not in derived.union(protection.free)]


def install_sql(connection: BaseDatabaseWrapper, protection: Protection) -> list[str]:
    """Return the statements that protect a table as it stands now: call it after its columns are settled."""
    table = protection.table
    no_update, no_delete = trigger_names(table)
    open_guard = f"EXISTS (SELECT 1 FROM {GUARD_TABLE})" if protection.guarded else "FALSE"
    columns = _columns(connection, protection)
    if connection.vendor == "sqlite":
        refuse = f"SELECT RAISE(ABORT, '{table} is append-only')"
        changed = " OR ".join(f'NEW."{name}" IS NOT OLD."{name}"' for name in columns)
        return [
            f"CREATE TRIGGER {no_update} BEFORE UPDATE ON {table} WHEN ({changed}) AND NOT {open_guard} "
            f"BEGIN {refuse}; END",
            f"CREATE TRIGGER {no_delete} BEFORE DELETE ON {table} WHEN NOT {open_guard} BEGIN {refuse}; END",
        ]
    changed = " OR ".join(f'NEW."{name}" IS DISTINCT FROM OLD."{name}"' for name in columns)
    return [
        f"CREATE OR REPLACE FUNCTION {no_update}() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
        f"IF ({changed}) AND NOT {open_guard} THEN "
        f"RAISE EXCEPTION '{table} is append-only' USING ERRCODE = 'integrity_constraint_violation'; END IF; "
        f"RETURN NEW; END $$",
        f"CREATE OR REPLACE FUNCTION {no_delete}() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
        f"IF NOT {open_guard} THEN "
        f"RAISE EXCEPTION '{table} is append-only' USING ERRCODE = 'integrity_constraint_violation'; END IF; "
        f"RETURN OLD; END $$",
        f"CREATE TRIGGER {no_update} BEFORE UPDATE ON {table} FOR EACH ROW EXECUTE FUNCTION {no_update}()",
        f"CREATE TRIGGER {no_delete} BEFORE DELETE ON {table} FOR EACH ROW EXECUTE FUNCTION {no_delete}()",
    ]


def remove_sql(connection: BaseDatabaseWrapper, protection: Protection) -> list[str]:
    """Return the statements that take a table's protection away."""
    names = trigger_names(protection.table)
    if connection.vendor == "sqlite":
        return [f"DROP TRIGGER IF EXISTS {name}" for name in names]
    return [f"DROP TRIGGER IF EXISTS {name} ON {protection.table}" for name in names] + [
        f"DROP FUNCTION IF EXISTS {name}()" for name in names
    ]


def installed_triggers(connection: BaseDatabaseWrapper) -> set[str]:
    """Return the names of all triggers in the database."""
    sql = (
        "SELECT name FROM sqlite_master WHERE type = 'trigger'"
        if connection.vendor == "sqlite"
        else "SELECT tgname FROM pg_trigger WHERE NOT tgisinternal"
    )
    with connection.cursor() as cursor:
        cursor.execute(sql)
        return {name for (name,) in cursor.fetchall()}


class Protect(Operation):
    """Migration operation: make a table append-only, with the columns that it has by now.

    On SQLite altering a table remakes it and drops its triggers without a word, and a new column is unprotected on
    either database: put ``Protect`` after every change of such a table. ``check_memory`` and a test look that the
    triggers stand.
    """

    reversible = True
    reduces_to_sql = True

    def __init__(self, table: str, free: tuple[str, ...] = (), guarded: bool = True) -> None:  # noqa: FBT001, FBT002
        self.protection = Protection(table, tuple(free), guarded)

    def deconstruct(self) -> tuple[str, list[object], dict[str, object]]:
        table, free, guarded = self.protection.table, self.protection.free, self.protection.guarded
        return self.__class__.__name__, [], {"table": table, "free": free, "guarded": guarded}

    def state_forwards(self, app_label: str, state: ProjectState) -> None:
        """Triggers are no part of the models' state."""

    def database_forwards(
        self,
        app_label: str,
        schema_editor: BaseDatabaseSchemaEditor,
        from_state: ProjectState,
        to_state: ProjectState,
    ) -> None:
        connection = schema_editor.connection
        for statement in [*remove_sql(connection, self.protection), *install_sql(connection, self.protection)]:
            schema_editor.execute(statement, params=None)

    def database_backwards(
        self,
        app_label: str,
        schema_editor: BaseDatabaseSchemaEditor,
        from_state: ProjectState,
        to_state: ProjectState,
    ) -> None:
        for statement in remove_sql(schema_editor.connection, self.protection):
            schema_editor.execute(statement, params=None)

    def describe(self) -> str:
        return f"Make {self.protection.table} append-only"
