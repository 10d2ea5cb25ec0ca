from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoryhub.lib.search.factors import Decay, fuse, named_authors, recency_factor
from memoryhub.lib.search.hits import WeightedTerm, find_hits
from memoryhub.lib.search.neighbour_smoothing import SAME_SPEAKER, Contribution, combine_shares, missing_shares
from memoryhub.lib.search.question import Period
from memoryhub.lib.search.scoring import BY_USER, CHUNK, IN_PERIOD, LONG_ANSWER, Candidate, explain, rank
from memoryhub.lib.search.tokenizing import fold

NOW = datetime(2026, 6, 1, tzinfo=UTC)


def term(*words, **values):
    return WeightedTerm(words, **values)


def found(asked, text):
    return [fold(text)[start:end] for start, end in find_hits([asked], text)[0]]


def order(terms, candidates, **values):
    return [row.pk for row in rank(terms, candidates, 1_000, **values).rows]


def rows_of(*texts):
    return [Candidate(pk, text) for pk, text in enumerate(texts, start=1)]


@pytest.mark.parametrize(
    ("asked", "text", "hits"),
    [
        (term("deploy"), "Deploying was deployed; redeploy", ["deploying", "deployed"]),
        (term("happy"), "happiness of the happiest, happy", ["happiness", "happy"]),
        (term("hope"), "hoping, hopes, hop", ["hoping", "hopes"]),
        (term("possibility"), "possible or impossible", ["possible"]),
        (term("case"), "camelCase caseWorker snake_case showcase", ["case", "case", "case"]),
        (term("camelcase"), "camelCase", ["camelcase"]),
        (term("snake", "case"), "snake_case, snake: case, snake in a case", ["snake_case", "snake: case"]),
        (term("dep", is_prefix=True), "deploys depend on adept", ["deploys", "depend"]),
        (term("cafe"), "the Café", ["cafe"]),
        (term("绿茶"), "我喜欢绿茶abc", ["绿茶"]),
        (term("abc"), "绿茶abc", ["abc"]),
    ],
)
def test_words_match_by_stem_phrases_in_order_and_paired_words_anywhere(asked, text, hits):
    assert found(asked, text) == hits


@given(st.from_regex(r"[a-z]{1,12}(y|e|ies|ing|ibility|ational|fulness|ed|al|ly|ment)?", fullmatch=True))
def test_every_word_finds_itself(word):
    assert found(term(word), f"so {word}.") == [word]


def test_rare_words_count_more_than_common_ones():
    texts = rows_of("the harbour and the plan", "the harbour and the crane")

    assert order([term("plan", frequency=400), term("crane", frequency=2)], texts) == [2, 1]


def test_more_words_of_the_query_rank_above_a_repeated_word():
    texts = rows_of("crane crane crane", "a crane in the harbour")

    assert order([term("crane"), term("harbour")], texts) == [2, 1]


def test_adjacent_words_of_the_query_count_more():
    texts = rows_of("a crane by the blue harbour", "a blue crane by the harbour")

    assert order([term("blue"), term("crane")], texts) == [2, 1]


def test_words_that_the_graph_added_count_less():
    texts = rows_of("a ship", "a crane")

    assert order([term("ship", weight=0.4), term("crane")], texts) == [2, 1]


def test_author_and_date_are_searched_too():
    rows = [Candidate(1, "well", "Ines 8 May 2023"), Candidate(2, "well", "Ines 9 June 2023")]

    assert order([term("june")], rows) == [2, 1]


def test_entries_by_named_authors_come_first():
    rows = [Candidate(pk, "the harbour", author=author) for pk, author in enumerate(["Rui", "Ines"])]

    assert order([term("ines"), term("harbour")], rows, authors=["Rui", "Ines"]) == [1, 0]
    assert order([term("ines"), term("rui"), term("harbour")], rows, authors=["Rui", "Ines"]) == [0, 1]


def test_a_part_of_a_name_names_one_author_or_nobody():
    assert named_authors({"ana"}, ["Ana Silva", "Rui Silva"]) == {"Ana Silva"}
    assert named_authors({"silva"}, ["Ana Silva", "Rui Silva"]) == frozenset()
    assert named_authors({"ana"}, ["Ana"]) == frozenset()


