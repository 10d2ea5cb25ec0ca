from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoryhub.lib.search.fields import FIELDS
from memoryhub.lib.search.query import parse
from memoryhub.search.completion_request import complete_names, complete_values, completion_at
from tests.lib.search.test_query import TEXTS

NOW = datetime(2026, 11, 21, 12, 30, tzinfo=UTC)


def typing(marked):
    """Return the completion context at the | of a text: kind, field, prefix, other values, replaced text."""
    text = marked.replace("|", "")
    request = completion_at(text, marked.index("|"))
    return request.what, request.field, request.prefix, request.typed, text[request.start : request.end]


@pytest.mark.parametrize(
    ("marked", "prefix", "replaced"),
    [
        ("au|", "au", "au"),
        ("pool ki|", "ki", "ki"),
        ("pool -Ki| x", "Ki", "Ki"),
        ("(ki|", "ki", "ki"),
        ("ki|nd:history", "ki", "kind:"),
        ('5" au|', "au", "au"),
    ],
)
def test_field_names_are_completed(marked, prefix, replaced):
    assert typing(marked) == ("name", "", prefix, (), replaced)


@pytest.mark.parametrize(
    ("marked", "field", "prefix", "typed", "replaced"),
    [
        ("kind:|", "kind", "", (), ""),
        ("x in:his|", "kind", "his", (), "his"),
        ("-kind:his|tory x", "kind", "his", (), "history"),
        ("kind:history,kn|", "kind", "kn", ("history",), "kn"),
        ("kind:history,|", "kind", "", ("history",), ""),
        ("kind:his|,knowledge x", "kind", "his", ("knowledge",), "his"),
        ('tag:"foo b|', "tag", "foo b", (), '"foo b'),
        ('tag:a,"foo b|ar",c x', "tag", "foo b", ("a", "c"), '"foo bar"'),
        ("author:“Ann L|", "author", "Ann L", (), "“Ann L"),
        ("session:telegram:1|", "session", "telegram:1", (), "telegram:1"),
        ("kind:history on:t|", "on", "t", (), "t"),
    ],
)
def test_field_values_are_completed(marked, field, prefix, typed, replaced):
    assert typing(marked) == ("value", field, prefix, typed, replaced)


@pytest.mark.parametrize(
    "marked", ["|", "pool |", "au|rora", '"see kind:hi|" x', "foo:b|", "tag::x|", "12:3|", "x1|"]
)
def test_other_texts_are_not_completed(marked):
    assert typing(marked)[0] == "nothing"


def test_a_cursor_outside_the_text_completes_nothing():
    assert completion_at("kind:", 99).what == completion_at("kind:", -1).what == "nothing"
    assert completion_at("x" * 600 + " kind:", 606).what == "nothing"


def test_names_are_offered_by_prefix():
    assert complete_names("A") == [("author:", "who wrote it"), ("after:", "since a day, month or year")]
    assert complete_names("sinc") == [("after:", "since a day, month or year")]
    assert [name for name, _ in complete_names("")] == [f"{name}:" for name in FIELDS]
    assert complete_names("aurora") == []


def test_fixed_values_are_offered_unless_already_typed():
    assert [value for value, _ in complete_values("kind", "tool-", now=NOW)] == ["tool_call", "tool_result"]
    assert [value for value, _ in complete_values("kind", "me", now=NOW, typed=["memories"])] == ["message"]
    assert complete_values("has", "pin", now=NOW) == [("pin", "pinned")]
    assert complete_values("author", "a", now=NOW) == []


def test_date_fields_show_a_hint():
    assert complete_values("after", "", now=NOW) == [
        ("today", "2026-11-21"),
        ("yesterday", "2026-11-20"),
        ("7d", "2026-11-14"),
        ("30d", "2026-10-22"),
        ("2026-11", "this month"),
    ]
    assert complete_values("on", "20", now=NOW) == [("2026-11", "this month")]


@pytest.mark.parametrize("field", FIELDS)
def test_completions_are_valid_queries(field):
    for value, _ in complete_values(field, "", now=NOW):
        [found] = parse(f"{field}:{value}", now=NOW).filters
        assert found.values == (value,)


@given(TEXTS, st.integers(-1, 600))
def test_completion_accepts_any_text(text, cursor):
    request = completion_at(text, cursor)

    assert 0 <= request.start <= request.end <= len(text)
    assert request.what == "nothing" or request.start <= cursor <= request.end
