"""Queries of a search index: users' words are quoted, never used as syntax."""

from __future__ import annotations

import time
from contextlib import nullcontext, suppress
from itertools import count

import pytest
from django.db import OperationalError, connection, transaction
from django.test.utils import CaptureQueriesContext
from psycopg.errors import QueryCanceled

from memoryhub.lib.search import matching
from memoryhub.lib.search.matching import (
    IndexQuery,
    SearchTooSlow,
    all_matches,
    best_matches,
    condition,
    count_terms,
    database_clock,
    estimate,
    ids_sql,
    time_limit,
)
from memoryhub.lib.search.query import Term
from tests.searches import say

pytestmark = pytest.mark.django_db
TABLE = "sessions_app_entry"
COUNTING = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < %s) SELECT count(*) FROM n"
only_sqlite = pytest.mark.skipif(connection.vendor != "sqlite", reason="of SQLite's syntax")


def term(text: str, **values: bool) -> Term:
    return Term(tuple(text.split()), **values)


def index_query(*texts: str, **values) -> IndexQuery:
    return IndexQuery(TABLE, tuple(term(text) for text in texts), **values)


def ids(asked: IndexQuery, *, limit: int | None = None) -> list[int]:
    with connection.cursor() as cursor:
        cursor.execute(*ids_sql(connection, asked, limit=limit))
        return [row[0] for row in cursor.fetchall()]


@only_sqlite
@pytest.mark.parametrize(
    ("asked", "match"),
    [
        (index_query("tea", "cake"), '({content parts meta} : ("tea" OR "cake"))'),
        (index_query("blue whale"), '({content parts meta} : ("blue whale"))'),
        (index_query("tea", scope={"w": [1, 2]}), '(scope : ("zw1" OR "zw2")) AND ({content parts meta} : ("tea"))'),
        (index_query("tea", kinds=("tool_call",)), '(scope : ("zktoolcall")) AND ({content parts meta} : ("tea"))'),
        (
            index_query("tea", excluded=(term("cake"),)),
            '(({content parts meta} : ("tea"))) NOT ({content parts meta} : ("cake"))',
        ),
        (IndexQuery(TABLE, (term("te", is_prefix=True),)), '({content parts meta} : ("te" *))'),
        (index_query("東京都"), '({content parts meta} : ("東京 京都"))'),
        (index_query("京"), '({content parts meta} : ("京" *))'),
        (index_query("tea 東京"), '({content parts meta} : (("tea" AND "東京")))'),
    ],
)
def test_words_are_quoted_and_the_scope_is_separate(asked, match):
    assert condition(connection, asked)[1] == [match]


def test_required_groups_must_match_and_other_words_only_rank():
    asked = index_query("tea", required=((term("cake"), term("bread")),))

    assert asked.groups == [(term("cake"), term("bread")), (term("tea"), term("cake"), term("bread"))]


def test_rows_are_found_by_scope_without_terms(workspace):
    [entry] = say(workspace, "tea")
    session = entry.session_id

    assert ids(index_query("tea", scope={"w": [workspace.pk], "s": [session]})) == [entry.pk]
    assert ids(index_query("tea", scope={"w": [workspace.pk + 1]})) == []
    assert ids(index_query("tea", scope={"w": [workspace.pk], "s": [session + 1]})) == []
    assert ids(index_query("tea", kinds=("message",))) == [entry.pk]
    assert ids(index_query("tea", kinds=("tool_call", "summary"))) == []


def test_an_empty_scope_matches_nothing(workspace):
    say(workspace, "tea")
    nowhere = index_query("tea", scope={"w": []})

    assert ids(nowhere) == []
    assert best_matches(connection, nowhere, total=1) == []
    assert count_terms(connection, [nowhere], [term("tea")]) == [[(0, None, None)]]


def test_the_newest_rows_are_returned_up_to_a_limit(workspace):
    rows = say(workspace, "tea", "tea", "tea")

    assert ids(index_query("tea"), limit=2) == [rows[2].pk, rows[1].pk]


def test_the_best_rows_come_first_and_can_be_filtered(workspace):
    plain, both, _ = say(workspace, "tea for two and more of us", "tea and cake", "nothing")

    assert best_matches(connection, index_query("tea", "cake"), total=3) == [both.pk, plain.pk]
    assert best_matches(connection, index_query("tea", "cake"), total=3, only=("e.id <> %s", [both.pk])) == [plain.pk]
    assert best_matches(connection, index_query("tea", "cake"), total=3, limit=1) == [both.pk]


def test_a_word_that_is_repeated_counts_more_up_to_any_number(workspace):
    texts = [" ".join(["tea"] * count + ["cup"] * (40 - count)) for count in (1, 2, 3, 9, 10, 39)]
    rows = say(workspace, *texts)

    assert best_matches(connection, index_query("tea"), total=1_000) == [row.pk for row in reversed(rows)]


def test_words_with_the_same_stem_count_once(workspace):
    many, few = say(workspace, "walking around the lake", "lake")

    assert best_matches(connection, index_query("walk", "walking", "walks", "lake"), total=9) == [many.pk, few.pk]


def test_words_are_stemmed_once(workspace):
    many, few = say(workspace, "databases, databases", "databases, here")  # the stem's stem is databa

    assert best_matches(connection, index_query("databases"), total=9) == [many.pk, few.pk]


@pytest.mark.parametrize("word", ["3e2a9f1", "step⓫done", "x⓫y"])
def test_a_word_that_the_parser_splits_counts_as_often_as_it_occurs(workspace, word):
    rows = say(workspace, *[" ".join([word] * count + ["cup"] * (40 - count)) for count in (1, 2, 3, 10, 39)])

    assert best_matches(connection, index_query(word), total=1_000) == [row.pk for row in reversed(rows)]


