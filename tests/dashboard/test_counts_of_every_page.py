"""The queries that every page runs read indexes, whose cost hardly grows with a workspace."""

import pytest
from django.db import connection
from django.utils import timezone

from memoryhub.dashboard.navigation import COUNTED
from memoryhub.inbox import sources
from memoryhub.memory.filters import Matches, MemoryFilters
from sessions_app.models import Session, Workspace

pytestmark = [
    pytest.mark.django_db,
    pytest.mark.skipif(connection.vendor != "sqlite", reason="PostgreSQL reads small tables as a whole"),
]
READ_IN_TABLE = {"held_row_total", "key_value_total"}  # parts that stay small


def test_sessions_over_their_limits_are_found_by_two_indexes(workspace):
    own = Workspace.objects.filter(pk=workspace.pk)

    for rows in (sources.over_budget(own, timezone.now()), Session.objects.filter(workspace__in=own).over_limits()):
        plan = rows.explain()
        assert "session_by_context (workspace_id=? AND <expr>>?)" in plan
        assert "session_by_active_entries (workspace_id=? AND active_entry_count>?)" in plan


@pytest.mark.parametrize("part", sorted(COUNTED.keys() - READ_IN_TABLE))
def test_parts_are_counted_in_indexes(workspace, part):
    model, condition = COUNTED[part]
    table = model._meta.db_table
    with connection.cursor() as cursor:
        cursor.execute(
            f"EXPLAIN QUERY PLAN SELECT count(*) FROM {table} WHERE {table}.workspace_id = %s {condition}",
            [workspace.pk],
        )
        plan = [row[3] for row in cursor.fetchall()]

    assert "COVERING INDEX" in plan[0]


@pytest.mark.parametrize("kind", ["knowledge", "observation", "history"])
def test_the_newest_rows_are_read_from_an_index(workspace, kind):
    rows = Matches(workspace, MemoryFilters(), timezone.now()).by_kind[kind]

    plan = rows.order_by("-sorted_by", "-pk").values_list("sorted_by", "pk")[:50].explain()

    assert f"{kind}_newest (workspace_id=?)" in plan
    assert "TEMP B-TREE" not in plan
