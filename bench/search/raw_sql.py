"""Searches in hand-written SQL through the driver's own cursor, as the baseline for the hub's searches."""

from __future__ import annotations

from typing import Any

from django.db import connection

from memoryhub.lib.search.query import Query

LIMIT = 150
FTS = "sessions_app_entry_words"
BEST = f"ORDER BY bm25({FTS}, 1, 0.5, 1, 0) LIMIT {LIMIT}"
RANKED = """
    WITH c AS MATERIALIZED (
        SELECT id, words FROM sessions_app_entry WHERE {where} LIMIT 5000),
    u AS MATERIALIZED (
        SELECT c.id, l.lexeme, cardinality(l.positions) AS tf, length(c.words) AS dl
        FROM c, unnest(c.words) l WHERE l.lexeme = ANY (tsvector_to_array(to_tsvector('memoryhub', %(words)s)))),
    d AS (
        SELECT lexeme, ln(1 + greatest(0, %(total)s - count(*) + .5) / (count(*) + .5)) AS idf FROM u GROUP BY 1)
    SELECT id, sum(idf * tf * 2.2 / (tf + 1.2 * (.25 + .75 * dl / (SELECT avg(length(words)) FROM c)))) AS score
    FROM u JOIN d USING (lexeme) GROUP BY id ORDER BY 2 DESC LIMIT {limit}"""


def bare_scoped(query: Query, workspace: int | None, total: int) -> list[Any]:
    """Return the best entries of a workspace (None: all), restricted by the workspace token in the index."""
    if connection.vendor == "sqlite":
        scope = "" if workspace is None else f' AND scope : "zw{workspace}"'
        sql = f"SELECT rowid FROM {FTS} WHERE {FTS} MATCH ? {BEST}"
        return _cursor().execute(sql, [_fts_words(query) + scope]).fetchall()
    where = "words @@ to_tsquery('memoryhub', %(query)s)"
    if workspace is not None:
        where = f"words @@ ('''#w{workspace}'''::tsquery && to_tsquery('memoryhub', %(query)s))"
    return _ranked(where, query, workspace, total)


def bare_join(query: Query, workspace: int, total: int) -> list[Any]:
    """Return the same, restricted by joining the table and comparing its workspace column."""
    if connection.vendor == "sqlite":
        sql = (
            f"SELECT e.id FROM {FTS} JOIN sessions_app_entry e ON e.id = {FTS}.rowid "
            f"WHERE {FTS} MATCH ? AND e.workspace_id = ? {BEST}"
        )
        return _cursor().execute(sql, [_fts_words(query), workspace]).fetchall()
    where = "words @@ to_tsquery('memoryhub', %(query)s) AND workspace_id = %(workspace)s"
    return _ranked(where, query, workspace, total)


def _cursor() -> Any:
    return connection.connection.cursor()


def _texts(query: Query) -> list[str]:
    return [" ".join(term.words) for term in query.ranked_terms]


def _fts_words(query: Query) -> str:
    return "{content parts meta} : (" + " OR ".join(f'"{text}"' for text in _texts(query)) + ")"


def _ranked(where: str, query: Query, workspace: int | None, total: int) -> list[Any]:
    texts = _texts(query)
    values = {"query": " | ".join(texts), "words": " ".join(texts), "workspace": workspace, "total": total}
    with _cursor() as cursor:
        cursor.execute(RANKED.format(where=where, limit=LIMIT), values)
        found: list[Any] = cursor.fetchall()
        return found
