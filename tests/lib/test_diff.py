from memoryhub.lib.diff import diff_lines


def test_a_changed_line_is_a_removal_and_an_addition():
    rows = diff_lines("a\nb\nc", "a\nB\nc")

    assert [(row.mark, row.text) for row in rows] == [("same", "a"), ("del", "b"), ("ins", "B"), ("same", "c")]


def test_long_unchanged_stretches_shrink():
    before = [str(number) for number in range(40)]

    rows = diff_lines("\n".join(before), "\n".join([*before, "new"]))

    assert rows[0].mark == "skip"
    assert rows[-1].mark == "ins"
    assert len(rows) == 5


def test_a_text_of_equal_lines_is_compared_without_matching_all_with_all():
    lines = ["- the same"] * 20_000

    rows = diff_lines("\n".join(lines), "\n".join([*lines, "- new"]))

    assert [row.text for row in rows if row.mark == "ins"] == ["- new"]
