from difflib import SequenceMatcher

from hypothesis import given
from hypothesis import strategies as st

from memoryhub.lib.text.diff import diff_lines, line_changes, word_changes

lines = st.lists(st.sampled_from("abc"), max_size=8)
few_lines = st.lists(st.sampled_from("aXYZ"), max_size=3)


def test_a_changed_line_is_a_removal_and_an_addition():
    rows = diff_lines("a\nb\nc", "a\nB\nc")

    assert [(row.mark, row.text) for row in rows] == [("same", "a"), ("del", "b"), ("ins", "B"), ("same", "c")]


def test_long_unchanged_ranges_are_collapsed():
    before = [str(number) for number in range(40)]

    rows = diff_lines("\n".join(before), "\n".join([*before, "new"]))

    assert rows[0].mark == "skip"
    assert rows[-1].mark == "ins"
    assert len(rows) == 5


def test_repetitive_texts_are_compared_in_reasonable_time():
    lines = ["- the same"] * 20_000

    rows = diff_lines("\n".join(lines), "\n".join([*lines, "- new"]))

    assert [row.text for row in rows if row.mark == "ins"] == ["- new"]


def test_a_reworded_line_shows_the_words_that_changed():
    rows = diff_lines("- the pool limit is 40\n", "- the pool limit is 60\n")

    assert rows[0].parts == ((False, "- the pool limit is "), (True, "40"))
    assert rows[1].parts == ((False, "- the pool limit is "), (True, "60"))


def test_very_different_lines_have_no_word_diff():
    rows = diff_lines("- likes tea\n", "entirely another sentence\n")

    assert [row.parts for row in rows[:2]] == [(), ()]


@given(st.text(max_size=60), st.text(max_size=60))
def test_the_pieces_of_a_word_diff_join_to_the_line(old, new):
    olds, news = word_changes(old, new)

    assert not olds or "".join(piece for _, piece in olds) == old
    assert not news or "".join(piece for _, piece in news) == new


def test_the_number_of_word_diffs_of_long_lines_is_limited(monkeypatch):
    monkeypatch.setattr("memoryhub.lib.text.diff.MAX_CHAR_PAIRS", 500)

    rows = diff_lines("tea at four today\ncake at four today", "tea at five today\ncake at five today")

    assert [bool(row.parts) for row in rows] == [True, False, True, False]


@given(lines, few_lines, few_lines, lines)
def test_changes_are_those_of_difflib(start, removed, added, end):
    before, after = [*start, *removed, *end], [*start, *added, *end]

    assert line_changes(before, after) == SequenceMatcher(None, before, after, autojunk=False).get_opcodes()


def test_a_change_of_new_lines_is_found_without_difflib(monkeypatch):
    monkeypatch.setattr("memoryhub.lib.text.diff.SequenceMatcher", None)

    assert line_changes(["# A", "", "one", "", "# B"], ["# A", "", "two", "three", "", "# B"]) == [
        ("equal", 0, 2, 0, 2),
        ("replace", 2, 3, 2, 4),
        ("equal", 3, 5, 4, 6),
    ]
