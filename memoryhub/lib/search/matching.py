"""Query a table's search index on SQLite or PostgreSQL: matching rows, their number, and the best of them.

Words of a user's query are always quoted, never used as syntax.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from django.db import DatabaseError, OperationalError, transaction
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.backends.utils import CursorWrapper
from django.utils.translation import gettext

from memoryhub.lib.errors import LimitExceeded
from memoryhub.lib.search.indexes import index_name
from memoryhub.lib.search.postgres_index import COLUMN, CONFIGURATION
from memoryhub.lib.search.query import Term
from memoryhub.lib.search.sqlite_index import WEIGHTS
from memoryhub.lib.search.tokenizing import index_words, is_emoji, is_paired, stem
from memoryhub.lib.text_caches import text_cache

CANDIDATES = 150  # rows per table that the database ranks first
MAX_COMPARED = 5_000  # matching rows from which PostgreSQL selects them
MAX_COUNTED = 5_000  # rows counted per term; larger counts are estimated
MAX_WAIT = 8  # times a time limit that a query may take in all, on SQLite
MOST_RANK = 0.99763  # ts_rank of a word that a row has 255 times
NOWHERE = "none"  # replaces an empty list of keys, which would match everything
_WORDS = "{content parts meta}"
_waited = threading.local()  # its ``seconds``: for PostgreSQL's limited queries


class SearchTooSlow(LimitExceeded):
    """A query exceeded its time limit."""

    code = "search_too_slow"


@dataclass(frozen=True)
class IndexQuery:
    """A query of one table's index: any of ``terms``, one of each group in ``required``, none of ``excluded``.

    ``scope``: by letter of ``Index.scope``, the keys of which a row must have one. ``kinds``: the same for its kind.
    """

    table: str
    terms: tuple[Term, ...] = ()
    required: tuple[tuple[Term, ...], ...] = ()
    excluded: tuple[Term, ...] = ()
    scope: Mapping[str, Sequence[int]] = field(default_factory=dict)
    kinds: tuple[str, ...] = ()

    @property
    def groups(self) -> list[tuple[Term, ...]]:
        """The groups that a row must match. With required groups, ``terms`` are optional and only affect ranking."""
        required_terms = tuple(term for group in self.required for term in group)
        if self.required and self.terms:
            return [*self.required, (*self.terms, *required_terms)]
        return [*self.required, *([self.terms] if self.terms else [])]


Sql = tuple[str, list[Any]]


def condition(connection: BaseDatabaseWrapper, query: IndexQuery) -> Sql:
    """Return the condition for matching rows of ``<table>_words`` (SQLite) or of the table as ``e`` (PostgreSQL)."""
    if connection.vendor == "sqlite":
        return f"{index_name(query.table)} MATCH %s", [_fts_match(query)]
    expression, params = _tsquery(query)
    return f"e.{COLUMN} @@ ({expression})", params


def ids_sql(
    connection: BaseDatabaseWrapper,
    query: IndexQuery,
    *,
    only: Sql | None = None,
    limit: int | None = None,
    min_id: int = 0,
) -> Sql:
    """Return the SQL for the primary keys of matching rows from ``min_id`` on, or of the newest ``limit``.

    ``only``: a condition on ``e.id``, the row's key.
    """
    where, params = condition(connection, query)
    key = "rowid" if connection.vendor == "sqlite" else "e.id"
    name = index_name(query.table) if connection.vendor == "sqlite" else f"{query.table} e"
    if only:
        sql, more = _of_index(query, only) if connection.vendor == "sqlite" else only
        where, params = f"{where} AND {sql}", [*params, *more]
    since = f" AND {key} >= {min_id}" if min_id else ""
    newest = f" ORDER BY {key} DESC LIMIT {limit}" if limit else ""
    return f"SELECT {key} AS id FROM {name} WHERE {where}{since}{newest}", params


def non_matching_ids_sql(connection: BaseDatabaseWrapper, query: IndexQuery) -> Sql:
    """Return the SQL for the primary keys of all rows that don't match; PostgreSQL only."""
    where, params = condition(connection, query)
    return f"SELECT e.id FROM {query.table} e WHERE NOT ({where})", params


