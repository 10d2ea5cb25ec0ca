import math
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoryhub.search.grip_scoring import (
    HEADING,
    history_lines,
    history_text,
    log_opening,
    memory_lines,
    search_lines,
    tokens_of,
)

NOW = datetime(2026, 4, 1, 12, tzinfo=UTC)
LINES = ["the pool limit is 40", "tea", "pool pool limit", "limit of retries", "- [learned_fact] pool limit"]


def found(query, lines=LINES, limit=10, **values):
    return [hit.index for hit in search_lines(lines, query, limit=limit, **values)]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("The Pool_Limit is 40, not 400", ["pool_limit", "400"]),
        ("retry, Retry; re-try", ["retry", "retry", "try"]),
        ("café 标签 straße", ["caf", "stra"]),
        ("about ABOUT would", []),
        ("", []),
    ],
)
def test_words_are_ascii_and_longer_than_two_characters(text, words):
    assert tokens_of(text) == words


def test_a_score_sums_frequency_times_rarity_of_the_query_words():
    hits = search_lines(LINES, "pool retries", limit=10)

    pool, retries = math.log(6 / 4) + 1, math.log(6 / 2) + 1
    assert {hit.index: hit.score for hit in hits} == pytest.approx(
        {0: pool / 2, 2: 2 / 3 * pool, 3: retries / 2, 4: pool / 3}
    )
    assert [hit.index for hit in hits] == [3, 2, 0, 4]


def test_a_repeated_query_word_counts_twice():
    once, twice = (search_lines(LINES, query, limit=1)[0].score for query in ("pool limit", "pool limit pool limit"))

    assert twice == pytest.approx(2 * once)


def test_a_single_word_query_is_a_substring_search():
    assert found("POOL") == [0, 2, 4]
    assert found("the pool") == [0]
    assert found("  pool") == []
    assert found("4") == [0]
    assert [hit.score for hit in search_lines(LINES, "tea", limit=10)] == [None]


def test_a_query_without_words_returns_first_memory_lines_and_matching_history():
    assert found("to", limit=2, first_without_words=True) == [0, 1]
    assert found("of", limit=2) == [3]
    assert found("", limit=2) == [0, 1]


def test_a_category_is_scored_on_its_own():
    assert found("pool limit", category="learned_fact") == [4]
    assert search_lines(LINES, "pool limit", limit=1, category="learned_fact")[0].score == pytest.approx(2 / 3)
    assert found("pool limit", category="nothing") == []


def test_ties_keep_their_order_and_the_limit_applies():
    lines = ["pool limit"] * 5

    assert found("limit pool", lines, limit=3) == [0, 1, 2]
    assert found("limit pool", lines, limit=-1) == []


def test_decay_applies_to_lines_that_begin_with_a_time():
    lines = ["[2026-04-01 02:00:00 UTC] pool limit", "[2026-04-01 11:00:00 UTC] pool limit", "pool limit of the pool"]

    still = search_lines(lines, "pool limit", limit=10)
    aged = search_lines(lines, "pool limit", limit=10, decay=0.1, now=NOW)

    factors = {hit.index: hit.score / next(one.score for one in still if one.index == hit.index) for hit in aged}
    assert factors == pytest.approx({0: 1 / 2, 1: 1 / 1.1, 2: 1})


@pytest.mark.parametrize(
    "stamp",
    ["[2026-13-40 02:00:00 UTC]", "[2026-04-01 02:00 UTC]", "[2026-04-01 02:00:00]", " [2026-04-01 02:00:00 UTC]"],
)
def test_other_time_formats_do_not_decay(stamp):
    line = f"{stamp} pool limit"

    assert search_lines([line], "pool limit", limit=1, decay=0.1, now=NOW) == search_lines(
        [line], "pool limit", limit=1
    )


def test_lines_from_the_far_future_are_omitted():
    lines = ["[2026-04-01 22:00:00 UTC] pool limit", "[2026-04-02 12:00:00 UTC] pool limit"]

    assert found("pool limit", lines, decay=0.1, now=NOW) == []


def test_decay_requires_the_current_time():
    with pytest.raises(ValueError, match="now"):
        search_lines(LINES, "pool limit", limit=1, decay=0.1)


@given(st.text(), st.lists(st.text(), max_size=6), st.floats(0, 10))
def test_any_text_is_a_valid_query(query, lines, decay):
    hits = search_lines(lines, query, limit=4, decay=decay, now=NOW)

    assert len(hits) <= 4
    assert all(hit.line == lines[hit.index] for hit in hits)


def test_memory_lines_are_stripped_and_numbered_like_facts():
    assert memory_lines("# Memory\n\n  - one \u2028- two\r\n\t\n- three") == [
        (1, "# Memory"),
        (3, "- one"),
        (3, "- two"),
        (5, "- three"),
    ]


@given(st.text(st.sampled_from("ab \n\r\u2028\x0b")))
def test_memory_lines_follow_splitlines(text):
    assert [line for _, line in memory_lines(text)] == [line.strip() for line in text.splitlines() if line.strip()]


def test_history_lines_stay_unchanged():
    assert history_lines("[x] one \n\n  two\n") == ["[x] one ", "  two"]


def test_an_entry_is_formatted_as_in_grip():
    assert (
        history_text("User: hi\nthere \n", occurred_at=NOW, written="") == "[2026-04-01 12:00:00 UTC] User: hi\nthere"
    )
    assert history_text("hi", occurred_at=NOW, written="[2026-99-01 10:00:00 UTC]") == "[2026-99-01 10:00:00 UTC] hi"
    assert history_text("hi", occurred_at=NOW, written="2026-04-01 12:00") == "[2026-04-01 12:00:00 UTC] hi"
    assert history_text("hi", occurred_at=None, written="some day") == "[some day] hi"
    assert history_text("hi", occurred_at=NOW.replace(year=800), written="") == "[0800-04-01 12:00:00 UTC] hi"
    assert history_text("hi", occurred_at=None, written="") == "hi"


def test_a_log_starts_with_its_heading_or_the_rest_of_a_cut_entry():
    archived = "[2026-04-01 12:00:00 UTC] User: 一\n二\n三"

    assert log_opening(len(HEADING), "") == HEADING
    assert log_opening(4, archived) == "三\n"
    assert log_opening(8, archived) == "二\n三\n"
    assert [log_opening(count, archived) for count in (-1, 0, 3, 5, 999)] == [""] * 5
    assert log_opening(5, "") == ""
