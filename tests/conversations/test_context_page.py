"""The page of a context: its budget, blocks and copies."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest
from django.urls import reverse

from knowledge_app.services.documents.revisions import open_document, revise_document
from memoryhub.conversations.context import build_context, seen_in
from memoryhub.conversations.context_budget import budget_parts, next_drop, since_last_call
from memoryhub.conversations.provider_shapes import anthropic_body
from sessions_app.services.access_log import log_access
from sessions_app.services.audit import By
from tests.hub import AGENT, NOW, PERSON, add, compress, open_at, talk, turn

pytestmark = pytest.mark.django_db
LATER = NOW + timedelta(hours=1)


@pytest.fixture
def session(workspace):
    found = open_at(workspace)
    talk(found, 10)
    return found


def remember(workspace, name: str, text: str, base=None):
    return revise_document(open_document(workspace, name), text, base=base, reason="r", by=By(PERSON, NOW))


def page(client, session, **params):
    return client.get(reverse("session-context", args=["atlas", session.pk]), params)


def copied(client, session, shape: str, **params) -> str:
    response = client.get(reverse("context-json", args=["atlas", session.pk, shape]), params)
    assert response.status_code == 200
    assert response["Content-Type"] == "text/plain; charset=utf-8"
    return response.content.decode()


def positions(session, **limits) -> list[int]:
    return [part.entry.position for part in build_context(session, **limits).parts if part.entry]


def test_the_bar_splits_the_budget_by_source(workspace, session):
    remember(workspace, "SOUL.md", "Be kind.\n")
    remember(workspace, "MEMORY.md", "- likes tea\n")
    compress(session)
    built = build_context(session)

    parts = {part.key: part.value for part in budget_parts(built)}

    assert list(parts) == ["system", "memory", "summary", "messages", "tools", "free"]
    assert sum(parts.values()) == built.budget
    assert parts["memory"] == next(part.tokens for part in built.parts if part.source == "MEMORY.md")


def test_entries_in_and_out_of_the_context_agree_with_the_tab(session, viewer_client):
    response = page(viewer_client, session, max_messages=8)
    html = response.content.decode()

    assert response.context["kept"] + response.context["left_out"] == 40
    assert f"{response.context['kept']} of 40 messages; {response.context['left_out']} left out" in html
    assert 'Context <span class="count">40</span>' in html


@pytest.mark.parametrize("budget", [600, 1000, 1500])
def test_what_drops_out_next_drops_out_after_that_many_tokens(session, budget):
    before = build_context(session, max_tokens=budget)
    session.refresh_from_db()
    found = next_drop(before, session, 500)
    kept = [part.entry.position for part in before.parts if part.entry]

    assert kept[0] == found.first
    add(session, [{"role": "user", "content": "x" * (4 * max(0, found.after - 4))}], now=LATER)
    assert positions(session, max_tokens=budget)[0] == kept[0]
    add(session, [{"role": "user", "content": "word " * 40}], now=LATER)
    after = positions(session, max_tokens=budget)
    assert found.last not in after
    assert found.first not in after


def test_over_the_limit_of_entries_the_oldest_drops_out_next(session):
    built = build_context(session, max_messages=4)
    session.refresh_from_db()

    found = next_drop(built, session, 4)

    assert (found.first, found.last, found.after) == (36, 36, None)
    assert next_drop(build_context(session, max_tokens=0), session, 500) is None


def test_the_difference_from_an_agents_last_call_is_known(workspace, session, viewer_client):
    first = remember(workspace, "MEMORY.md", "- likes tea\n")
    assert since_last_call(build_context(session), session) is None
    log_access(workspace, "context.read", seen_in(build_context(session)), by=By(AGENT, NOW), via="rest")
    assert since_last_call(build_context(session), session).is_same

    second = remember(workspace, "MEMORY.md", "- likes coffee\n", base=first)
    add(session, turn(10), now=LATER)
    since = since_last_call(build_context(session, max_messages=40), session)

    assert (since.who, since.added, since.dropped) == ("atlas", 4, 4)
    assert since.revisions == [("MEMORY.md", first.number, second.number)]
    assert "4 messages added, <bdi>MEMORY.md</bdi> revision 1 → 2." in page(viewer_client, session).content.decode()


def test_only_the_latest_entries_are_shown_at_first(workspace, viewer_client):
    session = open_at(workspace)
    for number in range(130):
        add(session, [{"role": "user", "content": f"word {number} " * 60}], now=NOW + timedelta(minutes=number))

    response = page(viewer_client, session, max_tokens=0)

    assert len(response.context["entry_blocks"]) == 100
    assert "Show 30 earlier messages" in response.content.decode()
    assert len(response.content) < 150_000
    assert len(page(viewer_client, session, max_tokens=0, all=1).context["entry_blocks"]) == 130


def test_long_blocks_are_collapsed_and_cut_with_secrets_masked(workspace, viewer_client):
    session = open_at(workspace)
    token = f"ghp_{'a1B2' * 9}"
    for text in ("word " * 797 + token + " word" * 500, "hi"):
        add(session, [{"role": "user", "content": text}])

    response = page(viewer_client, session)

    long, short = response.context["entry_blocks"]
    assert (long.is_long, long.is_cut, short.is_long, short.is_cut) == (True, True, False, False)
    assert len(long.text) <= 4_000
    assert "ghp_a1B2" not in response.content.decode()


def test_a_context_is_copied_for_openai(session, viewer_client):
    body = json.loads(copied(viewer_client, session, "openai", max_messages=4))

    assert [message["role"] for message in body["messages"]] == ["user", "assistant", "tool", "assistant"]
    assert body["messages"][1]["tool_calls"][0]["function"]["name"] == "shell"


def test_a_context_is_copied_for_anthropic(session, viewer_client):
    body = json.loads(copied(viewer_client, session, "anthropic", max_messages=4))

    assert [message["role"] for message in body["messages"]] == ["user", "assistant", "user", "assistant"]
    [use], [result] = body["messages"][1]["content"], body["messages"][2]["content"]
    assert (use["type"], use["name"], use["input"]) == ("tool_use", "shell", {"c": "ls"})
    assert (result["type"], result["tool_use_id"]) == ("tool_result", use["id"])


def test_system_messages_and_odd_arguments_fit_anthropics_shape(workspace):
    session = open_at(workspace)
    call = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "not json"}}
    add(
        session,
        [
            {"role": "user", "content": "one"},
            {"role": "system", "content": "be brief"},
            {"role": "user", "content": [{"type": "text", "text": "two"}, {"type": "image", "url": "x"}]},
            {"role": "assistant", "content": "", "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "c1", "content": "out"},
        ],
    )

    body = anthropic_body(build_context(session))

    assert body["system"] == "be brief"
    assert [message["role"] for message in body["messages"]] == ["user", "assistant", "user"]
    texts = [block["text"] for block in body["messages"][0]["content"]]
    assert texts == ["one", 'two\n{"type": "image", "url": "x"}']
    assert body["messages"][1]["content"][0]["input"] == {"arguments": "not json"}


def test_a_context_is_copied_as_text_and_other_shapes_do_not_exist(session, viewer_client):
    assert "=== Recent Conversation ===" in copied(viewer_client, session, "plain")
    assert viewer_client.get(reverse("context-json", args=["atlas", session.pk, "x"])).status_code == 404
