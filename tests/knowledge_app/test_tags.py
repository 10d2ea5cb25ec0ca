"""Tags of knowledge entries, and how many there may be."""

import pytest

from knowledge_app.services.rows.knowledge import save_entry
from knowledge_app.services.rows.undoable_edits import edit_rows
from sessions_app.models import Run
from tests.hub import raises_code
from tests.knowledge_app.test_edits import BY, knowledge

pytestmark = pytest.mark.django_db


def test_tags_are_added_and_taken_away_in_their_order(workspace):
    row = knowledge(workspace, tags=["a", "b"])

    edit_rows(workspace, "knowledge", "tag", [row.pk], values={"add": ["c", "a"], "remove": ["b"]}, by=BY)

    row.refresh_from_db()
    assert row.tags == ["a", "c"]


@pytest.mark.parametrize(
    ("count", "add", "remove", "left"), [(49, "a", "", 50), (60, "", "0", 59), (60, "a", "0", 60)]
)
def test_tags_within_the_limit_are_changed(workspace, count, add, remove, left):
    row = knowledge(workspace, tags=[str(number) for number in range(count)])

    edit_rows(workspace, "knowledge", "tag", [row.pk], values={"add": [*add], "remove": [*remove]}, by=BY)

    row.refresh_from_db()
    assert len(row.tags) == left


@pytest.mark.parametrize("action", ["tag", "recategorise"])
def test_an_edit_that_would_give_a_row_too_many_tags_is_refused_with_the_row(workspace, action):
    row, other = knowledge(workspace, tags=[str(number) for number in range(49)]), knowledge(workspace, "likes cats")
    values = {"category": "user_preference", "add": ["a", "b"], "remove": []}

    with raises_code("too_many_tags") as caught:
        edit_rows(workspace, "knowledge", action, [other.pk, row.pk], values=values, by=BY)

    assert f"#{row.pk}" in caught.value.message
    row.refresh_from_db()
    other.refresh_from_db()
    assert (len(row.tags), other.tags, row.category) == (49, [], "learned_fact")
    assert not Run.objects.exists()


def test_an_entry_with_more_tags_than_allowed_can_lose_one_at_a_time(workspace):
    row = knowledge(workspace, tags=[str(number) for number in range(60)])

    save_entry(row, {"tags": row.tags[1:]}, by=BY)

    row.refresh_from_db()
    assert len(row.tags) == 59
    with raises_code("bad_knowledge"):
        save_entry(row, {"tags": [*row.tags, "new"]}, by=BY)


def test_merging_keeps_all_tags_even_beyond_the_limit_for_new_ones(workspace):
    keep = knowledge(workspace, tags=[f"a{number}" for number in range(40)])
    other = knowledge(workspace, "likes  tea!", tags=[f"b{number}" for number in range(40)])

    edit_rows(workspace, "knowledge", "merge", [[keep.pk, other.pk]], by=BY)

    keep.refresh_from_db()
    assert keep.tags == [f"a{number}" for number in range(40)] + other.tags
