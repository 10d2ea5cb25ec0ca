"""Forgotten content doesn't come back by what agents add over REST and MCP, and no message is lost."""

from __future__ import annotations

from threading import Event
from time import sleep
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from knowledge_app.models import Fact, HistoryEntry, KnowledgeEntry, MemoryDocument, Observation
from knowledge_app.services.documents.editing import find_or_start_document
from knowledge_app.services.documents.revisions import revise_document
from knowledge_app.services.rows.key_values import write_value
from knowledge_app.services.rows.knowledge import add_knowledge
from memoryhub.agents.api_tokens import SCOPES, Caller, issue_token
from memoryhub.agents.operations.corrections import correct
from memoryhub.conversations.appending import record_entries
from memoryhub.forgetting import erasure, matching
from memoryhub.forgetting.additions import remembered_document
from memoryhub.forgetting.erasure import lift
from memoryhub.forgetting.import_filter import import_rules
from memoryhub.lib.errors import Invalid
from sessions_app.models import Entry, Run, Session, Workspace
from sessions_app.services.audit import By
from sessions_app.services.parsing import read_batch
from tests.api.conftest import Call, caller, token_for
from tests.forgetting.test_forgetting import BY, CANARY, forget, holding
from tests.hub import AGENT, NOW, raises_code
from tests.races import WAIT, at_once

pytestmark = pytest.mark.django_db
SAID = f"Good morning\nI met {CANARY} yesterday\nThe pool opens at nine"


@pytest.fixture(params=["phrase", "person"])
def forgotten(request, workspace: Workspace) -> Workspace:
    """A workspace in which the canary was forgotten, as a phrase or as a person."""
    write_value(workspace, "guest", CANARY, by=BY)
    forget(workspace, request.param, CANARY)
    assert not holding(CANARY)
    return workspace


@pytest.fixture
def agent(forgotten: Workspace) -> Call:
    return caller(token_for(forgotten))


def message(text: str, **values: str) -> dict[str, Any]:
    return {"role": "user", "content": text} | values


def test_appended_messages_lose_only_what_was_forgotten(agent):
    body = {"session": "cli:main", "entries": [message(SAID), message("Thanks")]}

    answers = [agent("POST", "/entries", body, Idempotency_Key="one").json() for _ in range(2)]

    first, second = Entry.objects.order_by("position")
    assert [answer["added"] for answer in answers] == [2, 2]
    assert first.content.startswith("Good morning\n")
    assert first.content.endswith("\nThe pool opens at nine")
    assert "[forgotten]" in first.content
    assert second.content == "Thanks"
    assert not holding("quicksilver")


def test_a_session_named_after_it_is_kept_under_another_key(agent):
    key = f"telegram:{CANARY}"
    opened = agent("POST", "/sessions", {"key": key, "title": f"With {CANARY}"}).json()
    appended = agent("POST", "/entries", {"session": key, "entries": [message("Hello")]}).json()

    context = agent("GET", f"/context?session={key}").json()

    assert opened["id"] == appended["session"] == context["session"] == Session.objects.get().pk
    assert opened["key"].startswith("forgotten:")
    assert [one["content"] for one in context["messages"]] == ["Hello"]
    assert not holding("quicksilver")


def test_a_repeated_batch_is_recognised(forgotten):
    rows = read_batch([message(SAID, timestamp="2026-03-01T10:00:00")], now=NOW)
    for _ in range(2):
        record_entries(forgotten, "cli:main", rows, by=By(AGENT, NOW), idempotency_key="one")

    assert Entry.objects.count() == 1


ROWS = [
    ("POST", "/knowledge", {"content": f"{CANARY} likes tea"}),
    ("POST", "/knowledge", {"content": "Likes tea", "tags": [CANARY]}),
    ("POST", "/knowledge", {"content": "Likes tea", "source": f"mail of {CANARY}"}),
    ("POST", "/observations", {"observations": [{"category": "finding", "content": f"{CANARY} likes tea"}]}),
    ("PUT", "/value?key=guest", {"value": CANARY}),
    ("PUT", f"/value?key={CANARY}", {"value": "tea"}),
    ("POST", "/history", {"text": f"Met {CANARY}"}),
    ("POST", "/documents/MEMORY.md/facts", {"fact": f"{CANARY} likes tea"}),
    ("PUT", f"/documents/{CANARY}.md?base=0", {"content": "# Guest\n"}),
]


@pytest.mark.parametrize(("method", "address", "body"), ROWS)
def test_a_row_with_it_is_refused(agent, method, address, body):
    answer = agent(method, address, body, If_Match='"0"')

    assert (answer.status_code, answer.json()["code"]) == (422, "forgotten")
    assert not KnowledgeEntry.objects.exists()
    assert not Observation.objects.exists()
    assert not HistoryEntry.objects.exists()
    assert not holding("quicksilver")


