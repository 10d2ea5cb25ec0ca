"""Reduce the schema of a copied SQLite database to what reading its tables needs.

Views, triggers, virtual tables, and the expressions of checks, generated columns and indexes are removed. None of a
hostile schema can then run, and a schema with functions that this SQLite doesn't have can be read: checks are parsed
even when only reading. https://www.sqlite.org/security.html
"""

from __future__ import annotations

import re
import sqlite3
from contextlib import suppress

_TOKEN = re.compile(
    r"""'(?:[^']|'')*' | "(?:[^"]|"")*" | `(?:[^`]|``)*` | \[[^\]]*\]
    | --[^\n]* | /\*.*?(?:\*/|\Z) | \w+ | \s+ | .""",
    re.VERBOSE | re.DOTALL,
)
_REPLACED = {"CHECK": "1", "AS": "NULL"}  # the expressions after these words
_PLAIN_INDEX = re.compile(r"[^()]*\([^()]*\)\s*")


def simplify_schema(connection: sqlite3.Connection) -> None:
    """Rewrite the schema of a private copy. Open a new connection afterwards. Raises sqlite3.Error."""
    with suppress(AttributeError):  # before Python 3.12; some builds protect the schema by default
        connection.setconfig(sqlite3.SQLITE_DBCONFIG_DEFENSIVE, False)  # type: ignore[attr-defined]  # noqa: FBT003
    connection.execute("PRAGMA trusted_schema = OFF")
    connection.execute("PRAGMA writable_schema = ON")  # also ignores what can't be parsed
    rows = connection.execute("SELECT rowid, type, rootpage, sql FROM sqlite_master").fetchall()
    version = int(connection.execute("PRAGMA schema_version").fetchone()[0])
    connection.execute("BEGIN IMMEDIATE")
    for place, kind, page, sql in rows:
        text = simplified(kind, sql) if page and isinstance(sql, str | None) else None
        if text is None:
            connection.execute("DELETE FROM sqlite_master WHERE rowid = ?", (place,))
        elif text != sql and sql is not None:
            connection.execute("UPDATE sqlite_master SET sql = ? WHERE rowid = ?", (text, place))
    connection.execute(f"PRAGMA schema_version = {version + 1}")
    connection.execute("COMMIT")


def simplified(kind: object, sql: str | None) -> str | None:
    """Return the statement of a table or index without expressions; None if it has to be removed.

    Indexes that SQLite makes for keys have no statement; theirs is "".
    """
    if kind == "index":
        return "" if sql is None else sql if _PLAIN_INDEX.fullmatch(sql) else None
    if kind != "table" or sql is None or sql.upper().startswith("CREATE VIRTUAL"):
        return None
    return without_expressions(sql)


def without_expressions(sql: str) -> str:
    """Return a CREATE TABLE statement with constants in place of the expressions of checks and generated columns."""
    found: list[str] = []
    word = ""  # the last one, if only space followed it
    depth = skipped_from = 0
    for match in _TOKEN.finditer(sql):
        token = match.group()
        if token == "(":  # noqa: S105
            depth += 1
            if not skipped_from and word in _REPLACED:
                skipped_from = depth
                found.append(f"({_REPLACED[word]})")
        if not skipped_from:
            found.append(token)
        if token == ")":  # noqa: S105
            skipped_from = 0 if skipped_from == depth else skipped_from
            depth -= 1
        if not token.isspace() and not token.startswith(("--", "/*")):
            word = token.upper()
    return "".join(found)
