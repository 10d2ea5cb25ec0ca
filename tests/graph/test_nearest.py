from __future__ import annotations

import numpy as np
import pytest

from memoryhub.graph.nearest import LEAST, MOST, Space, unit_rows
from memoryhub.lib.vectors import pack


def rows_of(*angles: float):
    """Return unit vectors in a plane by their angles in degrees."""
    turns = np.radians(np.array(angles))
    return np.stack([np.cos(turns), np.sin(turns)], axis=1).astype(np.float32)


def empty() -> Space:
    return Space([], np.zeros((0, 2), dtype=np.float32))


def test_neighbours_are_listed_nearest_first():
    space = empty()

    changed = space.place([1, 2, 3, 4], rows_of(0, 20, 50, 180))

    assert changed == {1, 2, 3, 4}
    assert [key for key, _ in space.nearest(1)] == [2, 3]
    assert [key for key, _ in space.nearest(3)] == [2, 1]
    assert space.nearest(4) == []
    assert space.nearest(1)[0][1] == pytest.approx(np.cos(np.radians(20)), abs=1e-5)


def test_a_new_term_changes_only_lists_near_it():
    space = empty()
    space.place([1, 2], rows_of(0, 180))

    assert space.place([3], rows_of(10)) == {3, 1}
    assert [key for key, _ in space.nearest(1)] == [3]


def test_lists_keep_the_ten_nearest():
    space = empty()
    space.place([0], rows_of(0))
    for number in range(1, 15):
        space.place([number], rows_of(30 - number))

    assert [key for key, _ in space.nearest(0)] == list(range(14, 14 - MOST, -1))


def test_adding_one_by_one_equals_adding_all_at_once():
    rows = rows_of(*np.random.default_rng(7).uniform(0, 360, 60))
    at_once, singly = empty(), empty()
    at_once.place(range(60), rows)
    for number in range(60):
        singly.place([number], rows[number : number + 1])

    for key in range(60):
        assert sorted(other for other, _ in singly.nearest(key)) == sorted(o for o, _ in at_once.nearest(key))


def test_a_term_that_moves_leaves_its_old_lists():
    space = empty()
    space.place([1, 2, 3], rows_of(0, 10, 100))

    changed = space.place([2], rows_of(95))

    assert changed == {1, 2, 3}
    assert space.nearest(1) == []
    assert [key for key, _ in space.nearest(3)] == [2]


def test_pairs_with_a_decision_are_left_out():
    space = Space([], np.zeros((0, 2), dtype=np.float32), blocked={(1, 2), (2, 1)})

    space.place([1, 2, 3], rows_of(0, 5, 10))

    assert [key for key, _ in space.nearest(1)] == [3]
    assert [key for key, _ in space.nearest(2)] == [3]


def test_known_neighbours_are_kept_and_long_lists_keep_their_length():
    space = Space(list(range(20)), rows_of(*range(20)))
    space.remember(0, [(other, None) for other in range(1, 15)])
    assert len(space.nearest(0)) == 14

    space.place([99], rows_of(0.1))

    assert len(space.nearest(0)) == 14
    assert space.nearest(0)[0][0] == 99
    assert all(cosine >= LEAST for _, cosine in space.nearest(0))


def test_vectors_are_normalised_and_zeros_stay_zeros():
    assert unit_rows([pack([3.0, 4.0]), pack([0.0, 0.0])]).tolist() == rows_list([[0.6, 0.8], [0, 0]])
    assert np.isfinite(unit_rows([pack([3e38, 3e38])])).all()


def rows_list(values):
    return np.array(values, dtype=np.float32).tolist()
