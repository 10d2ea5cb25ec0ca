"""Database triggers that make tables append-only on SQLite and PostgreSQL.

Deleting or replacing a row, truncating the table and updating a protected column fail unless the guard table contains
a row. Code that may remove rows inserts one and deletes it in the same transaction, so that other connections never
see it.
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
    """A table to protect. ``free``: columns that may change. ``guarded``: whether the guard table lifts it."""

    table: str
    free: tuple[str, ...] = ()
    guarded: bool = True


def trigger_names(table: str, vendor: str) -> tuple[str, str, str]:
    """Return the names of the triggers on update, on delete, and on other statements that delete rows."""
    return f"{table}_no_update", f"{table}_no_delete", f"{table}_no_{'replace' if vendor == 'sqlite' else 'truncate'}"


def _columns(connection: BaseDatabaseWrapper, protection: Protection) -> list[str]:
    generated = "SELECT attname FROM pg_attribute WHERE attrelid = %s::regclass AND attgenerated <> ''"
    with connection.cursor() as cursor:
        described = connection.introspection.get_table_description(cursor, protection.table)
        if connection.vendor == "postgresql":
            cursor.execute(generated, [protection.table])  # these have no value yet in a BEFORE trigger
            generated_columns = {name for (name,) in cursor.fetchall()}
        else:
            generated_columns = set()
    return [column.name for column in described if column.name not in generated_columns.union(protection.free)]


def install_sql(connection: BaseDatabaseWrapper, protection: Protection) -> list[str]:
    """Return the SQL statements that protect a table's current columns."""
    table = protection.table
    no_update, no_delete, no_other = trigger_names(table, connection.vendor)
    open_guard = f"EXISTS (SELECT 1 FROM {GUARD_TABLE})" if protection.guarded else "FALSE"
    columns = _columns(connection, protection)
    if connection.vendor == "sqlite":
        refuse = f"SELECT RAISE(ABORT, '{table} is append-only')"
        changed = " OR ".join(f'NEW."{name}" IS NOT OLD."{name}"' for name in columns)
        return [
            f"CREATE TRIGGER {no_update} BEFORE UPDATE ON {table} WHEN ({changed}) AND NOT {open_guard} "
            f"BEGIN {refuse}; END",
            f"CREATE TRIGGER {no_delete} BEFORE DELETE ON {table} WHEN NOT {open_guard} BEGIN {refuse}; END",
            f"CREATE TRIGGER {no_other} BEFORE INSERT ON {table} WHEN ({_conflicts(connection, table)}) "
            f"AND NOT {open_guard} BEGIN {refuse}; END",
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
        f"CREATE TRIGGER {no_other} BEFORE TRUNCATE ON {table} FOR EACH STATEMENT EXECUTE FUNCTION {no_delete}()",
    ]


def _conflicts(connection: BaseDatabaseWrapper, table: str) -> str:
    """Return an SQLite condition: a row that NEW would replace exists.

    INSERT OR REPLACE doesn't fire delete triggers unless the connection has set ``recursive_triggers``. Partial
    unique indexes are left out.
    """
    with connection.cursor() as cursor:
        cursor.execute(f'SELECT name FROM pragma_index_list("{table}") WHERE "unique" AND NOT partial')
        indexes = [name for (name,) in cursor.fetchall()]
        keys = [["rowid"]]
        for index in indexes:
            cursor.execute(f'SELECT name FROM pragma_index_info("{index}")')
            keys.append([name for (name,) in cursor.fetchall()])
    same = [" AND ".join(f'"{name}" = NEW."{name}"' for name in key) for key in keys if None not in key]
    return " OR ".join(f"EXISTS (SELECT 1 FROM {table} WHERE {condition})" for condition in same)


def remove_sql(connection: BaseDatabaseWrapper, protection: Protection) -> list[str]:
    """Return the SQL statements that remove a table's protection."""
    names = trigger_names(protection.table, connection.vendor)
    if connection.vendor == "sqlite":
        return [f"DROP TRIGGER IF EXISTS {name}" for name in names]
    return [f"DROP TRIGGER IF EXISTS {name} ON {protection.table}" for name in names] + [
        f"DROP FUNCTION IF EXISTS {name}()" for name in names[:2]
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
    """Migration operation that makes a table's current columns append-only.

    Repeat it after every change to such a table: SQLite drops the triggers when it recreates an altered table, and
    new columns are unprotected on both databases. ``check_memory`` and a test check that the triggers exist.
    """

    reversible = True
    reduces_to_sql = True

    def __init__(self, table: str, free: tuple[str, ...] = (), guarded: bool = True) -> None:  # noqa: FBT001, FBT002
        self.protection = Protection(table, tuple(free), guarded)

    def deconstruct(self) -> tuple[str, list[object], dict[str, object]]:
        table, free, guarded = self.protection.table, self.protection.free, self.protection.guarded
        return self.__class__.__name__, [], {"table": table, "free": free, "guarded": guarded}

    def state_forwards(self, app_label: str, state: ProjectState) -> None:
        """Do nothing: triggers aren't part of the model state."""

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
