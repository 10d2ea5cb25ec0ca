"""A search that its time limit cut short says so, on the page and in answers to agents."""

from __future__ import annotations

from contextlib import contextmanager
from unittest.mock import Mock

import pytest
from django.urls import reverse

from memoryhub.lib.search.matching import SearchTooSlow
from memoryhub.lib.search.query import parse
from memoryhub.search import Scope, counts, listing, ranking
from memoryhub.search.filters import FilteredKind
from memoryhub.search.results import Question, answer
from tests.api.conftest import caller, token_for
from tests.hub import NOW
from tests.searches import know, observe

pytestmark = pytest.mark.django_db


@pytest.fixture
def slow(monkeypatch):
    """Let every query with a time limit exceed it."""

    def time_limit(_connection, _milliseconds):
        raise SearchTooSlow("too slow")

    for module in (counts, listing, ranking):
        monkeypatch.setattr(module, "time_limit", time_limit)


@pytest.mark.parametrize(("text", "recency"), [("harbour", "off"), ("harbour", "newest"), ("kind:knowledge", "off")])
def test_answers_to_agents_say_it(workspace, slow, text, recency):
    know(workspace, "the harbour")

    assert answer(Scope((workspace.pk,)), Question(text, recency=recency), now=NOW)["notes"] == [counts.INCOMPLETE]


def test_recalls_say_it(workspace, slow, command, viewer_client):
    know(workspace, "the harbour")
    rest = caller(token_for(workspace))

    for told in (rest("GET", "/recall?query=harbour").json(), command("recall", "atlas", "harbour")):
        assert told["notes"] == [counts.INCOMPLETE]
    page = viewer_client.get(reverse("recall", args=[workspace.slug]), {"q": "harbour"})
    assert page.content.decode().count(counts.INCOMPLETE) == 1


def test_the_newest_rows_are_found_if_choosing_the_best_takes_too_long(workspace, monkeypatch):
    know(workspace, "the harbour")
    monkeypatch.setattr(ranking, "_at_most", lambda *_: ranking.CANDIDATES + 1)  # as with more rows
    monkeypatch.setattr(ranking, "best_matches", Mock(side_effect=SearchTooSlow("too slow")))

    found = answer(Scope((workspace.pk,)), Question("harbour"), now=NOW)

    assert [one["text"] for one in found["results"]] == ["the harbour"]
    assert found["notes"] == [counts.INCOMPLETE]


def test_rows_with_excluded_words_are_chosen_within_the_time_limit(workspace, monkeypatch):
    know(workspace, "zebra の")
    know(workspace, "zebra")
    monkeypatch.setattr(ranking, "all_matches", Mock(side_effect=AssertionError("without a limit")))

    found = answer(Scope((workspace.pk,)), Question("zebra -の"), now=NOW)

    assert [one["text"] for one in found["results"]] == ["zebra"]


@pytest.mark.parametrize("sort", ["", "newest"])
def test_the_page_says_it_once(workspace, viewer_client, slow, sort):
    know(workspace, "the harbour")
    page = viewer_client.get(reverse("search", args=[workspace.slug]), {"q": "harbour", "sort": sort})

    assert page.content.decode().count(counts.INCOMPLETE) == 1


def _limits(module):
    return [value for name, value in vars(module).items() if name.endswith("MILLISECONDS")]


@pytest.fixture
def hurried(monkeypatch):
    """Let every query exceed the usual time limits, but not longer ones."""
    usual = max(value for module in (counts, listing, ranking) for value in _limits(module))

    @contextmanager
    def time_limit(_connection, milliseconds):
        if milliseconds <= usual:
            raise SearchTooSlow("too slow")
        yield

    for module in (counts, listing, ranking):
        monkeypatch.setattr(module, "time_limit", time_limit)


@pytest.mark.parametrize("sort", ["", "newest"])
def test_the_page_offers_to_search_everything(workspace, viewer_client, hurried, sort):
    know(workspace, "the harbour")
    url = reverse("search", args=[workspace.slug])
    first = viewer_client.get(url, {"q": "harbour", "sort": sort})
    assert [row.pk for row in first.context["results"].rows] == []
    assert "Search everything" in first.content.decode()

    whole = viewer_client.get(first.context["whole_url"])
    assert [row.passage.text for row in whole.context["results"].rows] == ["the harbour"]
    assert counts.INCOMPLETE not in whole.content.decode()
    assert "Search everything" not in whole.content.decode()
    assert "whole=1" in whole.context["facets_url"]
    assert "whole=1" in whole.context["count_url"]


def test_every_interface_can_search_everything(workspace, hurried, command):
    know(workspace, "the harbour")
    rest = caller(token_for(workspace))

    assert rest("GET", "/search?query=harbour").json()["notes"] == [counts.INCOMPLETE]
    assert [one["text"] for one in rest("GET", "/search?query=harbour&whole=true").json()["results"]] == [
        "the harbour"
    ]
    assert command("search", "harbour", "--workspace", "atlas")["results"] == []
    assert len(command("search", "harbour", "--workspace", "atlas", "--whole")["results"]) == 1


@pytest.mark.parametrize(
    ("kind", "said"), [("knowledge", "Counting took too long"), ("", "At least <strong>1</strong>")]
)
def test_a_count_that_takes_too_long_claims_no_number(workspace, viewer_client, monkeypatch, kind, said):
    know(workspace, "the harbour")
    observe(workspace, "the harbour")
    matches = FilteredKind.matches

    def slow(filtered, **values):
        if filtered.kind.name == "knowledge":
            raise SearchTooSlow("too slow")
        return matches(filtered, **values)

    monkeypatch.setattr(FilteredKind, "matches", slow)
    url = reverse("search-count", args=[workspace.slug])

    page = viewer_client.get(url, {"q": "harbour", "kind": kind}).content.decode()
    assert said in page
    assert "More than" not in page
    assert 'name="all"' not in page


def test_facets_name_the_kinds_that_they_leave_out(workspace, viewer_client, hurried):
    know(workspace, "the harbour")
    url = reverse("search-facets", args=[workspace.slug])
    page = viewer_client.get(url, {"q": "harbour", "kind": "knowledge"})
    assert "Not counted here, as it took too long: knowledge entries." in page.content.decode()
    assert page.context["facets"] == []

    whole = viewer_client.get(url, {"q": "harbour", "kind": "knowledge", "whole": "1"})
    assert "Not counted" not in whole.content.decode()
    assert whole.context["facets"]


def test_facets_count_no_part_of_a_slow_kind(workspace, monkeypatch):
    """A kind whose months take too long doesn't appear among the kinds either: its counts would not agree."""
    know(workspace, "the harbour")

    def count(filtered, counted):
        counted["kind"][filtered.kind.name] += 1
        raise SearchTooSlow("too slow")

    monkeypatch.setattr(listing, "_count_facets", count)
    notes: list[str] = []
    assert listing.facets(Scope((workspace.pk,)), parse("harbour", now=NOW), kinds=["knowledge"], notes=notes) == {}
    assert notes == ["Not counted here, as it took too long: knowledge entries."]
