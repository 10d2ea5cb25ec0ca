import pytest
from django.db import DatabaseError, connection, transaction
from django.test.utils import CaptureQueriesContext

from memoryhub.inbox.queue import QueueScope, count_by_kind
from memoryhub.lib.database.fixed_sql import planned_cursor
from memoryhub.lib.database.prepared import PreparedRows, among
from sessions_app.models import Workspace

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def plans_are_kept(db, monkeypatch):
    if connection.vendor == "postgresql":
        connection.ensure_connection()
        monkeypatch.setattr(connection.connection, "prepare_threshold", 3)


def planned() -> list[str]:
    with connection.cursor() as cursor:
        cursor.execute("SELECT statement FROM pg_prepared_statements")
        return [sql for (sql,) in cursor.fetchall()]


def test_a_planned_statement_takes_other_parameters_each_time(workspace):
    found = []
    for key in (workspace.pk, 0, workspace.pk, 0, workspace.pk):
        with planned_cursor() as cursor:
            cursor.execute("SELECT name FROM sessions_app_workspace WHERE id = %s", [key])
            found.append([name for (name,) in cursor.fetchall()])

    assert found == [["Atlas"], [], ["Atlas"], [], ["Atlas"]]


def test_a_planned_statement_is_among_the_captured_queries(workspace):
    with CaptureQueriesContext(connection) as asked, planned_cursor() as cursor:
        cursor.execute("SELECT %s", [1])

    assert len(asked) == 1


@pytest.mark.skipif(connection.vendor != "postgresql", reason="SQLite keeps prepared statements itself")
def test_postgresql_plans_the_inbox_once_for_a_connection(workspace):
    for _ in range(5):
        count_by_kind(QueueScope(Workspace.objects.filter(pk=workspace.pk)))

    assert len([sql for sql in planned() if sql.startswith("WITH shown_workspaces")]) == 1


def test_rows_can_be_read_again_after_an_error(workspace):
    with pytest.raises(DatabaseError), transaction.atomic(), planned_cursor() as cursor:
        cursor.execute("SELECT name FROM nowhere WHERE id = %s", [1])
    for _ in range(5):
        with planned_cursor() as cursor:
            cursor.execute("SELECT name FROM sessions_app_workspace WHERE id = %s", [workspace.pk])
            assert cursor.fetchall() == [("Atlas",)]


def test_keys_of_any_size_are_found_by_one_prepared_queryset(workspace):
    """PostgreSQL's driver gives small and large numbers different types."""
    Workspace.objects.bulk_create(Workspace(pk=pk, slug=f"w{pk}", name=f"w{pk}") for pk in (40_000, 3_000_000_000))
    by_key = PreparedRows(1, lambda keys: Workspace.objects.filter(pk__in=among(keys)).order_by("pk"))

    for _ in range(2):
        for keys in ([], [workspace.pk], [40_000], [3_000_000_000], [workspace.pk, 40_000, 3_000_000_000]):
            assert [one.pk for one in by_key.all(keys)] == keys
