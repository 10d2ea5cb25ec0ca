"""How questions are asked: the words that phrase them, whose words they ask for, and the times that they name."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoryhub.lib.search.question import asks_for_assistant, in_periods, periods

NOW = datetime(2026, 11, 21, 12, 30, tzinfo=UTC)  # a Saturday


def names(text: str, day: str) -> bool:
    return in_periods(datetime.fromisoformat(f"{day}T12:00:00+00:00"), periods(text, NOW))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("What did you recommend for the garden?", True),
        ("the hostel that you recommended last time", True),
        ("Which beer did the assistant suggest?", True),
        ("what was the third of your suggestions", True),
        ("Can you recommend a hotel in Miami?", False),
        ("What did my sister suggest?", False),
        ("Did I tell you my sister's name?", False),
        ("deploy friday", False),
    ],
)
def test_questions_about_the_assistants_words_are_recognised(text, expected):
    assert asks_for_assistant(text) is expected


@pytest.mark.parametrize(
    ("text", "inside", "outside"),
    [
        ("What broke in March 2025?", "2025-03-20", "2026-03-20"),
        ("What broke in March?", "2019-03-20", "2019-06-20"),
        ("who came on 28 December", "2025-01-04", "2025-02-04"),
        ("who came on December 28, 2024?", "2024-12-29", "2025-12-29"),
        ("the plan of 2024", "2024-07-01", "2025-07-01"),
        ("what did I buy two months ago", "2026-09-20", "2026-11-01"),
        ("what did I buy a couple of weeks ago", "2026-11-07", "2026-11-20"),
        ("what did I buy 10 days ago", "2026-11-11", "2026-11-15"),
        ("what happened in the last three weeks", "2026-11-02", "2026-10-20"),
        ("what happened last Monday", "2026-11-16", "2026-11-19"),
        ("what happened last week", "2026-11-10", "2026-10-30"),
        ("what happened yesterday", "2026-11-20", "2026-11-15"),
        ("what broke last night", "2026-11-20", "2026-11-15"),
        ("what did I say this morning", "2026-11-21", "2026-11-15"),
        ("what happened in the previous month", "2026-10-10", "2026-08-10"),
        ("what did I buy half a year ago", "2026-05-20", "2026-01-10"),
        ("what was decided on 2026-03-04?", "2026-03-05", "2026-06-05"),
        ("the plan of 2026-03", "2026-03-20", "2026-06-05"),
        ("where did I live in early 2025", "2025-02-01", "2026-02-01"),
    ],
)
def test_times_in_a_question_are_resolved(text, inside, outside):
    assert names(text, inside)
    assert not names(text, outside)


@pytest.mark.parametrize(
    "text", ["may it rain", "they march on", "how many days ago", "99 March", "version 2024", "2026-13-01"]
)
def test_other_words_name_no_time(text):
    assert not periods(text, NOW)


@given(st.text(max_size=80), st.datetimes(timezones=st.just(UTC)))
def test_any_text_and_any_time_is_read(text, at):
    asks_for_assistant(text)
    in_periods(at, [*periods(text, NOW), *periods("28 December, 999 years ago", NOW)])