def best_matches(
    connection: BaseDatabaseWrapper,
    query: IndexQuery,
    *,
    total: int,
    only: Sql | None = None,
    limit: int = CANDIDATES,
) -> list[int]:
    """Return the primary keys of at most ``limit`` rows, best first by BM25.

    ``total``: number of rows in the collection. ``only``: a condition on ``e.id``, the row's key.
    """
    sql, params = (_best_of_sqlite if connection.vendor == "sqlite" else _best_of_postgres)(query, total, only, limit)
    with connection.cursor() as cursor:
        cursor.execute(sql, params)
        return [row[0] for row in cursor.fetchall()]


def all_matches(connection: BaseDatabaseWrapper, query: IndexQuery, *, only: Sql | None = None) -> list[int]:
    """Return the primary keys of all matching rows, newest first: for few rows, as it has no limit."""
    with connection.cursor() as cursor:
        cursor.execute(*ids_sql(connection, query, only=only))
        return sorted((row[0] for row in cursor.fetchall()), reverse=True)


def _best_of_sqlite(query: IndexQuery, _total: int, only: Sql | None, limit: int) -> Sql:
    name = index_name(query.table)
    extra, params = _of_index(query, only) if only else ("", [])
    extra = f" AND {extra}" if extra else ""
    order = f"bm25({name}, {WEIGHTS}), rowid DESC"
    sql = f"SELECT rowid FROM {name} WHERE {name} MATCH %s{extra} ORDER BY {order} LIMIT {limit}"
    return sql, [_fts_match(query), *params]


def _of_index(query: IndexQuery, only: Sql) -> Sql:
    """Return a condition on ``e.id`` as one on the key of SQLite's index."""
    sql, params = only
    return sql.replace("e.id", f"{index_name(query.table)}.rowid"), params


def _best_of_postgres(query: IndexQuery, total: int, only: Sql | None, limit: int) -> Sql:
    """Return the SQL for BM25 with document frequencies from the compared rows.

    With all weights 1, ts_rank of a word that a row has n times is 6/π² (1/1 + 1/4 + … + 1/n²), from which n is
    computed: unnesting the row's words would take ten times as long. PostgreSQL's parser splits some words, such as
    3e2a9f1: a row has one as often as any of its parts. Positions of more than 255 occurrences aren't stored.
    """
    expression, params = _tsquery(query)
    extra, extra_params = only or ("", [])
    terms = [term for group in query.groups for term in group]
    words = list({stem(word): word for term in terms for one in term.words for word in index_words(one)}.values())
    parts_of_word = f"replace(phraseto_tsquery('{CONFIGURATION}', %s)::text, '<->', '|')::tsquery"
    rank = f"least(ts_rank('{{1, 1, 1, 1}}', e.{COLUMN}, {parts_of_word}), {MOST_RANK})"
    counts = [f"round(1 / (1.64493406685 * (1 - {rank})) - 0.5) AS count{place}" for place in range(len(words))]
    rows = [f"(count(*) FILTER (WHERE count{place} > 0) + 0.5)" for place in range(len(words))]
    rarity = [f"ln(1 + greatest(0, %s + 1 - {one}) / {one})::float AS idf{place}" for place, one in enumerate(rows)]
    parts = [f"idf{place} * count{place} * 2.2 / (count{place} + norm)" for place in range(len(words))]
    sql = f"""
        WITH matches AS MATERIALIZED (
            SELECT {", ".join(["e.id", f"length(e.{COLUMN})::float AS length", *counts])}
            FROM {query.table} e WHERE e.{COLUMN} @@ ({expression})
            {f"AND {extra}" if extra else ""} LIMIT {MAX_COMPARED}),
        collection AS MATERIALIZED (SELECT {", ".join(["avg(length) AS usual", *rarity])} FROM matches),
        normed AS (SELECT *, 1.2 * (0.25 + 0.75 * length / usual) AS norm FROM matches, collection)
        SELECT id FROM normed ORDER BY {" + ".join(parts) or "0::float"} DESC, id DESC LIMIT {limit}"""
    return sql, [*words, *params, *extra_params, *[total] * len(words)]


