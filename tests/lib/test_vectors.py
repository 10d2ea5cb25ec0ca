from hypothesis import given
from hypothesis import strategies as st

from memoryhub.lib.vectors import pack, unpack


def test_decimals_round_trip_through_float32():
    values = [0.33207, -0.000123, 1.0, 0.1]

    assert unpack(pack(values)) == values


@given(st.lists(st.floats(width=32, allow_nan=False, allow_infinity=False)))
def test_every_float32_round_trips(values):
    assert pack(unpack(pack(values))) == pack(values)
