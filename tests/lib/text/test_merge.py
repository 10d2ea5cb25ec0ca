import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoryhub.lib.text.merge import merge_texts, overlay_texts

BASE = "# Facts\n- one\n- two\n- three"


def test_additions_of_both_sides_in_one_place_are_kept():
    merged = merge_texts("# A\n- a\n", "# A\n- a\n- b\n", "# A\n- a\n- c\n")

    assert merged.text == "# A\n- a\n- b\n- c\n"


def test_equal_additions_of_both_sides_are_kept_once():
    merged = merge_texts("- a\n", "- a\n- b\n- c\n", "- a\n- c\n- d\n")

    assert merged.text == "- a\n- b\n- c\n- d\n"


def test_additions_to_an_empty_text_are_both_kept():
    assert merge_texts("", "- a\n", "- b\n").text == "- a\n- b\n"


@pytest.mark.parametrize("base", ["", "\n", "  \n\n"])
def test_additions_to_a_blank_text_do_not_conflict(base):
    assert merge_texts(base, "- ours\n", "- theirs").text == "- ours\n- theirs\n"


def test_our_addition_comes_before_theirs():
    assert merge_texts("# A\n", "# A\n- z\n", "# A\n- b\n").text == "# A\n- z\n- b\n"


def test_changes_of_different_lines_are_merged():
    merged = merge_texts(BASE, BASE.replace("one", "ONE"), BASE.replace("three", "THREE"))

    assert merged.text == "# Facts\n- ONE\n- two\n- THREE"


def test_the_same_line_changed_differently_is_a_conflict():
    merged = merge_texts(BASE, BASE.replace("two", "2"), BASE.replace("two", "II"))

    assert merged.text is None
    assert merged.conflict_count == 1


def test_equal_changes_of_both_sides_are_applied_once():
    changed = BASE + "\n- four"

    assert merge_texts(BASE, changed, changed).text == changed


def test_an_equal_change_does_not_conflict_next_to_another():
    ours = BASE.replace("one", "ONE").replace("three", "THREE")

    assert merge_texts(BASE, ours, BASE.replace("one", "ONE")).text == ours


texts = st.lists(st.sampled_from(["a", "b", "c", ""]), max_size=6).map("\n".join)


@given(texts, texts)
def test_if_one_side_is_unchanged_the_other_is_returned(base, changed):
    assert merge_texts(base, base, changed).text == changed
    assert merge_texts(base, changed, base).text == changed


@given(texts, texts, texts)
def test_the_number_of_conflicts_does_not_depend_on_the_order(base, ours, theirs):
    assert merge_texts(base, ours, theirs).conflict_count == merge_texts(base, theirs, ours).conflict_count


def test_texts_of_equal_lines_are_merged():
    base = "\n".join(["- the same"] * 20_000)

    assert merge_texts(base, "- first\n" + base, base + "\n- last").text == f"- first\n{base}\n- last"


def test_an_overlay_resolves_conflicts_in_favour_of_theirs():
    base = "- a\n- b\n- c\n- d\n"

    text = overlay_texts(base, "- a by us\n- b\n- c\n- d\n- e by us\n", "- a by them\n- b\n- c\n- d\n")

    assert text == "- a by them\n- b\n- c\n- d\n- e by us\n"


def test_an_overlay_keeps_our_other_lines_of_a_conflicting_change():
    base = "- a\n- b\n- c\n"

    assert overlay_texts(base, "- a by us\n- b by us\n- c\n", "- a\n- b by them\n- c\n") == (
        "- a by us\n- b by them\n- c\n"
    )