TermCount = tuple[int, int | None, int | None]


def count_terms(
    connection: BaseDatabaseWrapper, query: Sequence[IndexQuery], terms: Sequence[Term]
) -> list[list[TermCount]]:
    """Return for each query and term the number of rows in its scope, up to 5,000, and their lowest and highest key.

    Runs one statement.
    """
    parts: list[str] = []
    params: list[Any] = []
    for one in query:
        for term in terms:
            where, own = condition(connection, IndexQuery(one.table, (term,), scope=one.scope, kinds=one.kinds))
            sqlite = connection.vendor == "sqlite"
            name, key = (index_name(one.table), "rowid") if sqlite else (f"{one.table} e", "e.id")
            found = f"SELECT {key} AS id FROM {name} WHERE {where} LIMIT {MAX_COUNTED}"
            parts.append(f"SELECT count(*), min(id), max(id) FROM ({found}) f")
            params += own
    if not parts:
        return [[] for _ in query]
    with connection.cursor() as cursor:
        cursor.execute(" UNION ALL ".join(parts), params)
        rows = cursor.fetchall()
    return [rows[start : start + len(terms)] for start in range(0, len(rows), len(terms))]


def estimate(counted: TermCount, *, total: int, first: int, last: int) -> int:
    """Return the number of rows with a term: the count, or if it reached the limit, an extrapolation.

    ``total``, ``first``, ``last``: number of rows in the collection, and its lowest and highest key.
    """
    count, low, high = counted
    if count < MAX_COUNTED or low is None or high is None:
        return min(count, total)
    return min(total, max(count, math.ceil(count * (last - first + 1) / (high - low + 1))))


def database_clock(connection: BaseDatabaseWrapper) -> float:
    """Return seconds on the clock of searches: this thread's CPU time, and its time in ``time_limit`` on PostgreSQL,
    which runs elsewhere. Waiting for a processor doesn't count."""
    return time.thread_time() + (0 if connection.vendor == "sqlite" else getattr(_waited, "seconds", 0.0))


@contextmanager
def time_limit(connection: BaseDatabaseWrapper, milliseconds: int) -> Iterator[None]:
    """Limit the time of the queries in this block, on PostgreSQL of each query. Raises SearchTooSlow.

    SQLite's time is the CPU time of this thread: waiting for other processes doesn't count, up to MAX_WAIT times as
    long.
    """
    limit = _sqlite_time_limit if connection.vendor == "sqlite" else _postgres_time_limit
    yield from limit(connection, milliseconds)


def _postgres_time_limit(connection: BaseDatabaseWrapper, milliseconds: int) -> Iterator[None]:
    """Limit queries inside a transaction or savepoint, so that the limit ends with it, whatever happens."""
    is_inside, began = connection.in_atomic_block, time.monotonic() - time.thread_time()
    try:
        with transaction.atomic(), connection.cursor() as cursor:
            old = _timeout(cursor) if is_inside else ""
            _set_timeout(cursor, f"{max(1, milliseconds)}ms")
            yield
            if is_inside:  # the rest of the outer transaction has its own limit
                _set_timeout(cursor, old)
    except OperationalError as error:
        if getattr(error.__cause__, "sqlstate", "") != "57014":
            raise
        raise SearchTooSlow(gettext("The search took too long.")) from error
    finally:
        _waited.seconds = getattr(_waited, "seconds", 0.0) + time.monotonic() - time.thread_time() - began


