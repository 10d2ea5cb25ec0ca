from datetime import date, timedelta
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoryhub.lib.charts import (
    MAX_SLOTS,
    DayTokens,
    EntryRange,
    Mark,
    growth,
    minimap,
    proportion,
    round_ticks,
    stacked_bars,
)

MONDAY = date(2025, 11, 3)


@pytest.mark.parametrize(
    ("highest", "expected"),
    [
        (0, [0, 1]),
        (1, [0, 1]),
        (3, [0, 1, 2, 3]),
        (7, [0, 2, 4, 6, 8]),
        (100, [0, 50, 100]),
        (21_300, [0, 10_000, 20_000, 30_000]),
        (1_200_000, [0, 500_000, 1_000_000, 1_500_000]),
    ],
)
def test_ticks_are_round_and_reach_the_highest(highest, expected):
    assert round_ticks(highest) == expected


@given(st.integers(0, 10**15))
def test_ticks_are_few_even_and_sufficient(highest):
    ticks = round_ticks(highest)
    assert 2 <= len(ticks) <= 5
    assert ticks[-1] >= highest
    assert len({second - first for first, second in pairwise(ticks)}) == 1


def test_without_days_there_are_no_bars():
    assert stacked_bars([]).bars == ()


def test_folded_tokens_are_stacked_on_active_ones():
    bar = stacked_bars([DayTokens(MONDAY, active=25, folded=50)]).bars[0]
    assert (bar.active_rect.y, bar.active_rect.height) == (68.75, 31.25)
    assert (bar.folded_rect.y, bar.folded_rect.height) == (6.25, 62.5)


def test_a_repeated_day_is_one_bar():
    chart = stacked_bars([DayTokens(MONDAY, 1, 2), DayTokens(MONDAY, 10, 20)])
    assert [(bar.active, bar.folded) for bar in chart.bars] == [(11, 22)]


def test_days_without_entries_leave_a_gap():
    chart = stacked_bars([DayTokens(MONDAY, 1, 0), DayTokens(MONDAY + timedelta(days=3), 1, 0)])
    assert [bar.slot.x for bar in chart.bars] == [0.0, 75.0]
    assert chart.bars[0].slot.width == 25.0


@pytest.mark.parametrize(
    ("days", "unit", "label"),
    [
        (61, "day", "Mon 3 Nov 2025"),
        (62, "week", "Week of 3 Nov 2025"),
        (500, "month", "Nov 2025"),
        (3_000, "quarter", "3 months from Oct 2025"),
        (8_000, "year", "2025"),
        (100_000, "decade", "10 years from 2020"),
        (1_000_000, "century", "100 years from 2000"),
        (2_900_000, "millennium", "1000 years from 2000"),
    ],
)
def test_longer_ranges_use_longer_units_and_name_them(days, unit, label):
    chart = stacked_bars([DayTokens(MONDAY, 1, 0), DayTokens(MONDAY + timedelta(days=days), 1, 0)])
    assert (chart.unit, chart.bars[0].label) == (unit, label)
    assert (chart.unit_label, chart.title) == (unit.title(), f"Tokens by {unit}")
    assert chart.note == f"by {unit} of writing (UTC)"


@given(st.lists(st.builds(DayTokens, st.dates(), st.integers(0, 10**9), st.integers(0, 10**9)), min_size=1))
def test_every_bar_fits_and_no_token_is_lost(days):
    chart = stacked_bars(days)
    assert len(chart.bars) <= MAX_SLOTS
    assert chart.total == sum(day.active + day.folded for day in days)
    for bar in chart.bars:
        assert -0.01 <= bar.folded_rect.y <= bar.active_rect.y <= 100
        assert bar.slot.x + bar.slot.width <= 100.01


def test_there_are_few_date_labels_including_both_ends():
    chart = stacked_bars(DayTokens(MONDAY + timedelta(days=n), 1, 0) for n in range(40))
    assert len(chart.x_ticks) == 5
    assert (chart.x_ticks[0].label, chart.x_ticks[-1].label) == ("3 Nov", "12 Dec")


def test_tick_labels_are_short():
    chart = stacked_bars([DayTokens(MONDAY, 1_200_000, 0)])
    assert [tick.label for tick in chart.y_ticks] == ["0", "500k", "1M", "1.5M"]


def test_growth_is_drawn_in_order_of_time():
    chart = growth([(MONDAY + timedelta(days=4), 10), (MONDAY, 0), (MONDAY + timedelta(days=1), 5)])
    assert chart.line == "M0,100 L25,50 L100,0"
    assert chart.area == "M0,100 L25,50 L100,0 V100 H0 Z"


def test_growth_of_one_day_is_a_horizontal_line():
    assert growth([(MONDAY, 5)]).line == "M0,16.667 L100,16.667"


def test_growth_keeps_the_last_value_of_a_day():
    assert growth([(MONDAY, 5), (MONDAY, 7)]).points == ((MONDAY, 7),)


def test_growth_without_days_is_empty():
    assert growth([]).points == ()


def test_growth_over_many_years_is_labelled_by_year():
    labels = [tick.label for tick in growth([(date(1970, 1, 1), 1), (date(2025, 1, 1), 2)]).x_ticks]
    assert (labels[0], labels[-1]) == ("1970", "2025")


def test_proportion_has_active_summary_and_saved_tokens():
    share = proportion(original=1000, active=200, summary=50)
    assert [(part.key, part.value, part.x, part.width) for part in share.parts] == [
        ("summary", 50, 0.0, 5.0),
        ("active", 200, 5.0, 20.0),
        ("saved", 750, 25.0, 75.0),
    ]
    assert share.ratio == 4.0


def test_proportion_saves_nothing_if_summaries_are_longer_than_their_entries():
    share = proportion(original=100, active=60, summary=90)
    assert [(part.key, part.width) for part in share.parts] == [("summary", 60.0), ("active", 40.0)]
    assert share.whole == 150


def test_proportion_of_an_empty_session_has_no_parts_and_no_ratio():
    share = proportion(original=0, active=0, summary=0)
    assert (share.parts, share.ratio) == ((), None)


def test_minimap_places_ranges_and_marks():
    chart = minimap(
        [EntryRange("folded", 0, 49, "Folded", "#summary-1"), EntryRange("live", 50, 99, "Live")],
        [Mark("pointer", 50, "Pointer"), Mark("epoch", 100, "End")],
        length=100,
    )
    assert [(part.kind, part.start, part.width) for part in chart.segments] == [
        ("folded", 0.0, 50.0),
        ("live", 50.0, 50.0),
    ]
    assert [mark.at for mark in chart.marks] == [50.0, 100.0]


def test_minimap_keeps_one_entry_of_many_visible_and_inside():
    segment = minimap([EntryRange("live", 49_999, 49_999, "Last")], length=50_000).segments[0]
    assert segment.width == 0.4
    assert segment.start + segment.width == 100.0


def test_minimap_of_an_empty_session_is_empty():
    chart = minimap([], [Mark("pointer", 0, "Pointer")], length=0)
    assert (chart.segments, chart.marks[0].at) == ((), 0.0)


@pytest.mark.parametrize(
    ("stretches", "marks"),
    [
        ([EntryRange("live", 0, 10, "Too far")], []),
        ([EntryRange("live", 5, 4, "Backwards")], []),
        ([], [Mark("pointer", 11, "Too far")]),
        ([], [Mark("pointer", -1, "Before")]),
    ],
)
def test_minimap_rejects_ranges_outside_the_session(stretches, marks):
    with pytest.raises(ValueError, match="outside a session of 10"):
        minimap(stretches, marks, length=10)
