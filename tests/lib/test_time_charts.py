from datetime import date, timedelta
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoryhub.lib.time_charts import (
    LAST,
    MEAN,
    Event,
    Series,
    chart_csv,
    round_ticks,
    running_total,
    short_number,
    time_chart,
)
from memoryhub.lib.time_units import MAX_COLUMNS

MONDAY = date(2025, 11, 3)


def days(count: int) -> date:
    return MONDAY + timedelta(days=count)


def series(key: str = "active", **values: float) -> Series:
    """Return a series; the names of the values are d0, d1 … for days from MONDAY on."""
    return Series(key, key.title(), {days(int(name[1:])): value for name, value in values.items()})


def stacked(**values: tuple[float, float]):
    active = series("active", **{name: pair[0] for name, pair in values.items()})
    folded = series("folded", **{name: pair[1] for name, pair in values.items()})
    return time_chart("Tokens", [active, folded])


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


def test_small_amounts_have_fractional_ticks():
    assert [short_number(tick, "$") for tick in round_ticks(0.035, is_whole=False)] == [
        "$0",
        "$0.01",
        "$0.02",
        "$0.03",
        "$0.04",
    ]


def test_without_days_there_are_no_columns():
    assert time_chart("Tokens", [series()]).columns == ()


def test_bars_are_stacked():
    active, folded = stacked(d0=(25, 50)).shapes
    assert [(bar.y, bar.height) for bar in active.bars] == [(68.75, 31.25)]
    assert [(bar.y, bar.height) for bar in folded.bars] == [(6.25, 62.5)]


def test_days_of_one_column_are_added_up():
    chart = time_chart("Tokens", [series(d0=1, d1=10, d500=1)])
    assert (chart.unit, chart.values[0]) == ("month", (11,))


def test_days_without_values_leave_a_gap():
    chart = time_chart("Tokens", [series(d0=1, d3=1)])
    assert [column.at for column in chart.columns] == [12.5, 87.5]
    assert chart.width == 25.0


@pytest.mark.parametrize(
    ("span", "unit", "label"),
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
def test_longer_ranges_use_longer_units_and_name_them(span, unit, label):
    chart = time_chart("Tokens", [series(**{"d0": 1, f"d{span}": 1})])
    assert (chart.unit, chart.columns[0].label) == (unit, label)
    assert (chart.unit_label, chart.title) == (unit.title(), f"Tokens by {unit}")
    assert chart.note == f"by {unit} of writing (UTC)"


def test_a_chart_can_have_a_least_unit():
    assert time_chart("Facts", [series(d0=1)], least="week").title == "Facts by week"


def test_a_chart_of_levels_is_titled_without_a_unit():
    assert time_chart("Messages over time", [series(d0=1)], how=LAST).title == "Messages over time"


@given(st.lists(st.tuples(st.dates(), st.integers(0, 10**9), st.integers(0, 10**9)), min_size=1))
def test_every_bar_fits_and_nothing_is_lost(rows):
    several = [Series(str(place), "x", {row[0]: row[place] for row in rows}) for place in (1, 2)]
    chart = time_chart("Tokens", several)
    assert len(chart.columns) <= MAX_COLUMNS
    assert sum(sum(row) for row in chart.values) == sum(sum(one.values.values()) for one in several)
    for shape in chart.shapes:
        for bar in shape.bars:
            assert bar.y >= -0.01
            assert bar.y + bar.height <= 100.01
            assert bar.x + bar.width <= 100.01
    for column in chart.columns:
        assert column.first <= column.last
        assert 0 <= column.at <= 100


def test_there_are_few_date_labels_including_both_ends():
    chart = time_chart("Tokens", [series(**{f"d{n}": 1 for n in range(40)})])
    assert len(chart.x_ticks) == 5
    assert (chart.x_ticks[0].label, chart.x_ticks[-1].label) == ("3 Nov", "12 Dec")


def test_tick_labels_are_short():
    chart = time_chart("Tokens", [series(d0=1_200_000)])
    assert [tick.label for tick in chart.y_ticks] == ["0", "500k", "1M", "1.5M"]


def test_a_line_is_drawn_in_order_of_time():
    line, area = (lambda shape: (shape.line, shape.area))(
        time_chart("Total", [series(d4=10, d0=0, d1=5)], how=LAST).shapes[0]
    )
    assert line == "M10,100 L30,50 L90,0"
    assert area == "M10,100 L30,50 L90,0 V100 H10 Z"


def test_a_line_of_one_day_is_horizontal():
    assert time_chart("Total", [series(d0=5)], how=LAST).shapes[0].line == "M0,16.667 L100,16.667"


def test_a_line_over_many_years_is_labelled_by_year():
    many = Series("active", "x", {date(1970, 1, 1): 1, date(2025, 1, 1): 2})
    labels = [tick.label for tick in time_chart("Total", [many], how=LAST).x_ticks]
    assert (labels[0], labels[-1]) == ("1970", "2025")


def test_levels_are_carried_forward_and_averages_are_not():
    two = [series("a", d0=4, d9=6), series("b", d4=2)]
    assert time_chart("Total", two, how=LAST).values == ((4, None), (4, 2), (6, 2))
    assert time_chart("Average", two, how=MEAN).values == ((4, None), (None, 2), (6, None))


def test_a_range_limits_the_days_and_keeps_the_level_before_it():
    between = (days(2), days(5))
    chart = time_chart("Total", [series(d0=4, d3=6, d9=8)], how=LAST, between=between)
    assert [(column.first, column.cells) for column in chart.columns] == [
        (days(2), ("4",)),
        (days(3), ("6",)),
        (days(5), ("6",)),
    ]
    assert time_chart("Tokens", [series(d0=4, d3=6)], between=between).values == ((6,),)


def test_the_columns_at_both_ends_cover_only_days_of_the_range():
    chart = time_chart("Facts", [series(d1=1, d9=1)], least="week")
    assert [(column.first, column.last) for column in chart.columns] == [(days(1), days(6)), (days(7), days(9))]


def test_runs_and_imports_within_the_range_are_marked():
    events = [Event("run", days(1), "2 runs"), Event("import", days(1), "1 import"), Event("run", days(40), "late")]
    chart = time_chart("Tokens", [series(d0=1, d3=1)], events=events)
    assert [(tick.at, tick.label, tick.kind) for tick in chart.events] == [
        (37.5, "1 import", "import"),
        (37.5, "2 runs", "run"),
    ]
    assert [(column.cells, column.note) for column in chart.columns] == [
        (("1",), ""),
        (("0",), "1 import, 2 runs"),
        (("1",), ""),
    ]


def test_figures_have_units():
    assert time_chart("Cost", [series(d0=0.01234)], unit="$").columns[0].cells == ("$0.0123",)
    assert time_chart("Time", [series(d0=3.14)], how=MEAN, unit="s").columns[0].cells == ("3.1 s",)


def test_csv_has_days_figures_and_no_formulas():
    one = Series("active", "=SUM(A1)", {MONDAY: 1200, days(1): 0.5})
    assert chart_csv(time_chart("Tokens", [one], events=[Event("run", MONDAY, "1 run")])).splitlines() == [
        '"from","to","\'=SUM(A1)","events"',
        '"2025-11-03","2025-11-03","1200","1 run"',
        '"2025-11-04","2025-11-04","0.5",""',
    ]


def test_a_running_total_is_in_order_of_time():
    assert running_total({days(1): 2, MONDAY: 3, days(2): -1}) == {MONDAY: 3, days(1): 5, days(2): 4}
