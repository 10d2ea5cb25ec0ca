import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from tests.hub import add, open_at, turn

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize("name", ["sessions:list", "inbox"])
def test_no_statement_is_run_twice_for_one_page(workspace, viewer_client, name):
    add(open_at(workspace, "cli:main"), turn(0))
    url = reverse(name, args=[workspace.slug])
    viewer_client.get(url)

    with CaptureQueriesContext(connection) as queries:
        assert viewer_client.get(url).status_code == 200

    roles = 'SELECT "sessions_app_membership"."role"'  # each check of a role reads it
    statements = [sql for one in queries.captured_queries if not (sql := one["sql"]).startswith(roles)]
    assert len(set(statements)) == len(statements)
