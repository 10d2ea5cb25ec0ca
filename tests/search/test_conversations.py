"""Sessions are found by what was said in them."""

from datetime import timedelta

import pytest
from django.urls import reverse

from memoryhub.search import Scope
from memoryhub.search.listing import count_matches, newest
from memoryhub.search.results import Question, answer
from memoryhub.search.shown_rows import seen_results
from sessions_app.models import Session
from tests.hub import NOW
from tests.searches import asked, say, scope_of, search

pytestmark = pytest.mark.django_db


@pytest.fixture
def talks(workspace):
    say(workspace, "the weather is fine", "the harbour is far", key="chat:a")
    say(workspace, "when does the harbour open", "and the ferry of the harbour?", "at nine", key="chat:b")
    say(workspace, "nothing of it", key="chat:c")
    return workspace


def keys(text, workspace, **options):
    return [hit.row.key for hit in search(text, workspace, **options).hits]


def test_sessions_are_ranked_by_what_was_said_in_them(talks):
    assert keys("kind:session harbour ferry", talks) == ["chat:b", "chat:a"]
    assert keys("harbour ferry", talks, kinds=["session"]) == ["chat:b", "chat:a"]
    assert keys("kind:session channel:cli harbour", talks) == []
    assert [one.row.key for one in newest(scope_of(talks), asked("kind:session ferry"), limit=9)[0]] == ["chat:b"]
    assert count_matches(scope_of(talks), asked("kind:session harbour")).by_kind == {"session": 2}


def test_titles_are_searched_too(talks):
    Session.objects.filter(key="chat:c").update(title="Harbour")
    Session.objects.filter(key="chat:a").update(title="Harbour and ferry")

    assert set(keys("kind:session harbour", talks)) == {"chat:a", "chat:b", "chat:c"}
    assert keys("kind:session harbour weather", talks)[0] == "chat:a"


def test_messages_stand_for_their_sessions_when_both_are_searched(talks):
    assert {hit.kind for hit in search("ferry", talks).hits} == {"entry"}


def test_filters_on_sessions_and_agents_own_sessions_are_left_out(talks):
    say(talks, "the harbour of the heartbeat", key="heartbeat")
    Session.objects.filter(key="chat:a").update(updated_at=NOW - timedelta(days=90))

    assert "heartbeat" not in keys("kind:session harbour", talks)
    day = f"{NOW - timedelta(days=30):%Y-%m-%d}"
    assert keys(f"kind:session before:{day} harbour", talks) == ["chat:a"]


def test_results_quote_the_best_message_and_log_it(talks):
    question = Question("harbour ferry", kinds=("session",))
    [first, _] = answer(Scope((talks.pk,)), question, now=NOW, explain=True)["results"]

    assert first["session"] == "chat:b"
    assert "ferry" in first["snippet"]
    assert {one.table for one in seen_results([first])} == {"sessions", "entries"}
    assert first["explanation"]["coverage"] == 1
    assert [part["count"] for part in first["explanation"]["terms"]] == [2, 1]
    assert sum(part["score"] for part in first["explanation"]["terms"]) > 0


def test_the_page_and_the_palette_show_the_conversation(talks, viewer_client):
    page = viewer_client.get(reverse("search", args=[talks.slug]), {"q": "kind:session ferry"}).content.decode()
    palette = viewer_client.get(reverse("palette"), {"q": "ferry", "workspace": talks.slug}).content.decode()
    url = reverse("sessions:detail", args=[talks.slug, Session.objects.get(key="chat:b").pk])

    assert "and the <mark>ferry</mark>" in page
    assert url in page
    assert url in palette
