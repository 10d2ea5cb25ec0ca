"""Asking a table's index, in SQLite's terms or PostgreSQL's: which rows fit, how many, and the best of them.

What a person typed only ever becomes quoted words, never syntax; the scope is put beside it by the hub.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import Any

from django.db import DatabaseError, OperationalError, transaction
from django.db.backends.base.base import BaseDatabaseWrapper
from django.utils.translation import gettext

from memoryhub.lib.errors import LimitExceeded
from memoryhub.lib.search.indexes import index_name
from memoryhub.lib.search.postgres_index import COLUMN, CONFIGURATION
from memoryhub.lib.search.query import Term
from memoryhub.lib.search.sqlite_index import WEIGHTS
from memoryhub.lib.search.tokenizing import is_paired, pairs_of

CANDIDATES = 150  # of a table, ranked by the database
COMPARED = 5_000  # rows among which PostgreSQL chooses them
COUNTED = 5_000  # rows up to which a word is counted one by one
NOWHERE = "none"  # the key of a scope without any: an empty one would stand for everything
_WORDS = "{content parts meta}"


class SearchTooSlow(LimitExceeded):
    """The time that a search may take ran out."""

    code = "search_too_slow"


@dataclass(frozen=True)
class Wanted:
    """What is asked of one table's index: any of ``terms``, one of each group in ``required``, none of ``excluded``.

    ``scope``: by its letter, the keys of which a row has to have one; ``kinds``: the same for the kind's word.
    """

    table: str
    terms: tuple[Term, ...] = ()
    required: tuple[tuple[Term, ...], ...] = ()
    excluded: tuple[Term, ...] = ()
    scope: Mapping[str, Sequence[int]] = field(default_factory=dict)
    kinds: tuple[str, ...] = ()

    @property
    def groups(self) -> list[tuple[Term, ...]]:
        """Return the groups of which each has to be there; beside what is required, words only rank."""
        asked = tuple(term for group in self.required for term in group)
        if self.required and self.terms:
            return [*self.required, (*self.terms, *asked)]
        return [*self.required, *([self.terms] if self.terms else [])]


Sql = tuple[str, list[Any]]


def condition(connection: BaseDatabaseWrapper, wanted: Wanted) -> Sql:
    """Return the condition that a row of ``<table>_words`` (SQLite) or of the table itself as ``e`` fits."""
    if connection.vendor == "sqlite":
        return f"{index_name(wanted.table)} MATCH %s", [_fts_match(wanted)]
    expression, params = _tsquery(wanted)
    return f"e.{COLUMN} @@ ({expression})", params


def ids_sql(connection: BaseDatabaseWrapper, wanted: Wanted, *, limit: int | None = None, least: int = 0) -> Sql:
    """Return a query for the primary keys, from ``least`` on, of all rows that fit, or of the newest ``limit``."""
    where, params = condition(connection, wanted)
    key = "rowid" if connection.vendor == "sqlite" else "e.id"
    name = index_name(wanted.table) if connection.vendor == "sqlite" else f"{wanted.table} e"
    since = f" AND {key} >= {least}" if least else ""
    newest = f" ORDER BY {key} DESC LIMIT {limit}" if limit else ""
    return f"SELECT {key} AS id FROM {name} WHERE {where}{since}{newest}", params


def rest_sql(connection: BaseDatabaseWrapper, wanted: Wanted) -> Sql:
    """Return a query for the primary keys of all rows that don't fit; PostgreSQL only."""
    where, params = condition(connection, wanted)
    return f"SELECT e.id FROM {wanted.table} e WHERE NOT ({where})", params


def best(
    connection: BaseDatabaseWrapper, wanted: Wanted, *, total: int, only: Sql | None = None, limit: int = CANDIDATES
) -> list[int]:
    """Return the primary keys of the rows that fit best by BM25, best first, at most ``limit``.

    ``total``: rows of the collection. ``only``: a condition on the row's key, which it calls ``e.id``.
    """
    sql, params = (_best_of_sqlite if connection.vendor == "sqlite" else _best_of_postgres)(
        wanted, total, only, limit
    )
    with connection.cursor() as cursor:
        cursor.execute(sql, params)
        return [row[0] for row in cursor.fetchall()]


