"""Load rows as the reranker's candidates: text up to a limit, author, time and position."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from functools import cache
from typing import Any

from django.db import connection
from django.db.models import F, TextField, Value
from django.db.models.functions import Substr

from memoryhub.lib.database.fixed_sql import planned_cursor
from memoryhub.lib.database.prepared import among
from memoryhub.lib.search.neighbour_smoothing import EntryPosition
from memoryhub.lib.search.scoring import Candidate
from memoryhub.lib.text.facts import fact_lines
from memoryhub.search.filters import FilteredKind
from memoryhub.search.kinds import KINDS, Kind

SCORED_CHARS = 20_000  # of each text; the index covers more and selects the rows
_KEYS = object()  # stands for the keys in a prepared statement


def load_candidates(kind: Kind, pks: Sequence[int]) -> list[Candidate]:
    """Return rows of a kind as candidates, in the given order; one query."""
    found = {one.pk: one for one in _candidates(kind, pks)}
    return [found[pk] for pk in pks if pk in found]


def load_neighbours(filtered: FilteredKind, positions: Iterable[EntryPosition]) -> list[Candidate]:
    """Return the entries at the given positions that pass the filters, as candidates; two queries, or three.

    Keys are fetched first: with a workspace condition in the same query, SQLite would scan the whole workspace.
    Without conditions, neighbours of a candidate pass if they are in the conversation, as they share its session.
    """
    places = list(positions)
    if not places:
        return []
    if connection.vendor == "sqlite":
        where = " OR ".join(["(session_id = %s AND epoch = %s AND position = %s)"] * len(places))
        params: list[Any] = [number for place in places for number in place]
    else:  # plans each OR
        where = "(session_id, epoch, position) IN (SELECT * FROM unnest(%s::bigint[], %s::int[], %s::int[]))"
        params = [list(numbers) for numbers in zip(*places, strict=True)]
    with planned_cursor() as cursor:
        cursor.execute(f"SELECT id FROM {filtered.kind.table} WHERE {where}", params)
        keys = [key for (key,) in cursor.fetchall()]
    if keys and filtered.conditions:
        keys = list(filtered.rows.filter(pk__in=keys).values_list("pk", flat=True))
    return list(_candidates(filtered.kind, keys))


def _candidates(kind: Kind, pks: Sequence[int]) -> Iterator[Candidate]:
    if not pks:
        return
    sql, params = _candidates_sql(kind.name)
    keys = json.dumps(list(pks)) if connection.vendor == "sqlite" else list(pks)
    with planned_cursor() as cursor:
        cursor.execute(sql, [keys if one is _KEYS else one for one in params])
        names = [column[0] for column in cursor.description]
        for values in cursor.fetchall():
            yield _candidate(kind, dict(zip(names, values, strict=True)))


@cache
def _candidates_sql(name: str) -> tuple[str, tuple[Any, ...]]:
    """Return the statement that loads candidates of a kind, with ``_KEYS`` for their keys: built once, as Django
    takes longer to build it than the database to run it."""
    kind = KINDS[name]
    columns = {f"searched_{name}": Substr(name, 1, SCORED_CHARS, output_field=TextField()) for name in _texts(kind)}
    others = [*kind.hidden_by.values()]
    others += ["session_id", "epoch", "position", "role"] if kind.name == "entry" else []
    time = {"searched_at": F(kind.time)} if kind.time else {}
    rows = kind.model._default_manager.filter(kind.always, pk__in=among(Value(_KEYS))).order_by()
    sql, params = rows.annotate(**columns, **time).values("pk", *columns, *time, *others).query.sql_with_params()
    return sql, tuple(params)


def _texts(kind: Kind) -> list[str]:
    return [*kind.texts, *kind.metas]


def _candidate(kind: Kind, row: dict[str, Any]) -> Candidate:
    texts = [row[f"searched_{name}"] for name in kind.texts if not row.get(kind.hidden_by.get(name, ""))]
    if kind.name == "document":
        texts = [prose_of(text) for text in texts]
    at: datetime | None = row.get("searched_at")
    at = at.replace(tzinfo=UTC) if at and at.tzinfo is None else at  # SQLite's driver returns no zone
    is_entry = kind.name == "entry"
    return Candidate(
        row["pk"],
        "\n".join(text for text in texts if text and text != "[]"),
        meta="\n".join([*(row[f"searched_{name}"] for name in kind.metas), date_words(at)]),
        author=row["searched_name"] if kind.author else "",
        role=row["role"] if is_entry else "",
        position=(row["session_id"], row["epoch"], row["position"]) if is_entry else None,
        occurred_at=at,
    )


def prose_of(text: str) -> str:
    """Return a document without its fact lines, which are searched as a kind of their own."""
    facts = {line.line for line in fact_lines(text)}
    return "\n".join(line for number, line in enumerate(text.split("\n"), 1) if number not in facts)


def date_words(at: datetime | None) -> str:
    """Return a date in the words that the indexes contain, such as "3 May 2026 Sunday 2026-05-03"."""
    return f"{at.day} {at:%B %Y %A %Y-%m-%d}" if at else ""
