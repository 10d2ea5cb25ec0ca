"""Fill, check, rebuild and optimise search indexes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from django.db import DatabaseError, transaction
from django.db.backends.base.base import BaseDatabaseWrapper

from memoryhub.lib.search import sqlite_index
from memoryhub.lib.search.indexes import GUARD_TABLE, Index, index_name, is_installed
from memoryhub.lib.search.operations import install_sql, remove_sql


@contextmanager
def bulk_indexing(connection: BaseDatabaseWrapper, table: str) -> Iterator[None]:
    """Run the block in a transaction and index the rows that it inserts into a table with one statement.

    On SQLite, the triggers would index row by row, which takes three times as long. The block must not update or
    delete the inserted rows.
    """
    if connection.vendor != "sqlite":
        with transaction.atomic():
            yield
        return
    with transaction.atomic(), connection.cursor() as cursor:
        last_id = f"SELECT %s, coalesce(max(id), 0) FROM {table}"
        cursor.execute(f"INSERT INTO {GUARD_TABLE} (indexed_table, last_id) {last_id}", [table])
        yield
        cursor.execute(sqlite_index.add_rows_sql(table))
        cursor.execute(f"DELETE FROM {GUARD_TABLE} WHERE indexed_table = %s", [table])


def rebuild(connection: BaseDatabaseWrapper, index: Index) -> None:
    """Rebuild an index from its rows in one transaction, creating whatever is missing."""
    with transaction.atomic(), connection.cursor() as cursor:
        if connection.vendor == "sqlite" and is_installed(connection, index.table):
            cursor.execute(sqlite_index.rebuild_sql(index.table))
            return
        for statement in [*remove_sql(connection, index.table), *install_sql(connection, index)]:
            cursor.execute(statement)


def optimize(connection: BaseDatabaseWrapper, index: Index) -> None:
    """Merge an index's segments, so that its pages contain nothing of deleted rows; only SQLite needs it."""
    if connection.vendor == "sqlite":
        with connection.cursor() as cursor:
            cursor.execute(sqlite_index.optimize_sql(index.table))


def index_problems(connection: BaseDatabaseWrapper, index: Index) -> list[str]:
    """Return descriptions of an index's problems; an empty list if it agrees with its rows. Reads the whole index."""
    if not is_installed(connection, index.table):
        return ["the search index or one of its triggers is missing: run rebuild_search"]
    if connection.vendor != "sqlite":
        return _postgres_problems(connection, index)
    try:
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute(sqlite_index.check_sql(index.table))
    except DatabaseError:
        return ["the search index disagrees with the rows: run rebuild_search"]
    return []


def _postgres_problems(connection: BaseDatabaseWrapper, index: Index) -> list[str]:
    """Check that the column is generated, so that it can't disagree with its row, and that the index is valid."""
    sql = """
        SELECT bool_and(a.attgenerated = 's'), bool_and(i.indisvalid AND i.indisready) FROM pg_attribute a, pg_index i
        WHERE a.attrelid = %s::regclass AND a.attname = 'words' AND i.indexrelid = %s::regclass"""
    with connection.cursor() as cursor:
        cursor.execute(sql, [index.table, index_name(index.table)])
        is_generated, is_valid = cursor.fetchone()
    return (
        []
        if is_generated and is_valid
        else ["the search index is not maintained by the database: run rebuild_search"]
    )