def _best_of_sqlite(wanted: Wanted, _total: int, only: Sql | None, limit: int) -> Sql:
    name = index_name(wanted.table)
    extra, params = only or ("", [])
    extra = f" AND {extra.replace('e.id', f'{name}.rowid')}" if extra else ""
    order = f"bm25({name}, {WEIGHTS}), rowid DESC"
    sql = f"SELECT rowid FROM {name} WHERE {name} MATCH %s{extra} ORDER BY {order} LIMIT {limit}"
    return sql, [_fts_match(wanted), *params]


def _best_of_postgres(wanted: Wanted, total: int, only: Sql | None, limit: int) -> Sql:
    expression, params = _tsquery(wanted)
    extra, extra_params = only or ("", [])
    asked = {term for group in wanted.groups for term in group}
    words = " ".join(sorted({word for term in asked for text in term.words for word in _written(text)}))
    sql = f"""
        WITH fitting AS MATERIALIZED (
            SELECT e.id, e.{COLUMN} FROM {wanted.table} e WHERE e.{COLUMN} @@ ({expression})
            {f"AND {extra}" if extra else ""} LIMIT {COMPARED}),
        used AS MATERIALIZED (
            SELECT f.id, w.lexeme, coalesce(cardinality(w.positions), 1) AS count, length(f.{COLUMN}) AS length
            FROM fitting f, unnest(f.{COLUMN}) w
            WHERE w.lexeme = ANY (tsvector_to_array(to_tsvector('{CONFIGURATION}', %s)))),
        rarity AS (
            SELECT lexeme, ln(1 + greatest(0, %s - count(*) + 0.5) / (count(*) + 0.5)) AS idf
            FROM used GROUP BY lexeme),
        scored AS (
            SELECT u.id, sum(r.idf * u.count * 2.2 / (u.count + 1.2 * (0.25 + 0.75 * u.length
                / (SELECT avg(length({COLUMN})) FROM fitting)))) AS score
            FROM used u JOIN rarity r USING (lexeme) GROUP BY u.id)
        SELECT f.id FROM fitting f LEFT JOIN scored s USING (id)
        ORDER BY s.score DESC NULLS LAST, f.id DESC LIMIT {limit}"""
    return sql, [*params, *extra_params, words, total]


TermCount = tuple[int, int | None, int | None]


def count_terms(
    connection: BaseDatabaseWrapper, wanted: Sequence[Wanted], terms: Sequence[Term]
) -> list[list[TermCount]]:
    """Return for each table and term the rows of the scope that hold it, by one statement.

    How many there are, counted up to 5,000, and the first and the last key among those.
    """
    parts: list[str] = []
    params: list[Any] = []
    for one in wanted:
        for term in terms:
            where, own = condition(connection, Wanted(one.table, (term,), scope=one.scope, kinds=one.kinds))
            sqlite = connection.vendor == "sqlite"
            name, key = (index_name(one.table), "rowid") if sqlite else (f"{one.table} e", "e.id")
            found = f"SELECT {key} AS id FROM {name} WHERE {where} LIMIT {COUNTED}"
            parts.append(f"SELECT count(*), min(id), max(id) FROM ({found}) f")
            params += own
    if not parts:
        return [[] for _ in wanted]
    with connection.cursor() as cursor:
        cursor.execute(" UNION ALL ".join(parts), params)
        rows = cursor.fetchall()
    return [rows[start : start + len(terms)] for start in range(0, len(rows), len(terms))]


def estimate(counted: TermCount, *, total: int, first: int, last: int) -> int:
    """Return how many rows hold a term: as counted, or where counting stopped, by the share of keys it came through.

    ``total``, ``first``, ``last``: rows of the collection, and its first and last key.
    """
    count, low, high = counted
    if count < COUNTED or low is None or high is None:
        return min(count, total)
    return min(total, max(count, math.ceil(count * (last - first + 1) / (high - low + 1))))


@contextmanager
def within(connection: BaseDatabaseWrapper, milliseconds: int) -> Iterator[None]:
    """Stop the queries of this block once a time is over, on PostgreSQL each of them. Raises SearchTooSlow."""
    limited = _within_sqlite if connection.vendor == "sqlite" else _within_postgres
    yield from limited(connection, milliseconds)