def test_neighbours_contribute_missing_shares():
    rows = [Candidate(pk, text, position=(pk, 0, 0)) for pk, text in enumerate(["a crane", "a crane too"])]
    question = Candidate(7, "where is the harbour", position=(1, 0, 1))

    assert order([term("crane"), term("harbour", frequency=9)], [*rows, question])[-1] == 0


def test_neighbours_outside_the_candidates_are_loaded():
    asked = []

    def load(positions):
        asked.extend(positions)
        return [Candidate(9, "by the old bridge", position=(1, 0, 5))]

    ranking = rank([term("crane")], [Candidate(3, "where is the crane", position=(1, 0, 4))], 50, load=load)

    assert asked == [(1, 0, 5), (1, 0, 3), (1, 0, 6), (1, 0, 2)]
    assert [row.pk for row in ranking.rows] == [3, 9]
    assert 0 < ranking.rows[1].coverage < 1


def test_an_entry_contributes_to_its_session_mostly_to_later_entries():
    missing = missing_shares({(1, 0, 4): Contribution(1.0, {0: 0.5}, 100)})

    assert sorted(missing) == [(1, 0, 2), (1, 0, 3), (1, 0, 5), (1, 0, 6)]
    assert missing[1, 0, 5][0] == pytest.approx(1 - 0.7 * 0.5)
    assert missing[1, 0, 5][0] < missing[1, 0, 3][0] < missing[1, 0, 2][0]


def test_long_entries_contribute_less():
    brief, long = (
        missing_shares({(1, 0, 4): Contribution(1.0, {0: 0.5}, length)})[1, 0, 5][0] for length in (400, 1_600)
    )

    assert 1 - long == pytest.approx((1 - brief) / 2)


def test_the_next_entry_of_the_same_speaker_gains_less():
    given = {(1, 0, 4): Contribution(1.0, {0: 0.5}, 100)}
    same, other = (
        missing_shares(given, {(1, 0, 4): "Ines", (1, 0, 5): name})[1, 0, 5][0] for name in ("Ines", "Rui")
    )

    assert 1 - same == pytest.approx((1 - other) * SAME_SPEAKER)
    assert missing_shares(given, {(1, 0, 4): "Ines", (1, 0, 6): "Ines"})[1, 0, 6] == missing_shares(given)[1, 0, 6]


def test_what_users_said_and_the_named_time_score_higher():
    texts = [
        Candidate(1, "the harbour", role="assistant", occurred_at=NOW),
        Candidate(2, "the harbour", role="user"),
        Candidate(3, "the harbour", role="assistant", occurred_at=NOW - timedelta(days=400)),
    ]
    named = [Period(NOW - timedelta(days=1), NOW + timedelta(days=1))]
    terms = [term("harbour")]

    assert order(terms, texts) == [1, 2, 3]
    assert order(terms, texts, prefers_users=True) == [2, 1, 3]
    assert order(terms, texts, periods=named)[0] == 1
    rows = {row.pk: row for row in rank(terms, texts, 1_000, prefers_users=True, periods=named).rows}
    assert [rows[pk].factors.speaker for pk in (1, 2, 3)] == [1, BY_USER, 1]
    assert [rows[pk].factors.period for pk in (1, 2, 3)] == [IN_PERIOD, 1, 1]


