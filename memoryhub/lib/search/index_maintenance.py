"""Keeping the indexes: adding many rows at once, and comparing, rebuilding or packing what is there."""

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
    """Index all rows that this block inserts into a table by one statement at its end, in one transaction.

    On SQLite triggers index row by row, which takes three times as long; PostgreSQL needs nothing. The block may
    insert rows, and neither change nor delete any of those. What breaks it off leaves neither rows nor words.
    """
    if connection.vendor != "sqlite":
        with transaction.atomic():
            yield
        return
    with transaction.atomic(), connection.cursor() as cursor:
        last = f"SELECT %s, coalesce(max(id), 0) FROM {table}"
        cursor.execute(f"INSERT INTO {GUARD_TABLE} (indexed_table, last_id) {last}", [table])
        yield
        cursor.execute(sqlite_index.add_rows_sql(table))
        cursor.execute(f"DELETE FROM {GUARD_TABLE} WHERE indexed_table = %s", [table])


def rebuild(connection: BaseDatabaseWrapper, index: Index) -> None:
    """Make an index anew from the rows; one that is missing or half there comes back. One transaction."""
    with transaction.atomic(), connection.cursor() as cursor:
        if connection.vendor == "sqlite" and is_installed(connection, index.table):
            cursor.execute(sqlite_index.rebuild_sql(index.table))
            return
        for statement in [*remove_sql(connection, index.table), *install_sql(connection, index)]:
            cursor.execute(statement)


def pack(connection: BaseDatabaseWrapper, index: Index) -> None:
    """Merge an index into one piece, so that nothing of removed rows is left in its pages; only SQLite keeps any."""
    if connection.vendor == "sqlite":
        with connection.cursor() as cursor:
            cursor.execute(sqlite_index.pack_sql(index.table))


def faults(connection: BaseDatabaseWrapper, index: Index) -> list[str]:
    """Return what is wrong with an index, in words; nothing where it agrees with its rows. Reads all of both."""
    if not is_installed(connection, index.table):
        return ["the search index, or what feeds it, is missing: run rebuild_search"]
    if connection.vendor != "sqlite":
        return _faults_of_postgres(connection, index)
    try:
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute(sqlite_index.check_sql(index.table))
    except DatabaseError:
        return ["the search index disagrees with the rows: run rebuild_search"]
    return []


def _faults_of_postgres(connection: BaseDatabaseWrapper, index: Index) -> list[str]:
    """The column can't disagree with its row: it is generated. What can be wrong is that it is none, or the index."""
    sql = """
        SELECT bool_and(a.attgenerated = 's'), bool_and(i.indisvalid AND i.indisready) FROM pg_attribute a, pg_index i
        WHERE a.attrelid = %s::regclass AND a.attname = 'words' AND i.indexrelid = %s::regclass"""
    with connection.cursor() as cursor:
        cursor.execute(sql, [index.table, index_name(index.table)])
        is_generated, is_valid = cursor.fetchone()
    return [] if is_generated and is_valid else ["the search index is not kept by the database: run rebuild_search"]
