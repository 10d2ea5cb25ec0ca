from datetime import UTC

import pytest

from memoryhub.lib.layouts.times import read_epoch, read_time


@pytest.mark.parametrize("text", ["9999-12-31 23:00", "0001-01-01 00:30"])
def test_a_time_near_the_limits_of_datetime_is_none(text):
    """In another time zone, it could overflow."""
    assert read_time(text, UTC) is None


def test_seconds_near_the_limits_of_datetime_are_none():
    assert read_epoch(-62135596800) == (None, "is not a time")