def test_a_long_answer_ranks_below_what_was_said_briefly():
    filler = "word " * (CHUNK // 5)
    texts = [
        Candidate(1, f"the crane at the harbour {filler}", role="assistant"),
        Candidate(2, f"the crane at the harbour {filler}", role="user"),
        Candidate(3, "we saw the crane then and there at the harbour", role="assistant"),
    ]
    terms = [term("crane"), term("harbour")]

    ranked = rank(terms, texts, 1_000, prefers_users=True).rows

    assert [(row.pk, row.factors.speaker) for row in ranked] == [(2, BY_USER), (3, 1), (1, LONG_ANSWER)]
    assert {row.factors.speaker for row in rank(terms, texts, 1_000).rows} == {1}


@given(st.floats(0, 1), st.lists(st.floats(0, 1), max_size=5))
def test_combined_shares_are_at_most_one_and_at_least_the_rows_own(own, left):
    missing = {0: 1.0}
    for one in left:
        missing[0] *= one

    assert own - 1e-9 <= combine_shares({0: own}, missing)[0] <= 1


def test_long_texts_are_scored_by_their_best_chunk():
    filler = "word " * (CHUNK // 5)
    texts = rows_of(f"crane {filler * 3} harbour", f"{filler * 3} crane harbour")

    assert order([term("crane"), term("harbour")], texts) == [2, 1]


def test_equal_scores_keep_the_databases_order():
    ranking = rank([term("crane")], rows_of("x", "y", "z"), 10)

    assert [row.pk for row in ranking.rows] == [1, 2, 3]
    assert all(row.score > 0 for row in ranking.rows)


def test_equal_neighbours_come_newest_first():
    rows = [Candidate(1, "the crane", position=(1, 0, 0)), Candidate(2, "the crane", position=(2, 0, 0))]
    more = [Candidate(pk, "well", position=(session, 0, 1)) for pk, session in ((5, 1), (6, 2))]

    assert order([term("crane")], rows, load=lambda _: more) == [1, 2, 6, 5]


def test_explain_returns_the_parts_of_a_score():
    rows = [Candidate(1, "the blue crane", position=(1, 0, 0)), Candidate(2, "a harbour", position=(1, 0, 1))]
    ranking = rank([term("blue"), term("crane", frequency=40), term("harbour")], rows, 50)
    best = ranking.rows[0]

    parts = {part.text: part for part in explain(best, ranking.term_weights)}

    assert best.score == pytest.approx(sum(part.score for part in parts.values()) * (1 + 0.15 * best.own.bigrams))
    assert (best.pk, best.own.bigrams, parts["crane"].count, parts["crane"].frequency) == (1, 1, 1, 40)
    assert parts["harbour"].share == 0 < parts["harbour"].from_neighbours


@pytest.mark.parametrize("text", ["", "\ud800", "\u0301", "aB" * 9_000, "crane" * 2_000, "茶" * 20_000, "ﬁ" * 9_000])
def test_any_text_is_ranked(text):
    terms = [term("crane"), term("b"), term("茶"), term("fi", is_prefix=True), term("a", "b")]

    assert order(terms, rows_of(text, "crane", text)) != []
    assert order(terms, []) == []
    assert order([], rows_of(text)) == [1]


def test_recency_is_off_by_default():
    old = NOW - timedelta(days=3_000)

    assert recency_factor(old, Decay()) == 1
    assert recency_factor(old, Decay("floored", NOW)) == pytest.approx(0.95)
    assert recency_factor(NOW - timedelta(days=30), Decay("floored", NOW)) == pytest.approx(0.975)
    assert recency_factor(NOW - timedelta(hours=1_000), Decay("grip", NOW)) == pytest.approx(0.5)


@pytest.mark.parametrize("mode", ["floored", "grip"])
def test_future_times_count_as_now(mode):
    assert recency_factor(NOW + timedelta(days=9), Decay(mode, NOW)) == 1


def test_entries_without_a_time_get_the_minimum_of_floored_decay():
    assert recency_factor(None, Decay("floored", NOW)) == 0.95
    assert recency_factor(None, Decay("grip", NOW)) == 1


def test_newer_entries_come_first_among_equals():
    rows = [Candidate(pk, "crane", occurred_at=NOW - timedelta(days=days)) for pk, days in ((1, 90), (2, 1))]

    assert order([term("crane")], rows, decay=Decay("floored", NOW)) == [2, 1]


def test_lists_are_fused_by_rank_and_coverage():
    lists = {"entries": [("e1", 9.0, 1.0), ("e2", 8.0, 1.0)], "keys": [("k1", 50.0, 0.1)]}

    assert [key for key, _ in fuse(lists)] == ["e1", "e2", "k1"]


def test_hits_in_several_lists_come_first():
    lists = {"one": [("a", 1.0, 1.0), ("b", 1.0, 1.0)], "other": [("b", 1.0, 1.0)]}

    assert [key for key, _ in fuse(lists)] == ["b", "a"]
