"""Search indexes on SQLite: external-content FTS5 tables over a view, maintained by triggers (sqlite.org/fts5.html).

They use plain SQL without custom functions, so that any program that writes to the database maintains them.
"""

from __future__ import annotations

import string
import unicodedata
from collections.abc import Iterable, Mapping

from memoryhub.lib.search.indexes import (
    GUARD_TABLE,
    INDEXED_CHARS,
    PAIRED_CHARS,
    Index,
    batch_name,
    index_name,
    source_name,
    trigger_names,
)
from memoryhub.lib.search.tokenizing import EMOJI_PREFIX, EMOJI_RANGES, INVISIBLE_RANGES

WEIGHTS = "1.0, 0.5, 1.0, 0.0"  # of the columns, for bm25()
COLUMNS = "content, parts, meta, scope"
FIRST_PAIRED = 0x590  # Hebrew; pairs of other characters above it do no harm
# Characters that tokenizing.fold() replaces or removes, and that the tokenizer keeps or splits words at.
ACCENTED = "ΆΈΉΊΌΎΏΐΪΫάέήίΰϊϋόύώ" + "ЀЁЃЇЌЍЎЙйѐёѓїќѝў"
LIGATURES = {"ß": "ss", "ẞ": "SS", "ﬀ": "ff", "ﬁ": "fi", "ﬂ": "fl", "ﬃ": "ffi", "ﬄ": "ffl", "ﬅ": "st", "ﬆ": "st"}
DOTLESS = {"ı": "i"}
INVISIBLE = "".join(chr(code) for first, last in INVISIBLE_RANGES for code in range(first, last + 1))
STEP = 10  # characters replaced by one expression
ARABIC_MARKS = (0x640, *range(0x64B, 0x653), 0x670)
MONTHS = (
    "January  February March    April    May      June     July     August   SeptemberOctober  November December "
)
DAYS = "Sunday   Monday   Tuesday  WednesdayThursday Friday   Saturday "


def install_sql(index: Index) -> list[str]:
    """Return the SQL statements that create an index and fill it from existing rows."""
    table, view = index.table, source_name(index.table)
    return [
        f"CREATE VIRTUAL TABLE {index_name(table)} USING fts5({COLUMNS}, content='{view}', content_rowid='id', "
        "tokenize='porter unicode61 remove_diacritics 2')",
        *_maintenance_sql(index),
        rebuild_sql(table),
    ]


def replace_views_sql(index: Index) -> list[str]:
    """Return the SQL statements that replace an index's views and triggers; what it contains must agree with them."""
    return [*_remove_maintenance_sql(index.table), *_maintenance_sql(index)]


def _maintenance_sql(index: Index) -> list[str]:
    table, fts, view = index.table, index_name(index.table), source_name(index.table)
    new, old, gone, changed = trigger_names(table)
    is_open = f"NOT EXISTS (SELECT 1 FROM {GUARD_TABLE} WHERE indexed_table = '{table}')"
    add = f"INSERT INTO {fts}(rowid, {COLUMNS}) SELECT id, {COLUMNS} FROM {view} WHERE id = NEW.id"
    drop = f"INSERT INTO {fts}({fts}, rowid, {COLUMNS}) SELECT 'delete', id, {COLUMNS} FROM {view} WHERE id = OLD.id"
    updated = ", ".join(f'"{name}"' for name in index.columns)
    return [
        f"CREATE VIEW {view} AS {_source(index, _rows(index))}",
        f"CREATE VIEW {batch_name(table)} AS {_source(index, _batch(index))}",
        f"CREATE TRIGGER {new} AFTER INSERT ON {table} WHEN {is_open} BEGIN {add}; END",
        f"CREATE TRIGGER {old} BEFORE DELETE ON {table} BEGIN {drop}; END",
        f"CREATE TRIGGER {gone} BEFORE UPDATE OF {updated} ON {table} BEGIN {drop}; END",
        f"CREATE TRIGGER {changed} AFTER UPDATE OF {updated} ON {table} BEGIN {add}; END",
    ]


def remove_sql(table: str) -> list[str]:
    """Return the SQL statements that drop an index."""
    return [*_remove_maintenance_sql(table), f"DROP TABLE IF EXISTS {index_name(table)}"]


def _remove_maintenance_sql(table: str) -> list[str]:
    return [
        *[f"DROP TRIGGER IF EXISTS {name}" for name in trigger_names(table)],
        f"DROP VIEW IF EXISTS {source_name(table)}",
        f"DROP VIEW IF EXISTS {batch_name(table)}",
    ]


def rebuild_sql(table: str) -> str:
    return f"INSERT INTO {index_name(table)}({index_name(table)}) VALUES ('rebuild')"


def optimize_sql(table: str) -> str:
    return f"INSERT INTO {index_name(table)}({index_name(table)}) VALUES ('optimize')"


def check_sql(table: str) -> str:
    """Return an SQL statement that fails if the index disagrees with its rows."""
    return f"INSERT INTO {index_name(table)}({index_name(table)}, rank) VALUES ('integrity-check', 1)"


def add_rows_sql(table: str) -> str:
    """Return the SQL statement that indexes all rows above the key in the guard table."""
    return f"INSERT INTO {index_name(table)}(rowid, {COLUMNS}) SELECT id, {COLUMNS} FROM {batch_name(table)}"


def _rows(index: Index) -> str:
    """Return the FROM clause for all indexed rows."""
    return f"{index.table} WHERE NOT ({index.hidden_sql})" if index.hidden_sql else index.table