def _timeout(cursor: CursorWrapper) -> str:
    cursor.execute("SELECT current_setting('statement_timeout')")
    return str(cursor.fetchone()[0])


def _set_timeout(cursor: CursorWrapper, limit: str) -> None:
    cursor.execute("SELECT set_config('statement_timeout', %s, true)", [limit])  # like SET LOCAL


def _sqlite_time_limit(connection: BaseDatabaseWrapper, milliseconds: int) -> Iterator[None]:
    connection.ensure_connection()
    raw = connection.connection
    end, latest = time.thread_time() + milliseconds / 1000, time.monotonic() + MAX_WAIT * milliseconds / 1000
    raw.set_progress_handler(lambda: time.thread_time() > end or time.monotonic() > latest, 2_000)
    try:
        yield
    except DatabaseError as error:
        if "interrupted" not in str(error):
            raise
        raise SearchTooSlow(gettext("The search took too long.")) from error
    finally:
        raw.set_progress_handler(None, 0)


def _fts_match(query: IndexQuery) -> str:
    scope = [" OR ".join(f'"z{letter}{key}"' for key in keys or (NOWHERE,)) for letter, keys in query.scope.items()]
    scope += [" OR ".join(f'"zk{kind.replace("_", "")}"' for kind in query.kinds)] if query.kinds else []
    parts = [f"scope : ({words})" for words in scope]
    parts += [f"{_WORDS} : ({' OR '.join(map(_fts_term, group))})" for group in query.groups]
    match = " AND ".join(f"({part})" for part in parts)
    if query.excluded:
        match = f"({match}) NOT ({_WORDS} : ({' OR '.join(map(_fts_term, query.excluded))}))"
    return match


@text_cache(4_096)
def _fts_term(term: Term) -> str:
    phrases = [f'"{" ".join(words)}"' for words in _phrases(term)]
    if term.is_prefix or (is_paired(term.words[-1]) and len(term.words[-1]) == 1):
        phrases[-1] += " *"
    return phrases[0] if len(phrases) == 1 else f"({' AND '.join(phrases)})"


def _phrases(term: Term) -> list[list[str]]:
    """Split a term into phrases: the index doesn't keep paired scripts and emoji next to other words."""
    phrases: list[list[str]] = []
    was_paired: bool | None = None
    for word in term.words:
        paired = is_paired(word) or is_emoji(word)
        if paired or was_paired is not False:
            phrases.append([])
        phrases[-1] += index_words(word)
        was_paired = paired
    return phrases


def _tsquery(query: IndexQuery) -> Sql:
    parts: list[str] = []
    params: list[Any] = []
    for group in query.groups:
        made = [_ts_term(term) for term in group]
        parts.append(f"({' || '.join(sql for sql, _ in made)})")
        params += [param for _, own in made for param in own]
    scope = [" | ".join(f"'#{letter}{key}'" for key in keys or (NOWHERE,)) for letter, keys in query.scope.items()]
    scope += [" | ".join(f"'#k{kind}'" for kind in query.kinds)] if query.kinds else []
    parts += ["%s::tsquery"] * len(scope)
    params += scope
    for term in query.excluded:
        sql, own = _ts_term(term)
        parts.append(f"!!({sql})")
        params += own
    return " && ".join(parts), params


def _ts_term(term: Term) -> Sql:
    phrases = _phrases(term)
    is_prefix = term.is_prefix or (is_paired(term.words[-1]) and len(term.words[-1]) == 1)
    parts = [f"phraseto_tsquery('{CONFIGURATION}', %s)"] * len(phrases)
    params = [" ".join(words) for words in phrases]
    if is_prefix and len(phrases[-1]) == 1:
        parts[-1], params[-1] = f"to_tsquery('{CONFIGURATION}', %s)", f"{params[-1]}:*"
    return f"({' && '.join(parts)})", list(params)