@pytest.mark.parametrize("proposes", [True, False])
def test_a_document_loses_only_what_was_forgotten(agent, forgotten, proposes):
    text = f"# Memory\n\n- The pool opens at nine\n- {CANARY} likes tea\n"
    body = {"content": text, "reason": f"{CANARY} said so"}
    if proposes:
        agent("POST", "/documents/MEMORY.md/proposals", body)
    else:
        agent("PUT", "/documents/MEMORY.md", body, If_Match='"0"')
        assert "- The pool opens at nine\n- [forgotten]" in MemoryDocument.objects.get().head.content

    assert not holding("quicksilver")


def test_a_document_named_after_it_is_refused_and_others_are_kept(forgotten):
    assert remembered_document(forgotten, "notes/pool.md", "Open at nine") == "Open at nine"

    with raises_code("forgotten"):
        remembered_document(forgotten, f"notes/{CANARY}.md", "Open at nine")


def test_a_correction_with_it_is_refused(agent, forgotten):
    entry = add_knowledge(forgotten, "Likes tea", category="learned_fact", by=BY).entry
    document = find_or_start_document(forgotten, "MEMORY.md")
    revise_document(document, "# Memory\n\n- tea\n", base=None, by=BY, reason="")

    answer = agent("PATCH", f"/knowledge/{entry.pk}", {"content": f"{CANARY} likes tea"})

    assert answer.json()["code"] == "forgotten"
    token, _ = issue_token(forgotten, "other", tuple(SCOPES), by=BY)
    for kind, pk in (("knowledge", entry.pk), ("fact", Fact.objects.get().pk)):
        with pytest.raises(Invalid, match="forgotten content"):
            correct(Caller(token, "rest"), kind, pk, f"{CANARY} likes tea", now=timezone.now())
    assert not holding("quicksilver")


def test_what_runs_are_asked_for_has_no_forgotten_words(agent, forgotten):
    session = record_entries(forgotten, "cli:main", read_batch([message("Hi")], now=NOW), by=BY).session
    agent("POST", "/extract", {"text": SAID, "source": f"mail of {CANARY}"})
    agent("POST", f"/sessions/{session.pk}/compress", {"prompt": f"Be kind to {CANARY}"})

    assert Run.objects.exists()
    assert not holding("quicksilver")


def test_a_cached_response_with_it_is_not_kept(agent):
    said = agent("PUT", "/cache", {"message": f"Who is {CANARY}?", "model": "m", "response": "A guest"})
    of_model = agent("PUT", "/cache", {"message": "Who is it?", "model": CANARY, "response": "A guest"})

    assert (said.json()["kept"], of_model.json()["kept"]) == (False, False)
    assert not holding("quicksilver")


def test_it_is_accepted_again_when_an_operator_allows_it(agent, forgotten):
    lift(forgotten.forgotten.get(), by=BY)

    assert agent("POST", "/knowledge", {"content": f"{CANARY} likes tea"}).status_code == 201


@pytest.mark.django_db(transaction=True)
def test_a_message_that_arrives_during_the_erasure_loses_it_too(workspace, monkeypatch):
    write_value(workspace, "guest", CANARY, by=BY)
    session = record_entries(workspace, "cli:main", read_batch([message("Hi")], now=NOW), by=BY).session
    erasing, lock = Event(), erasure.lock_for_erasure

    def locked(*args: Any) -> bool:
        is_locked = lock(*args)
        erasing.set()
        sleep(WAIT)
        return is_locked

    def append() -> None:
        erasing.wait()
        record_entries(workspace, session.key, read_batch([message(SAID)], now=NOW), by=BY)

    monkeypatch.setattr(erasure, "lock_for_erasure", locked)
    at_once(lambda: forget(workspace, "phrase", CANARY), append)

    assert "[forgotten]" in Entry.objects.latest("position").content
    assert not holding("quicksilver")


@pytest.mark.parametrize("is_new", [True, False])
def test_an_append_reads_once_what_was_forgotten(forgotten, is_new):
    rows = read_batch([message(SAID)], now=NOW)
    if not is_new:
        record_entries(forgotten, "cli:main", rows, by=By(AGENT, NOW))

    with CaptureQueriesContext(connection) as asked:
        record_entries(forgotten, "cli:main", rows, by=By(AGENT, NOW))

    assert sum("knowledge_app_forgotten" in one["sql"] for one in asked) == 1


def test_a_text_is_searched_once_for_all_that_was_forgotten(workspace, monkeypatch):
    for number in range(5):
        write_value(workspace, "guest", f"Guest {CANARY}{number}", by=BY)
        forget(workspace, "person", f"Guest {CANARY}{number}")
    rules = import_rules(workspace)
    assert rules
    text, searched = "The pool opens at nine\n" * 10, []
    tokens = matching._tokens
    monkeypatch.setattr(matching, "_tokens", lambda text: searched.append(text) or tokens(text))

    assert rules.text(text) == text
    assert rules.text(f"{text}Guest {CANARY}3 came") == f"{text}[forgotten]"
    assert searched.count(text) == 1
