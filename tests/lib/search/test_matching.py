"""What an index is asked: quoted words and a scope, never syntax that somebody typed."""

from __future__ import annotations

import pytest
from django.db import connection, transaction

from memoryhub.lib.search.matching import (
    IndexQuery,
    SearchTooSlow,
    best_matches,
    condition,
    count_terms,
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
def test_words_are_quoted_and_the_scope_stands_beside_them(asked, match):
    assert condition(connection, asked)[1] == [match]


def test_any_group_has_to_be_held_and_words_beside_it_only_rank():
    asked = index_query("tea", required=((term("cake"), term("bread")),))

    assert asked.groups == [(term("cake"), term("bread")), (term("tea"), term("cake"), term("bread"))]


def test_rows_are_found_within_a_scope_alone(workspace):
    [entry] = say(workspace, "tea")
    session = entry.session_id

    assert ids(index_query("tea", scope={"w": [workspace.pk], "s": [session]})) == [entry.pk]
    assert ids(index_query("tea", scope={"w": [workspace.pk + 1]})) == []
    assert ids(index_query("tea", scope={"w": [workspace.pk], "s": [session + 1]})) == []
    assert ids(index_query("tea", kinds=("message",))) == [entry.pk]
    assert ids(index_query("tea", kinds=("tool_call", "summary"))) == []


def test_a_scope_of_nothing_finds_and_counts_nothing(workspace):
    say(workspace, "tea")
    nowhere = index_query("tea", scope={"w": []})

    assert ids(nowhere) == []
    assert best_matches(connection, nowhere, total=1) == []
    assert count_terms(connection, [nowhere], [term("tea")]) == [[(0, None, None)]]


def test_the_newest_are_found_up_to_a_limit(workspace):
    rows = say(workspace, "tea", "tea", "tea")

    assert ids(index_query("tea"), limit=2) == [rows[2].pk, rows[1].pk]


def test_the_best_come_first_and_a_condition_narrows_them(workspace):
    plain, both, _ = say(workspace, "tea for two and more of us", "tea and cake", "nothing")

    assert best_matches(connection, index_query("tea", "cake"), total=3) == [both.pk, plain.pk]
    assert best_matches(connection, index_query("tea", "cake"), total=3, only=("e.id <> %s", [both.pk])) == [plain.pk]
    assert best_matches(connection, index_query("tea", "cake"), total=3, limit=1) == [both.pk]


def test_rows_that_hold_a_term_are_counted_with_their_first_and_last_key(workspace):
    first, _, last = say(workspace, "tea", "cake", "tea")

    [counted] = count_terms(connection, [index_query()], [term("tea"), term("cake"), term("tea cake")])

    assert counted[0] == (2, first.pk, last.pk)
    assert [count for count, _, _ in counted] == [2, 1, 0]
    assert count_terms(connection, [index_query()], []) == [[]]


@pytest.mark.parametrize(
    ("counted", "expected"),
    [((0, None, None), 0), ((7, 1, 9), 7), ((70, 1, 9), 50), ((5_000, 1, 10_000), 50), ((5_000, 1, 100), 50)],
)
def test_a_count_is_never_above_all_rows(counted, expected):
    assert estimate(counted, total=50, first=1, last=100) == expected


def test_where_counting_stopped_the_share_of_keys_tells_how_many_there_are():
    assert estimate((5_000, 1, 10_000), total=100_000, first=1, last=100_000) == 50_000
    assert estimate((5_000, 1, 1_000), total=100_000, first=1, last=2_000) == 10_000


def test_a_search_that_takes_too_long_is_stopped_and_the_next_one_works(workspace):
    def search_forever() -> None:
        with time_limit(connection, 20), connection.cursor() as cursor:
            cursor.execute(COUNTING, [10**9])

    with pytest.raises(SearchTooSlow):
        search_forever()

    say(workspace, "tea")
    with time_limit(connection, 5_000):
        assert len(ids(index_query("tea"))) == 1


def test_no_time_limit_is_left_behind(workspace):
    with time_limit(connection, 50):
        ids(index_query("tea"))

    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(COUNTING, [2_000_000])
        assert cursor.fetchone() == (2_000_000,)


def test_other_faults_of_the_database_are_raised_as_they_are():
    def ask_nonsense() -> None:
        with time_limit(connection, 1_000), connection.cursor() as cursor:
            cursor.execute("SELECT nonsense FROM nowhere")

    with pytest.raises(Exception, match="nowhere"), transaction.atomic():
        ask_nonsense()
