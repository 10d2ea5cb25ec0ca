"""Migration operations that create and drop search indexes on SQLite and PostgreSQL."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache

from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.operations.base import Operation
from django.db.migrations.state import ProjectState

from memoryhub.lib.search import postgres_index, sqlite_index
from memoryhub.lib.search.indexes import Index


class CreateSearchFunctions(Operation):
    """Create the functions and the text search configuration that PostgreSQL indexes use; does nothing on SQLite.

    Must come before the first CreateSearchIndex.
    """

    reversible = True
    reduces_to_sql = True

    def state_forwards(self, app_label: str, state: ProjectState) -> None:
        """Do nothing: functions aren't part of the model state."""

    def database_forwards(
        self,
        app_label: str,
        schema_editor: BaseDatabaseSchemaEditor,
        from_state: ProjectState,
        to_state: ProjectState,
    ) -> None:
        self._execute(
            schema_editor, [*postgres_index.REMOVED, *postgres_index.TEXT_SEARCH, *postgres_index.FUNCTIONS]
        )

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
        return "Create the functions for search indexes"


class ReplaceSearchFunctions(CreateSearchFunctions):
    """Replace the functions with the current ones; RebuildSearchIndex must follow for each index.

    Backwards, nothing happens: the new functions also serve older indexes.
    """

    def database_forwards(
        self,
        app_label: str,
        schema_editor: BaseDatabaseSchemaEditor,
        from_state: ProjectState,
        to_state: ProjectState,
    ) -> None:
        self._execute(schema_editor, postgres_index.FUNCTIONS)

    def database_backwards(
        self,
        app_label: str,
        schema_editor: BaseDatabaseSchemaEditor,
        from_state: ProjectState,
        to_state: ProjectState,
    ) -> None:
        """Do nothing."""

    def describe(self) -> str:
        return "Replace the functions for search indexes"


class CreateSearchIndex(Operation):
    """Create a table's search index and fill it from existing rows.

    To alter an indexed table, put ``DropSearchIndex`` before the change and this operation after it: SQLite recreates
    an altered table, which drops its triggers and fails because of the index's view, and PostgreSQL doesn't alter a
    column that a generated column depends on. ``check_memory`` and a test check that every index exists.
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
        hidden_if: Sequence[str] = (),
    ) -> None:
        own, flags = dict(scope or {"w": "workspace_id"}), dict(hidden_by or {})
        self.index = Index(table, tuple(content), tuple(meta), time, own, kind, tuple(json), flags, tuple(hidden_if))

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
            "hidden_if": list(index.hidden_if),
        }
        return self.__class__.__name__, [index.table], named

    def state_forwards(self, app_label: str, state: ProjectState) -> None:
        """Do nothing: search indexes aren't part of the model state."""

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


class RebuildSearchIndex(CreateSearchIndex):
    """Create a search index again after a change to what indexes contain; backwards, the new one stays."""

    def database_backwards(
        self,
        app_label: str,
        schema_editor: BaseDatabaseSchemaEditor,
        from_state: ProjectState,
        to_state: ProjectState,
    ) -> None:
        """Do nothing."""

    def describe(self) -> str:
        return f"Rebuild the search index of {self.index.table}"


class HideFromSearchIndex(RebuildSearchIndex):
    """Leave rows out of an index by flags that no row has yet.

    SQLite keeps what the index contains. PostgreSQL computes its column again, since the expression changes.
    """

    def database_forwards(
        self,
        app_label: str,
        schema_editor: BaseDatabaseSchemaEditor,
        from_state: ProjectState,
        to_state: ProjectState,
    ) -> None:
        if schema_editor.connection.vendor != "sqlite":
            super().database_forwards(app_label, schema_editor, from_state, to_state)
            return
        self._replace_views(schema_editor, self.index)

    def database_backwards(
        self,
        app_label: str,
        schema_editor: BaseDatabaseSchemaEditor,
        from_state: ProjectState,
        to_state: ProjectState,
    ) -> None:
        whole = replace(self.index, hidden_if=())
        if schema_editor.connection.vendor == "sqlite":
            self._replace_views(schema_editor, whole)
            return
        for statement in [*postgres_index.remove_sql(whole.table), *postgres_index.install_sql(whole)]:
            schema_editor.execute(statement, params=None)

    def _replace_views(self, schema_editor: BaseDatabaseSchemaEditor, index: Index) -> None:
        for statement in sqlite_index.replace_views_sql(index):
            schema_editor.execute(statement, params=None)

    def describe(self) -> str:
        return f"Leave rows of {self.index.table} out of the search index"


class DropSearchIndex(CreateSearchIndex):
    """Drop a search index before its table is altered; backwards, create it."""

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
    """Return the SQL statements that create an index."""
    install = sqlite_index.install_sql if connection.vendor == "sqlite" else postgres_index.install_sql
    return install(index)


def remove_sql(connection: BaseDatabaseWrapper, table: str) -> list[str]:
    """Return the SQL statements that drop a table's index."""
    remove = sqlite_index.remove_sql if connection.vendor == "sqlite" else postgres_index.remove_sql
    return remove(table)


def indexes(connection: BaseDatabaseWrapper) -> list[Index]:  # noqa: ARG001  the same on every database
    """Return the indexes that exist after all migrations."""
    return list(_final_indexes())


@cache
def _final_indexes() -> tuple[Index, ...]:
    loader = MigrationLoader(None)
    by_table: dict[str, Index] = {}
    for key in sorted(loader.disk_migrations):
        for operation in loader.disk_migrations[key].operations:
            if isinstance(operation, DropSearchIndex):
                by_table.pop(operation.index.table, None)
            elif isinstance(operation, CreateSearchIndex):
                by_table[operation.index.table] = operation.index
    return tuple(by_table.values())