def test_rows_are_returned_without_words(workspace):
    rows = say(workspace, "tea", "cake")

    if connection.vendor == "postgresql":
        found = best_matches(connection, index_query(scope={"w": (workspace.pk,)}), total=2)
        assert found == [row.pk for row in reversed(rows)]


def test_all_matches_are_returned_newest_first(workspace):
    first, _, last = say(workspace, "tea and tea", "cake", "tea")

    assert all_matches(connection, index_query("tea")) == [last.pk, first.pk]
    assert all_matches(connection, index_query("tea"), only=("e.id <> %s", [last.pk])) == [first.pk]


def test_rows_with_a_term_are_counted_with_their_first_and_last_key(workspace):
    first, _, last = say(workspace, "tea", "cake", "tea")

    [counted] = count_terms(connection, [index_query()], [term("tea"), term("cake"), term("tea cake")])

    assert counted[0] == (2, first.pk, last.pk)
    assert [count for count, _, _ in counted] == [2, 1, 0]
    assert count_terms(connection, [index_query()], []) == [[]]


@pytest.mark.parametrize(
    ("counted", "expected"),
    [((0, None, None), 0), ((7, 1, 9), 7), ((70, 1, 9), 50), ((5_000, 1, 10_000), 50), ((5_000, 1, 100), 50)],
)
def test_an_estimated_count_never_exceeds_the_total(counted, expected):
    assert estimate(counted, total=50, first=1, last=100) == expected


def test_counts_above_the_limit_are_estimated_from_the_keys():
    assert estimate((5_000, 1, 10_000), total=100_000, first=1, last=100_000) == 50_000
    assert estimate((5_000, 1, 1_000), total=100_000, first=1, last=2_000) == 10_000


def test_a_slow_search_is_stopped_and_the_next_one_works(workspace):
    def search_forever() -> None:
        with time_limit(connection, 20), connection.cursor() as cursor:
            cursor.execute(COUNTING, [10**9])

    with pytest.raises(SearchTooSlow):
        search_forever()

    say(workspace, "tea")
    with time_limit(connection, 5_000):
        assert len(ids(index_query("tea"))) == 1


@only_sqlite
@pytest.mark.parametrize(("step", "is_stopped"), [(0.001, False), (1, True)])
def test_waiting_for_other_processes_counts_little(monkeypatch, step, is_stopped):
    seconds = (number * step for number in count())
    monkeypatch.setattr(matching.time, "monotonic", lambda: next(seconds))
    monkeypatch.setattr(matching.time, "thread_time", lambda: 0.0)

    def search() -> None:
        with time_limit(connection, 20), connection.cursor() as cursor:
            cursor.execute(COUNTING, [10_000])

    with pytest.raises(SearchTooSlow) if is_stopped else nullcontext():
        search()


@pytest.mark.slow
@pytest.mark.postgres
def test_the_time_limit_is_reset(workspace):
    with time_limit(connection, 50):
        ids(index_query("tea"))

    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(COUNTING, [2_000_000])
        assert cursor.fetchone() == (2_000_000,)


@pytest.mark.skipif(connection.vendor != "postgresql", reason="SQLite's limit isn't a setting of the connection")
@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("is_inside", [False, True])
def test_a_limit_that_cannot_be_lifted_ends_with_its_transaction(is_inside):
    """PostgreSQL may cancel any statement under a limit of a few milliseconds, also the one that lifts it."""
    settings: list[str] = []
    known: list[str] = []

    def cancel_all_but_the_first(execute, sql, params, many, context):
        if "set_config('statement_timeout'" in sql or "SET statement_timeout" in sql:
            settings.append(sql)
            if len(settings) > 1:
                raise OperationalError("canceling statement due to statement timeout") from QueryCanceled()
        known.extend([sql] if "current_setting" in sql else [])
        return execute(sql, params, many, context)

    def limit() -> str:
        with connection.cursor() as cursor:
            cursor.execute("SHOW statement_timeout")
            return cursor.fetchone()[0]

    before = limit()
    with transaction.atomic() if is_inside else nullcontext():
        with (
            suppress(SearchTooSlow),
            connection.execute_wrapper(cancel_all_but_the_first),
            time_limit(connection, 50),
        ):
            ids(index_query("tea"))
        assert limit() == before
    assert (limit(), len(settings)) == (before, 2 if is_inside else 1)
    assert len(known) == is_inside, "a search sets ten limits, and each query costs time"


def test_other_database_errors_are_reraised():
    def ask_nonsense() -> None:
        with time_limit(connection, 1_000), connection.cursor() as cursor:
            cursor.execute("SELECT nonsense FROM nowhere")

    with pytest.raises(Exception, match="nowhere"), transaction.atomic():
        ask_nonsense()


def test_only_work_and_the_database_take_time_of_a_search():
    began = database_clock(connection)
    time.sleep(0.1)
    assert database_clock(connection) - began < 0.05

    if connection.vendor == "postgresql":
        with time_limit(connection, 5_000), connection.cursor() as cursor:
            cursor.execute("SELECT pg_sleep(0.1)")
        assert database_clock(connection) - began >= 0.1


@pytest.mark.skipif(connection.vendor != "postgresql", reason="of PostgreSQL's plans")
def test_document_frequencies_are_computed_once(workspace):
    say(workspace, "tea", "cake")
    with CaptureQueriesContext(connection) as queries:
        best_matches(connection, index_query("tea", "cake"), total=2)

    with connection.cursor() as cursor:
        cursor.execute(f"EXPLAIN {queries[0]['sql']}")
        assert "CTE collection" in [line.strip() for (line,) in cursor.fetchall()]
