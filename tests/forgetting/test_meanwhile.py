"""What an agent adds while something is forgotten doesn't keep it."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from threading import Event
from time import sleep
from typing import Any

import pytest

from knowledge_app.models import KnowledgeEntry
from knowledge_app.services.documents.editing import start_document
from knowledge_app.services.documents.revisions import revise_document
from knowledge_app.services.rows.key_values import write_value
from knowledge_app.services.rows.knowledge import add_knowledge
from knowledge_app.services.rows.observations import NewObservation
from memoryhub.agents.api_tokens import SCOPES, Caller, issue_token
from memoryhub.agents.operations import conversations, corrections, knowledge, memory, queries
from memoryhub.conversations import appending
from memoryhub.forgetting import additions, erasure
from memoryhub.forgetting.erasure import ErasureRequest
from memoryhub.forgetting.requests import request_forgetting
from memoryhub.lib.errors import Conflict, Invalid
from sessions_app.models import Workspace
from tests.api.conftest import caller, token_for
from tests.forgetting.test_forgetting import BY, CANARY, forget, holding
from tests.hub import NOW, run_jobs
from tests.races import WAIT, at_once

pytestmark = pytest.mark.django_db(transaction=True)
LIKES = f"{CANARY} likes tea"
Add = Callable[[Caller, datetime], object]


def message(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


ADDITIONS: dict[str, Add] = {
    "session": lambda agent, now: conversations.open_one(agent, "cli:new", title=LIKES, now=now),
    "session of that name": lambda agent, now: conversations.append(
        agent, f"telegram:{CANARY}", [message("Hi")], now=now
    ),
    "extraction": lambda agent, now: queries.extract(agent, LIKES, source=f"mail of {CANARY}", now=now),
    "knowledge": lambda agent, now: knowledge.learn(agent, LIKES, category="learned_fact", now=now),
    "observation": lambda agent, now: knowledge.remember(agent, [NewObservation("finding", LIKES)], now=now),
    "value": lambda agent, now: knowledge.set_value(agent, "drink", LIKES, now=now),
    "cached response": lambda agent, now: knowledge.keep_response(agent, "Who?", "m", LIKES, now=now),
    "history": lambda agent, now: memory.append_history(agent, LIKES, now=now),
    "fact": lambda agent, now: memory.add_fact(agent, "MEMORY.md", LIKES, now=now),
    "document": lambda agent, now: memory.write_document(
        agent, "MEMORY.md", f"# Memory\n\n- tea\n- {LIKES}\n", base=1, now=now
    ),
    "proposal": lambda agent, now: memory.propose_document(agent, "MEMORY.md", f"# Memory\n\n- {LIKES}\n", now=now),
    "line": lambda agent, now: memory.replace_line(agent, "MEMORY.md", "- tea", f"- {LIKES}", now=now),
    "correction": lambda agent, now: corrections.correct(
        agent, "knowledge", KnowledgeEntry.objects.get().pk, LIKES, now=now
    ),
    "reason": lambda agent, now: corrections.withdraw(
        agent, "knowledge", KnowledgeEntry.objects.get().pk, reason=LIKES, now=now
    ),
    "change": lambda agent, now: knowledge.correct_knowledge(
        agent, KnowledgeEntry.objects.get().pk, {"content": LIKES}, now=now
    ),
}


@pytest.fixture
def hub(workspace: Workspace) -> Workspace:
    """A workspace with the canary in one value."""
    workspace.cache_enabled = True
    workspace.save()
    write_value(workspace, "guest", CANARY, by=BY)
    add_knowledge(workspace, "Likes milk", category="learned_fact", by=BY)
    revise_document(start_document(workspace, "MEMORY.md"), "# Memory\n\n- tea\n", base=None, by=BY, reason="")
    return workspace


def meet(monkeypatch: pytest.MonkeyPatch, erase: Callable[[], object], add: Callable[[], object]) -> None:
    """Add something; erase when the addition has read what is forgotten, and before it stores anything."""
    read, real = Event(), additions.import_rules

    def slow(workspace: Workspace) -> Any:
        rules = real(workspace)
        if not read.is_set():
            read.set()
            sleep(WAIT)
        return rules

    def erase_then() -> object:
        assert read.wait(10)
        return erase()

    monkeypatch.setattr(additions, "import_rules", slow)
    monkeypatch.setattr(appending, "import_rules", slow)
    at_once(erase_then, add)


def erase(workspace: Workspace) -> None:
    """Erase the canary, with a second plan if more was added after the first one."""
    if isinstance(at_once(lambda: forget(workspace, "phrase", CANARY))[0], Conflict):
        forget(workspace, "phrase", CANARY)


@pytest.mark.parametrize("name", ADDITIONS)
def test_what_an_agent_adds_during_the_command_is_erased_or_refused(hub, monkeypatch, name):
    token, _ = issue_token(hub, "nanobot", tuple(SCOPES), by=BY)

    meet(monkeypatch, lambda: erase(hub), lambda: ADDITIONS[name](Caller(token, "rest"), NOW))

    assert hub.forgotten.exists()
    assert not holding("quicksilver")


@pytest.mark.slow
@pytest.mark.postgres
def test_what_a_run_is_asked_for_during_the_command_is_erased(hub, monkeypatch):
    token, _ = issue_token(hub, "nanobot", tuple(SCOPES), by=BY)
    agent, prompt = Caller(token, "rest"), {"prompt": f"Be kind to {CANARY}"}
    session = conversations.append(agent, "cli:main", [message("Hi")], now=NOW)["session"]

    meet(
        monkeypatch,
        lambda: erase(hub),
        lambda: conversations.ask_for_run(agent, session, "compression", options=prompt, now=NOW),
    )

    assert not holding("quicksilver")


@pytest.mark.parametrize("key", ["", "one"])
def test_what_is_added_over_rest_during_the_command_is_erased(hub, monkeypatch, key):
    agent = caller(token_for(hub))

    meet(
        monkeypatch,
        lambda: erase(hub),
        lambda: agent("POST", "/knowledge", {"content": LIKES}, Idempotency_Key=key),
    )

    assert not holding("quicksilver")


@pytest.mark.slow
@pytest.mark.postgres
def test_what_is_added_while_the_job_is_requested_and_erases_is_erased(hub, monkeypatch):
    token, _ = issue_token(hub, "nanobot", tuple(SCOPES), by=BY)

    def request() -> None:
        wish = ErasureRequest("phrase", (CANARY,), everywhere=True)
        request_forgetting(hub, wish, expected=1, reason="", by=BY)
        run_jobs()

    meet(
        monkeypatch,
        request,
        lambda: knowledge.learn(Caller(token, "rest"), LIKES, category="learned_fact", now=NOW),
    )

    assert not holding("quicksilver")


def test_an_addition_that_waits_for_the_command_is_refused(hub, monkeypatch):
    token, _ = issue_token(hub, "nanobot", tuple(SCOPES), by=BY)
    erasing, lock = Event(), erasure.lock_for_erasure

    def locked(*args: Any) -> bool:
        is_locked = lock(*args)
        erasing.set()
        sleep(WAIT)
        return is_locked

    def add() -> None:
        assert erasing.wait(10)
        knowledge.learn(Caller(token, "rest"), LIKES, category="learned_fact", now=NOW)

    monkeypatch.setattr(erasure, "lock_for_erasure", locked)
    _, refused = at_once(lambda: forget(hub, "phrase", CANARY), add)

    assert isinstance(refused, Invalid)
    assert not holding("quicksilver")
