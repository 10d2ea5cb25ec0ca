import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from memoryhub.inbox.queue import QueueScope, count_by_kind
from memoryhub.lib.database.fixed_sql import planned_cursor
from sessions_app.models import Workspace

pytestmark = pytest.mark.django_db


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
