"""Migration operations that create many tables, also of another app, and render the models once."""

from __future__ import annotations

from collections.abc import Sequence

from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.migrations.operations import CreateModel
from django.db.migrations.operations.base import Operation
from django.db.migrations.state import ProjectState

from memoryhub.lib.database.add_column import AddColumn


class InApp(Operation):
    """Run an operation in another app, for a migration that creates the tables of apps that refer to each other."""

    reversible = True
    reduces_to_sql = True

    def __init__(self, app_label: str, operation: CreateModel) -> None:
        self.app_label = app_label
        self.operation = operation

    def deconstruct(self) -> tuple[str, list[object], dict[str, object]]:
        return self.__class__.__name__, [self.app_label, self.operation], {}

    def state_forwards(self, app_label: str, state: ProjectState) -> None:  # noqa: ARG002
        self.operation.state_forwards(self.app_label, state)

    def database_forwards(
        self,
        app_label: str,  # noqa: ARG002
        schema_editor: BaseDatabaseSchemaEditor,
        from_state: ProjectState,
        to_state: ProjectState,
    ) -> None:
        self.operation.database_forwards(self.app_label, schema_editor, from_state, to_state)

    def database_backwards(
        self,
        app_label: str,  # noqa: ARG002
        schema_editor: BaseDatabaseSchemaEditor,
        from_state: ProjectState,
        to_state: ProjectState,
    ) -> None:
        self.operation.database_backwards(self.app_label, schema_editor, from_state, to_state)

    def describe(self) -> str:
        return self.operation.describe()


class RenderOnce(Operation):
    """Run several ``CreateModel`` or ``AddColumn`` operations, and render the models of the state once for them.

    One after the other, each renders every related model again: two thirds of the time that the first migrations
    take. ``AddField`` is not possible here: on SQLite, it may need the model as it was before the next operation.
    """

    reversible = True
    reduces_to_sql = True

    def __init__(self, operations: Sequence[CreateModel | AddColumn | InApp]) -> None:
        self.operations = operations

    def deconstruct(self) -> tuple[str, list[object], dict[str, object]]:
        return self.__class__.__name__, [self.operations], {}

    def state_forwards(self, app_label: str, state: ProjectState) -> None:
        state.__dict__.pop("apps", None)  # a cached property: rendered again on its next use
        for operation in self.operations:
            operation.state_forwards(app_label, state)

    def database_forwards(
        self,
        app_label: str,
        schema_editor: BaseDatabaseSchemaEditor,
        from_state: ProjectState,
        to_state: ProjectState,
    ) -> None:
        for operation in self.operations:
            operation.database_forwards(app_label, schema_editor, from_state, to_state)
        for statement in schema_editor.deferred_sql:
            schema_editor.execute(statement, params=None)
        schema_editor.deferred_sql.clear()  # Django then records the migration in the same transaction

    def database_backwards(
        self,
        app_label: str,
        schema_editor: BaseDatabaseSchemaEditor,
        from_state: ProjectState,
        to_state: ProjectState,
    ) -> None:
        for operation in reversed(self.operations):
            operation.database_backwards(app_label, schema_editor, from_state, to_state)

    def describe(self) -> str:
        return "; ".join(operation.describe() for operation in self.operations)
