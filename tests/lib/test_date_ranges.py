from datetime import date

import pytest

from memoryhub.lib.date_ranges import month_of


@pytest.mark.parametrize(
    ("day", "back", "expected"),
    [
        (date(2026, 11, 23), 0, (date(2026, 11, 1), date(2026, 11, 30))),
        (date(2026, 3, 31), 1, (date(2026, 2, 1), date(2026, 2, 28))),
        (date(2026, 1, 1), 1, (date(2025, 12, 1), date(2025, 12, 31))),
        (date(2026, 12, 31), 0, (date(2026, 12, 1), date(2026, 12, 31))),
        (date(2028, 2, 10), 0, (date(2028, 2, 1), date(2028, 2, 29))),
    ],
)
def test_a_month_has_its_first_and_last_day(day, back, expected):
    assert month_of(day, back=back) == expected
