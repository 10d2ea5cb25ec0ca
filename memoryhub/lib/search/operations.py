"""Migration operations that make and drop search indexes, the same on SQLite and PostgreSQL."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache

from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.operations.base import Operation
from django.db.migrations.state import ProjectState

from memoryhub.lib.search import postgres_index, sqlite_index
from memoryhub.lib.search.indexes import Index


class CreateSearchFunctions(Operation):
    """What indexes on PostgreSQL are made by; nothing on SQLite. Stands before the first index."""

    reversible = True
    reduces_to_sql = True

    def state_forwards(self, app_label: str, state: ProjectState) -> None:
        """Functions are no part of the models' state."""

    def database_forwards(
        self,
        app_label: str,
        schema_editor: BaseDatabaseSchemaEditor,
        from_state: ProjectState,
        to_state: ProjectState,
    ) -> None:
        self._execute(schema_editor, [*postgres_index.REMOVED, *postgres_index.FUNCTIONS])

    def database_backwards(
        self,
        app_label: str,
        schema_editor: BaseDatabaseSchemaEditor,
        from_state: ProjectState,
        to_state: ProjectState,
    ) -> None:
        self._execute(schema_editor, postgres_index.REMOVED)

    def _execute(self, schema_editor: BaseDatabaseSchemaEditor, statements: Sequence[str]) -> None:
        if schema_editor.connection.vendor == "postgresql":
            for statement in statements:
                schema_editor.execute(statement, params=None)

    def describe(self) -> str:
        return "Create what search indexes are made by"


class CreateSearchIndex(Operation):
    """Index a table, and fill the index from the rows that are there.

    On SQLite altering a table remakes it, which drops the triggers that feed the index and stops at the view that it
    is read from: put ``DropSearchIndex`` before the change of such a table and this after it. PostgreSQL refuses to
    alter a column that an index is made of. ``check_memory`` and a test look that every index stands.
    """

    reversible = True
    reduces_to_sql = True

    def __init__(
        self,
        table: str,
        *,
        content: Sequence[str],
        meta: Sequence[str] = (),
        time: str = "",
        scope: Mapping[str, str] | None = None,
        kind: str = "",
        json: Sequence[str] = (),
        hidden_by: Mapping[str, str] | None = None,
    ) -> None:
        own = dict(scope or {"w": "workspace_id"})
        self.index = Index(table, tuple(content), tuple(meta), time, own, kind, tuple(json), dict(hidden_by or {}))

    def deconstruct(self) -> tuple[str, list[object], dict[str, object]]:
        index = self.index
        named: dict[str, object] = {
            "content": list(index.content),
            "meta": list(index.meta),
            "time": index.time,
            "scope": dict(index.scope),
            "kind": index.kind,
            "json": list(index.json),
            "hidden_by": dict(index.hidden_by),
        }
        return self.__class__.__name__, [index.table], named

    def state_forwards(self, app_label: str, state: ProjectState) -> None:
        """An index is no part of the models' state."""

    def database_forwards(
        self,
        app_label: str,
        schema_editor: BaseDatabaseSchemaEditor,
        from_state: ProjectState,
        to_state: ProjectState,
    ) -> None:
        for statement in [*remove_sql(schema_editor.connection, self.index.table), *self._install(schema_editor)]:
            schema_editor.execute(statement, params=None)

    def database_backwards(
        self,
        app_label: str,
        schema_editor: BaseDatabaseSchemaEditor,
        from_state: ProjectState,
        to_state: ProjectState,
    ) -> None:
        for statement in remove_sql(schema_editor.connection, self.index.table):
            schema_editor.execute(statement, params=None)

    def _install(self, schema_editor: BaseDatabaseSchemaEditor) -> list[str]:
        return install_sql(schema_editor.connection, self.index)

    def describe(self) -> str:
        return f"Index {self.index.table} for search"


class DropSearchIndex(CreateSearchIndex):
    """Take an index away before its table is altered; backwards it is made again."""

    def database_forwards(
        self,
        app_label: str,
        schema_editor: BaseDatabaseSchemaEditor,
        from_state: ProjectState,
        to_state: ProjectState,
    ) -> None:
        super().database_backwards(app_label, schema_editor, from_state, to_state)

    def database_backwards(
        self,
        app_label: str,
        schema_editor: BaseDatabaseSchemaEditor,
        from_state: ProjectState,
        to_state: ProjectState,
    ) -> None:
        super().database_forwards(app_label, schema_editor, from_state, to_state)

    def describe(self) -> str:
        return f"Drop the search index of {self.index.table}"


def install_sql(connection: BaseDatabaseWrapper, index: Index) -> list[str]:
    """Return the statements that make an index on a database."""
    install = sqlite_index.install_sql if connection.vendor == "sqlite" else postgres_index.install_sql
    return install(index)


def remove_sql(connection: BaseDatabaseWrapper, table: str) -> list[str]:
    """Return the statements that take a table's index away."""
    remove = sqlite_index.remove_sql if connection.vendor == "sqlite" else postgres_index.remove_sql
    return remove(table)


def indexes(connection: BaseDatabaseWrapper) -> list[Index]:  # noqa: ARG001  the same on every database
    """Return the indexes that the migrations end up with."""
    return list(_kept())


@cache
def _kept() -> tuple[Index, ...]:
    """Read the migrations once, since their files stay as they are."""
    loader = MigrationLoader(None)
    found: dict[str, Index] = {}
    for key in sorted(loader.disk_migrations):
        for operation in loader.disk_migrations[key].operations:
            if isinstance(operation, DropSearchIndex):
                found.pop(operation.index.table, None)
            elif isinstance(operation, CreateSearchIndex):
                found[operation.index.table] = operation.index
    return tuple(found.values())