def _batch(index: Index) -> str:
    """Return the FROM clause for rows above the key in the guard table.

    LIMIT -1 prevents SQLite from flattening the subquery, which would evaluate each text several times.
    """
    shown = f" AND NOT ({index.hidden_sql})" if index.hidden_sql else ""
    last_id = f"SELECT last_id FROM {GUARD_TABLE} WHERE indexed_table = '{index.table}'"
    return f"{index.table} WHERE id > ({last_id}){shown} LIMIT -1"


def _source(index: Index, rows: str) -> str:
    inner = [  # its ı is replaced before _parts, which folds nothing
        "id",
        f"substr({_nested(_joined(index.text_sql(name) for name in index.content), DOTLESS)}, 1, {INDEXED_CHARS})"
        " AS content",
        f"{_joined([*(index.text_sql(name) for name in index.meta), *_date(index.time)])} AS meta",
        f"{_scope(index)} AS scope",
    ]
    whole = f"SELECT {', '.join(inner)} FROM {rows}"
    bare = f"{_bare('content')} AS content, {_parts('content')} AS parts, {_bare('meta')} AS meta"
    return f"SELECT id, {bare}, scope FROM ({whole})"


def _bare(text: str) -> str:
    """Return the SQL expression for a text with the characters folded that the tokenizer doesn't fold."""
    bases = {letter: unicodedata.normalize("NFD", letter)[0] for letter in ACCENTED}
    folded = bases | LIGATURES | DOTLESS | dict.fromkeys(INVISIBLE, "")
    is_plain = f"length({text}) = length(CAST({text} AS BLOB))"
    return f"CASE WHEN {is_plain} THEN {text} ELSE {_replaced(text, folded)} END"


def _replaced(text: str, replacements: Mapping[str, str]) -> str:
    """Return the SQL expression that replaces characters, in steps because SQLite limits the depth of calls."""
    items = list(replacements.items())
    steps = [f"step0(text) AS (SELECT {text})"]
    for number, first in enumerate(range(0, len(items), STEP)):
        replaced = _nested("text", dict(items[first : first + STEP]))
        steps.append(f"step{number + 1}(text) AS (SELECT {replaced} FROM step{number})")
    return f"(WITH {', '.join(steps)} SELECT text FROM step{len(steps) - 1})"


def _nested(text: str, replacements: Mapping[str, str]) -> str:
    for old, new in replacements.items():
        text = f"replace({text}, '{old}', '{new}')"
    return text


def _joined(parts: Iterable[str]) -> str:
    return " || char(10) || ".join(parts) or "''"


def _scope(index: Index) -> str:
    words = [f"'z{letter}' || coalesce(\"{column}\", 0)" for letter, column in index.scope.items()]
    words += [f"'zk' || replace(\"{index.kind}\", '_', '')"] if index.kind else []
    return " || ' ' || ".join(words)


def _date(column: str) -> list[str]:
    """Return the SQL expression for a date as words: 9 November 2025 Sunday 2025-11-09. Times are ISO text."""
    if not column:
        return []
    number, iso = f'CAST(substr("{column}", 9, 2) AS INTEGER)', f'substr("{column}", 1, 10)'
    month = f"trim(substr('{MONTHS}', 9 * substr(\"{column}\", 6, 2) - 8, 9))"
    day = f"trim(substr('{DAYS}', 9 * strftime('%w', \"{column}\") + 1, 9))"
    words = f"{number} || ' ' || {month} || ' ' || substr({iso}, 1, 4) || ' ' || {day} || ' ' || {iso}"
    return [f"coalesce({words}, '')"]


def _parts(text: str) -> str:
    """Return the SQL expression for the parts of words, guarded by tests that are cheap for plain text."""
    split = text
    for letter in string.ascii_uppercase:
        split = f"replace({split}, '{letter}', ' {letter}')"
    is_plain = f"length({text}) = length(CAST({text} AS BLOB))"
    has_paired = f"{text} GLOB '*[{chr(FIRST_PAIRED)}-{chr(0x10FFFF)}]*'"
    camel = f"CASE WHEN {text} GLOB '*[a-z][A-Z]*' THEN {split} ELSE '' END"
    return f"{camel} || CASE WHEN {is_plain} THEN '' WHEN {has_paired} THEN {_pairs(text)} ELSE '' END"


def _pairs(text: str) -> str:
    """Return the SQL expression for all pairs of adjacent characters and the words of emoji.

    In chunks of 128, so that its time is linear.
    """
    bare = _replaced(text, dict.fromkeys([*map(chr, ARABIC_MARKS), *INVISIBLE], ""))
    code = "unicode(substr(piece, n, 1))"
    is_emoji = " OR ".join(f"{code} BETWEEN {first} AND {last}" for first, last in EMOJI_RANGES)
    return f"""' ' || (
        WITH RECURSIVE chunk(piece, rest) AS (
            SELECT '', substr({bare}, 1, {PAIRED_CHARS})
            UNION ALL SELECT substr(rest, 1, 129), substr(rest, 129) FROM chunk WHERE rest <> ''),
        place(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM place WHERE n < 128)
        SELECT coalesce(group_concat(
            CASE WHEN {is_emoji} THEN '{EMOJI_PREFIX}' || {code}
            ELSE substr(piece, n, 1 + (unicode(substr(piece, n + 1, 1)) >= {FIRST_PAIRED})) END, ' '), '')
        FROM chunk, place WHERE n <= length(piece) AND {code} >= {FIRST_PAIRED})"""
