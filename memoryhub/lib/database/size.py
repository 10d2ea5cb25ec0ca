from __future__ import annotations

from django.db import connection


def database_bytes() -> int:
    """Return the size of the database in bytes, without SQLite's write-ahead log."""
    with connection.cursor() as cursor:
        if connection.vendor == "sqlite":
            cursor.execute("SELECT page_count * page_size FROM pragma_page_count(), pragma_page_size()")
        else:
            cursor.execute("SELECT pg_database_size(current_database())")
        return int(cursor.fetchone()[0])
