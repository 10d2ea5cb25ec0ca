"""A search that its time limit cut short says so, on the page and in answers to agents."""

from __future__ import annotations

import pytest
from django.urls import reverse

from memoryhub.lib.search.matching import SearchTooSlow
from memoryhub.search import Scope, counts, listing, ranking
from memoryhub.search.results import Question, answer
from tests.hub import NOW
from tests.searches import know

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


@pytest.mark.parametrize("sort", ["", "newest"])
def test_the_page_says_it_once(workspace, viewer_client, slow, sort):
    know(workspace, "the harbour")
    page = viewer_client.get(reverse("search", args=[workspace.slug]), {"q": "harbour", "sort": sort})

    assert page.content.decode().count(counts.INCOMPLETE) == 1
