"""The search page offers the kinds that its workspace has rows of."""

from datetime import UTC, datetime

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from bench.bulk_rows import insert_plain
from memoryhub.search.views.search_params import used_kinds
from sessions_app.models import Workspace
from tests.hub import open_at
from tests.searches import say

pytestmark = pytest.mark.django_db


def test_only_kinds_with_rows_are_offered(workspace):
    assert used_kinds(workspace) == set()
    say(workspace, "The crane is down.")
    assert used_kinds(workspace) == {"entry", "session"}


@pytest.mark.skipif(connection.vendor != "postgresql", reason="of PostgreSQL's plans")
def test_an_empty_workspace_does_not_make_postgresql_read_all_rows(workspace):
    other = Workspace.objects.create(slug="other", name="Other")
    session = open_at(other)
    at = datetime(2026, 3, 1, tzinfo=UTC)
    insert_plain((other.pk, session.pk, place, "", "The crane is down.", 4, at) for place in range(20_000))
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE sessions_app_entry")

    with CaptureQueriesContext(connection) as asked:
        assert used_kinds(workspace) == set()
    [sql] = [query["sql"] for query in asked]
    with connection.cursor() as cursor:
        cursor.execute(f"EXPLAIN {sql}")
        plan = "\n".join(row[0] for row in cursor.fetchall())

    assert "Seq Scan on sessions_app_entry" not in plan
