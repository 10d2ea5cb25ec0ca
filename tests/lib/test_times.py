from datetime import UTC, datetime

import pytest

from memoryhub.lib.layouts.times import read_epoch, read_time, split_prefix


@pytest.mark.parametrize("text", ["9999-12-31 23:00", "0001-01-01 00:30"])
def test_a_time_near_the_limits_of_datetime_is_none(text):
    """In another time zone, it could overflow."""
    assert read_time(text, UTC) is None


def test_seconds_near_the_limits_of_datetime_are_none():
    assert read_epoch(-62135596800) == (None, "is not a time")


@pytest.mark.parametrize("offset", ["+02:00", "+0200", " +02:00", "-0130", "UTC", " UTC", "Z", ""])
def test_the_time_of_a_history_entry_may_have_an_offset(offset):
    hour = {"+": 8, "-": 11}.get(offset.strip()[:1], 10)
    prefix, moment, rest = split_prefix(f"[2026-03-01 10:00{offset}] Tea was served.", UTC)

    assert (prefix, rest) == (f"[2026-03-01 10:00{offset}]", "Tea was served.")
    assert moment == datetime(2026, 3, 1, hour, 30 if hour == 11 else 0, tzinfo=UTC)
