import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoryhub.lib.text.list_alignment import align


@pytest.mark.parametrize(
    ("kept", "new", "verdict", "append_from", "offset"),
    [
        ("abcd", "abcd", "same", 4, 0),
        ("abcd", "abcdef", "grown", 4, 0),
        ("", "ab", "grown", 0, 0),
        ("abcdef", "efgh", "pruned", 2, 4),
        ("abcdef", "ef", "pruned", 2, 4),
        ("abcdef", "cd", "shorter", 2, 2),
        ("abcdef", "abc", "shorter", 3, 0),
        ("abc", "", "shorter", 0, 0),
        ("abcdef", "xy", "restarted", 0, 0),
        ("abcdef", "abx", "rewritten", 2, 0),
        ("aaab", "abaaab", "pruned", 2, 2),
    ],
)
def test_alignment_of_the_new_list_with_the_kept_one(kept, new, verdict, append_from, offset):
    alignment = align(kept, new, unique_hashes=True)

    assert (alignment.verdict, alignment.append_from, alignment.offset) == (verdict, append_from, offset)


def test_one_shared_record_without_a_time_is_a_coincidence():
    assert align("abc", "cxy", unique_hashes=False).verdict == "restarted"
    assert align("abc", "cxy", unique_hashes=True).verdict == "pruned"


@pytest.mark.parametrize(("kept", "new", "together"), [("abcd", "cdxy", "abcdxy"), ("abcd", "d", "abcd")])
def test_a_longer_overlap_without_times_is_not_duplicated(kept, new, together):
    alignment = align(kept, new, unique_hashes=False)

    assert alignment.verdict == "pruned"
    assert kept + new[alignment.append_from :] == together


@given(st.text("ab", max_size=8), st.text("ab", max_size=8))
def test_kept_plus_appended_records_end_with_the_new_list(kept, new):
    alignment = align(kept, new, unique_hashes=True)

    if alignment.verdict in ("same", "grown", "pruned"):
        assert (kept + new[alignment.append_from :]).endswith(new)
    if alignment.verdict == "shorter":
        assert kept[alignment.offset :].startswith(new)


@given(st.text("abc", max_size=8), st.text("abc", max_size=8))
def test_aligning_again_after_appending_adds_nothing(kept, new):
    alignment = align(kept, new, unique_hashes=True)
    if alignment.verdict in ("restarted", "rewritten"):
        return

    again = align(kept + new[alignment.append_from :], new, unique_hashes=True)

    assert again.append_from == len(new)
