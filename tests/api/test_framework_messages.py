"""Messages of agent frameworks over REST: what is stored, shown and returned."""

import pytest

from sessions_app.models import Entry, Session
from sessions_app.services.parsing import MAX_CONTENT
from sessions_app.services.transcript import read_transcript
from tests.lib.test_message_shapes import (
    ANSWER,
    FUNCTION_CALL,
    FUNCTION_OUTPUT,
    PAI_CALL,
    PAI_RETURN,
    REASONING,
    TOOL_RESULT,
    TOOL_USE,
)

pytestmark = pytest.mark.django_db
QUESTION = {"role": "user", "content": "How much is it?"}
PAI_TEXT = {"part_kind": "text", "content": "It is 42."}
BATCHES = {
    "responses": [QUESTION, REASONING, FUNCTION_CALL, FUNCTION_OUTPUT, ANSWER],
    "anthropic": [
        QUESTION,
        {"role": "assistant", "content": [{"type": "thinking", "thinking": "hm", "signature": "s"}, TOOL_USE]},
        {"role": "user", "content": [TOOL_RESULT]},
        {"role": "assistant", "content": "It is 42."},
    ],
    "langchain": [
        {"type": "human", "data": {"content": QUESTION["content"]}},
        {"type": "ai", "data": {"content": "", "tool_calls": [{"name": "add", "args": {"a": 1}, "id": "c1"}]}},
        {"type": "tool", "data": {"content": "42", "tool_call_id": "c1"}},
        {"type": "ai", "data": {"content": "It is 42."}},
    ],
    "pydantic-ai": [
        {"kind": "request", "parts": [{"part_kind": "user-prompt", "content": QUESTION["content"]}]},
        {"kind": "response", "parts": [{"part_kind": "thinking", "content": "hm"}, PAI_CALL]},
        {"kind": "request", "parts": [PAI_RETURN]},
        {"kind": "response", "parts": [PAI_TEXT]},
    ],
}


def append(agent, *rows, status=201):
    answer = agent("POST", "/entries", {"session": "cli:main", "entries": list(rows)})
    assert answer.status_code == status, answer.content
    return answer.json()


def entries(agent):
    return agent("GET", f"/sessions/{Session.objects.get().pk}/entries").json()["items"]


def originals(agent):
    """Return what a framework sent, as an adapter reads it back."""
    found = []
    for entry in entries(agent):
        plain = {"role": entry["role"], "content": entry["content"]}
        found += [plain] if entry["items"] is None else entry["items"]
    return found


@pytest.mark.parametrize("rows", BATCHES.values(), ids=BATCHES.keys())
def test_tools_of_frameworks_become_calls_and_results(agent, rows):
    append(agent, *rows)

    messages = agent("GET", "/context?session=cli:main").json()["messages"]
    [call] = messages[1].pop("tool_calls")
    assert (call["id"], call["function"]["name"]) == ("c1", "add")
    assert [(one["role"], one["content"]) for one in messages] == [
        ("user", "How much is it?"),
        ("assistant", ""),
        ("tool", "42"),
        ("assistant", "It is 42."),
    ]
    turns = [
        turn
        for stretch in read_transcript(Session.objects.get(), epoch=0, start=None).stretches
        for turn in stretch.turns
    ]
    assert [turn.text for turn in turns] == ["How much is it?", "", "It is 42."]
    assert turns[1].calls[0].result.content == "42"
    assert originals(agent) == rows


def test_reasoning_is_kept_but_not_sent_or_shown(agent):
    append(agent, QUESTION)
    append(agent, REASONING)
    append(agent, ANSWER)

    assert [entry["injected"] for entry in entries(agent)] == [False, True, False]
    context = agent("GET", "/context?session=cli:main").json()
    assert [one["role"] for one in context["messages"]] == ["user", "assistant"]
    assert "hm" not in str(context)
    assert Entry.objects.get(is_injected=True).extra["reasoning"] == ["hm"]
    session = Session.objects.get()
    assert (session.entry_count, session.active_entry_count) == (3, 2)
    assert originals(agent) == [QUESTION, REASONING, ANSWER]


def test_metadata_is_returned_in_the_context(agent):
    append(agent, QUESTION | {"metadata": {"user": 7}}, {"role": "assistant", "content": "42", "metadata": None})

    asked, answered = agent("GET", "/context?session=cli:main").json()["messages"]
    assert asked == QUESTION | {"metadata": {"user": 7}}
    assert "metadata" not in answered
    assert [entry["metadata"] for entry in entries(agent)] == [{"user": 7}, None]


def test_malformed_items_are_refused_by_name(agent):
    refused = append(agent, QUESTION, FUNCTION_CALL | {"call_id": ""}, status=422)

    assert refused["errors"] == [
        {"field": "entries[1].call_id", "message": "entries[1].call_id must be a text of 1 to 512 characters."}
    ]
    assert not Session.objects.exists()


def test_items_are_bounded(agent):
    long = {"type": "reasoning", "summary": [], "encrypted_content": "x" * MAX_CONTENT}

    assert append(agent, ANSWER, long, status=422)["errors"][0]["field"] == "entries[0].content"
    many = [QUESTION, {"role": "user", "content": [TOOL_RESULT] * 1000}]
    assert append(agent, *many, status=422)["code"] == "bad_entry"


def test_repeated_items_with_an_idempotency_key_are_added_once(agent):
    body = {"session": "cli:main", "entries": BATCHES["responses"]}

    first, again = (agent("POST", "/entries", body, Idempotency_Key="k-1").json() for _ in range(2))

    assert first == again
    assert Entry.objects.count() == 4
