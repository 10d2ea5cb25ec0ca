"""NOT in capitals is no operator, and a query that has it says so."""

import pytest

from tests.searches import asked


@pytest.mark.parametrize("text", ["cat NOT dog", "cat AND NOT dog", "NOT cat dog", "cat OR NOT dog"])
def test_not_in_capitals_is_noted_and_requires_nothing(text):
    query = asked(text)

    assert "NOT doesn't exclude words. To exclude one, write -word." in query.notes
    assert ([term.words[0] for term in query.terms], query.required, query.excluded) == (["cat", "dog"], (), ())


@pytest.mark.parametrize("text", ["cat not dog", '"cat NOT dog"', "cat -dog", "NOTE"])
def test_other_ways_to_write_it_are_not(text):
    assert asked(text).notes == ()