def _within_postgres(connection: BaseDatabaseWrapper, milliseconds: int) -> Iterator[None]:
    is_inside = connection.in_atomic_block  # then a timeout may break no more than this block
    try:
        with transaction.atomic() if is_inside else nullcontext():
            _limit(connection, max(1, milliseconds))
            yield
            if is_inside:
                _limit(connection, 0)
    except OperationalError as error:
        if getattr(error.__cause__, "sqlstate", "") != "57014":
            raise
        raise SearchTooSlow(gettext("The search took too long.")) from error
    finally:
        if not is_inside:
            _limit(connection, 0)


def _limit(connection: BaseDatabaseWrapper, milliseconds: int) -> None:
    with connection.cursor() as cursor:
        cursor.execute(f"SET statement_timeout = {milliseconds}")


def _within_sqlite(connection: BaseDatabaseWrapper, milliseconds: int) -> Iterator[None]:
    connection.ensure_connection()
    raw = connection.connection
    end = time.monotonic() + milliseconds / 1000
    raw.set_progress_handler(lambda: time.monotonic() > end, 2_000)
    try:
        yield
    except DatabaseError as error:
        if "interrupted" not in str(error):
            raise
        raise SearchTooSlow(gettext("The search took too long.")) from error
    finally:
        raw.set_progress_handler(None, 0)


def _written(word: str) -> list[str]:
    """Return a word as the indexes hold it: of a paired script all pairs of it."""
    return pairs_of(word) if is_paired(word) else [word]


def _fts_match(wanted: Wanted) -> str:
    scope = [" OR ".join(f'"z{letter}{key}"' for key in keys or (NOWHERE,)) for letter, keys in wanted.scope.items()]
    scope += [" OR ".join(f'"zk{kind.replace("_", "")}"' for kind in wanted.kinds)] if wanted.kinds else []
    parts = [f"scope : ({words})" for words in scope]
    parts += [f"{_WORDS} : ({' OR '.join(map(_fts_term, group))})" for group in wanted.groups]
    match = " AND ".join(f"({part})" for part in parts)
    if wanted.excluded:
        match = f"({match}) NOT ({_WORDS} : ({' OR '.join(map(_fts_term, wanted.excluded))}))"
    return match


def _fts_term(term: Term) -> str:
    runs = _stretches(term)
    phrases = [f'"{" ".join(words)}"' for words in runs]
    if term.is_prefix or (is_paired(term.words[-1]) and len(term.words[-1]) == 1):
        phrases[-1] += " *"
    return phrases[0] if len(phrases) == 1 else f"({' AND '.join(phrases)})"


def _stretches(term: Term) -> list[list[str]]:
    """Return a term's words as phrases that the index can follow: paired scripts stand apart from others there."""
    found: list[list[str]] = []
    was_paired: bool | None = None
    for word in term.words:
        paired = is_paired(word)
        if paired or was_paired is not False:
            found.append([])
        found[-1] += _written(word)
        was_paired = paired
    return found


def _tsquery(wanted: Wanted) -> Sql:
    parts: list[str] = []
    params: list[Any] = []
    for group in wanted.groups:
        made = [_ts_term(term) for term in group]
        parts.append(f"({' || '.join(sql for sql, _ in made)})")
        params += [param for _, own in made for param in own]
    scope = [" | ".join(f"'#{letter}{key}'" for key in keys or (NOWHERE,)) for letter, keys in wanted.scope.items()]
    scope += [" | ".join(f"'#k{kind}'" for kind in wanted.kinds)] if wanted.kinds else []
    parts += ["%s::tsquery"] * len(scope)
    params += scope
    for term in wanted.excluded:
        sql, own = _ts_term(term)
        parts.append(f"!!({sql})")
        params += own
    return " && ".join(parts), params


def _ts_term(term: Term) -> Sql:
    runs = _stretches(term)
    is_prefix = term.is_prefix or (is_paired(term.words[-1]) and len(term.words[-1]) == 1)
    parts = [f"phraseto_tsquery('{CONFIGURATION}', %s)"] * len(runs)
    params = [" ".join(words) for words in runs]
    if is_prefix and len(runs[-1]) == 1:
        parts[-1], params[-1] = f"to_tsquery('{CONFIGURATION}', %s)", f"{params[-1]}:*"
    return f"({' && '.join(parts)})", list(params)
