"""Check and rebuild search indexes, each in one transaction."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from django.db import connection

from memoryhub.jobs.progress import Step, ignore_progress
from memoryhub.lib.search.index_maintenance import index_problems, rebuild
from memoryhub.lib.search.index_names import index_names
from memoryhub.lib.search.indexes import Index
from memoryhub.lib.search.operations import indexes


def rebuild_indexes(
    tables: Collection[str] = (), *, only_check: bool = False, step: Step = ignore_progress
) -> list[dict[str, Any]]:
    """Compare search indexes with their rows and rebuild them; return the problems of each index.

    ``tables``: the tables to rebuild, all by default. ``step`` receives progress in rows and may cancel between
    tables.
    """
    chosen = [index for index in indexes(connection) if not tables or index.table in tables]
    names, sizes = index_names(), [_size(index) for index in chosen]
    found = []
    for number, index in enumerate(chosen):
        step(sum(sizes[:number]), sum(sizes), names[index.table])
        wrong = index_problems(connection, index)
        if not only_check:
            rebuild(connection, index)
        found.append({"table": index.table, "faults": wrong, "rebuilt": not only_check})
    return found


def _size(index: Index) -> int:
    """Return the number of rows of an index, plus one so that an empty index counts as a step."""
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT count(*) FROM {connection.ops.quote_name(index.table)}")  # noqa: S608  our own names
        return int(cursor.fetchone()[0]) + 1
