from datetime import UTC

import pytest

from memoryhub.lib.layouts.times import read_epoch, read_time


@pytest.mark.parametrize("text", ["9999-12-31 23:00", "0001-01-01 00:30"])
def test_a_time_at_the_edge_of_the_calendar_is_none(text):
    """Shown in another zone it would fall outside of every calendar."""
    assert read_time(text, UTC) is None


def test_so_is_one_in_seconds():
    assert read_epoch(-62135596800) == (None, "is no time")
