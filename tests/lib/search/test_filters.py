"""The fields of a query: which become filters, and how filters are added and removed in its text."""

import pytest

from memoryhub.lib.search.query import Filter
from memoryhub.lib.search.query_editing import with_filter, without_filter
from tests.lib.search.test_query import asked, shown


@pytest.mark.parametrize(
    ("text", "field", "values"),
    [
        ("kind:history,knowledge", "kind", ("history", "knowledge")),
        ("KINDS:Entries,key-values,memories", "kind", ("entry", "key_value", "memory")),
        ('in:"tool calls"', "kind", ("tool_call",)),
        ("kind:summaries kind:tool-results", "kind", ("summary", "tool_result")),
        ("(kind:history)", "kind", ("history",)),
        ("from:Ann", "author", ("Ann",)),
        ('author:"Ann Lee",Bo', "author", ("Ann Lee", "Bo")),
        ("session:telegram:123", "session", ("telegram:123",)),
        ("tags:“a, b”,c,,c", "tag", ("a, b", "c")),
        ("(tag:auth)", "tag", ("auth",)),
        ("tool:f(x)", "tool", ("f(x)",)),
        ("source:notes/a.md", "source", ("notes/a.md",)),
        ("has:tags,pins", "has", ("tags", "pin")),
        ("has:tag", "has", ("tags",)),
    ],
)
def test_fields_become_filters(text, field, values):
    query = asked(text)

    assert query.filters == (Filter(field, values),)
    assert (query.terms, query.notes) == ((), ())


def test_excluded_values_are_separate_filters():
    assert asked("tag:a -tag:b tag:c -tag:d").filters == (
        Filter("tag", ("a", "c")),
        Filter("tag", ("b", "d"), is_excluded=True),
    )


@pytest.mark.parametrize(
    ("text", "expected", "note"),
    [
        ("kind:histry pool", ["kind histry", "pool"], 'kind: "histry" is not one of entry, message'),
        ("has:", ["has"], "has: needs one of tool, summary"),
        ("author: Ann", ["author", "ann"], "author: needs a value, as in author:value. It was searched as words."),
        ('tag:"" pool', ["tag", "pool"], "tag: needs a value, as in tag:value. It was searched as words."),
        ("after:soonish", ["after soonish"], 'after: "soonish" is not a date such as 2026-01-31'),
        ("until:soonish", ["until soonish"], 'until: "soonish" is not a date such as 2026-01-31'),
        ("-Since:soonish", [], 'since: "soonish" is not a date such as 2026-01-31'),
        ("from:", ["from"], "from: needs a value, as in from:value."),
        ("autor:x", ["autor x"], 'There is no field "autor". Did you mean author? It was searched as words.'),
    ],
)
def test_invalid_fields_are_searched_as_words_with_a_note(text, expected, note):
    query = asked(text)

    assert shown(query.terms) == expected
    assert query.filters == ()
    [found] = query.notes
    assert found.startswith(note)


def test_only_the_valid_values_of_a_field_filter():
    query = asked("kind:history,aurora")

    assert query.filters == (Filter("kind", ("history",)),)
    assert shown(query.terms) == ["aurora"]
    assert len(query.notes) == 1


def test_filters_are_added_and_removed_in_the_text():
    assert with_filter("pool limit", "kind", "history") == "kind:history pool limit"
    assert with_filter("pool", "author", "Ann Lee") == 'author:"Ann Lee" pool'
    assert with_filter("pool", "tag", 'say "x"') == 'tag:“say "x"” pool'
    assert with_filter("pool", "tag", 'a"”»b') == 'tag:"a ”»b" pool'
    assert with_filter("in:histories,memory x", "kind", "history") == "in:histories,memory x"
    assert without_filter("pool kind:history limit", "kind", "history") == "pool limit"
    assert without_filter('x in:memory,history tag:"a b",c', "kind", "history") == 'x kind:memory tag:"a b",c'
    assert without_filter("tag:a -tag:a x", "tag", "a") == "-tag:a x"
    assert without_filter("tag:a -tag:a x", "tag", "a", is_excluded=True) == "tag:a x"
