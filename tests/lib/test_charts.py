import pytest

from memoryhub.lib.charts import EntryRange, Mark, minimap, proportion


def test_proportion_has_active_summary_and_saved_tokens():
    share = proportion(original=1000, active=200, summary=50)
    assert [(part.key, part.value, part.x, part.width) for part in share.parts] == [
        ("summary", 50, 0.0, 5.0),
        ("active", 200, 5.0, 20.0),
        ("saved", 750, 25.0, 75.0),
    ]
    assert share.ratio == 4.0


def test_proportion_saves_nothing_if_summaries_are_longer_than_their_entries():
    share = proportion(original=100, active=60, summary=90)
    assert [(part.key, part.width) for part in share.parts] == [("summary", 60.0), ("active", 40.0)]
    assert share.whole == 150


def test_proportion_of_an_empty_session_has_no_parts_and_no_ratio():
    share = proportion(original=0, active=0, summary=0)
    assert (share.parts, share.ratio) == ((), None)


def test_minimap_places_ranges_and_marks():
    chart = minimap(
        [EntryRange("folded", 0, 49, "Folded", "#summary-1"), EntryRange("live", 50, 99, "Live")],
        [Mark("pointer", 50, "Pointer"), Mark("epoch", 100, "End")],
        length=100,
    )
    assert [(part.kind, part.start, part.width) for part in chart.segments] == [
        ("folded", 0.0, 50.0),
        ("live", 50.0, 50.0),
    ]
    assert [mark.at for mark in chart.marks] == [50.0, 100.0]


def test_minimap_keeps_one_entry_of_many_visible_and_inside():
    segment = minimap([EntryRange("live", 49_999, 49_999, "Last")], length=50_000).segments[0]
    assert segment.width == 0.4
    assert segment.start + segment.width == 100.0


def test_minimap_of_an_empty_session_is_empty():
    chart = minimap([], [Mark("pointer", 0, "Pointer")], length=0)
    assert (chart.segments, chart.marks[0].at) == ((), 0.0)


@pytest.mark.parametrize(
    ("stretches", "marks"),
    [
        ([EntryRange("live", 0, 10, "Too far")], []),
        ([EntryRange("live", 5, 4, "Backwards")], []),
        ([], [Mark("pointer", 11, "Too far")]),
        ([], [Mark("pointer", -1, "Before")]),
    ],
)
def test_minimap_rejects_ranges_outside_the_session(stretches, marks):
    with pytest.raises(ValueError, match="outside a session of 10"):
        minimap(stretches, marks, length=10)
