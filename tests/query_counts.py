"""Count queries, also of code that limits the time of some of them."""

from __future__ import annotations

from collections.abc import Iterable

from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

LIMITS = ("SAVEPOINT", "RELEASE SAVEPOINT", "SELECT current_setting(", "SELECT set_config(")


def queries_apart_from_limits(captured: Iterable[dict[str, str]]) -> list[str]:
    """Return the SQL of captured queries, without PostgreSQL's statements that set a time limit."""
    return [one["sql"] for one in captured if not one["sql"].startswith(LIMITS)]


def count_queries(client: Client, url: str) -> int:
    """Return the number of queries that a page takes."""
    with CaptureQueriesContext(connection) as captured:
        assert client.get(url).status_code == 200
    return len(captured)
