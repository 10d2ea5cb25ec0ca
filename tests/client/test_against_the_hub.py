"""Both clients against the real API, in process and without sockets."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import httpx2
import pytest
from asgiref.sync import async_to_sync
from django.core.asgi import get_asgi_application
from django.core.signals import request_finished, request_started
from django.core.wsgi import get_wsgi_application
from django.db import close_old_connections
from django.utils import timezone

from memoryhub.agents.api_tokens import issue_token
from memoryhub.api import responses
from memoryhub.client import (
    AsyncMemoryHub,
    BadRequest,
    Conflict,
    MemoryHub,
    NotAuthenticated,
    NotFound,
    Refused,
    results,
)
from memoryhub.client.adapters.items import add_items, read_items, replace_items
from sessions_app.models import Entry, Session, Workspace
from sessions_app.services.audit import By
from tests.client.conftest import finish
from tests.hub import PERSON

ADDRESS = "http://testserver"
ALL = ("read", "append", "edit", "consolidate")
pytestmark = pytest.mark.django_db


def token_for(workspace: Workspace, *scopes: str) -> str:
    return issue_token(workspace, "-".join(scopes), scopes, by=By(PERSON, timezone.now()))[1]


def waiting(token: str) -> MemoryHub:
    return MemoryHub(ADDRESS, token, retries=0, transport=httpx2.WSGITransport(app=get_wsgi_application()))


def awaiting(token: str) -> AsyncMemoryHub:
    return AsyncMemoryHub(ADDRESS, token, retries=0, transport=httpx2.ASGITransport(app=get_asgi_application()))


@pytest.fixture(autouse=True)
def _the_connection_stays() -> Iterator[None]:
    """Keep requests from closing the connection, which would end the test's transaction."""
    for signal in (request_started, request_finished):
        signal.disconnect(close_old_connections)
    yield
    for signal in (request_started, request_finished):
        signal.connect(close_old_connections)


@pytest.fixture(params=["waiting", "awaiting"])
def call(request, workspace) -> Callable[..., Any]:
    """Return a function that calls a client method by name, with a token of all scopes."""
    hub = {"waiting": waiting, "awaiting": awaiting}[request.param](token_for(workspace, *ALL))
    if isinstance(hub, MemoryHub):
        return lambda name, *given, **options: at_once(getattr(hub, name)(*given, **options))
    return lambda name, *given, **options: async_to_sync(later)(hub, name, given, options)


def at_once(answer: Any) -> Any:
    return list(answer) if hasattr(answer, "__next__") else answer


async def later(hub: AsyncMemoryHub, name: str, given: tuple[Any, ...], options: dict[str, Any]) -> Any:
    return await finish(getattr(hub, name)(*given, **options))


def test_agent_workflow_over_the_client(call, workspace):
    assert call("me")["workspace"] == {"slug": "atlas", "name": "Atlas"}

    appended = call("append", "cli:main", "Which region?")
    call("append", appended["session"], [{"role": "assistant", "content": "eu-west-1"}])
    assert [entry["content"] for entry in call("entries", appended["session"])] == ["Which region?", "eu-west-1"]
    assert [message["content"] for message in call("context", "cli:main")["messages"]][-1] == "eu-west-1"

    call("remember", "Uploads above 50 MB time out.", category="lesson")
    assert call("recall", "uploads that time out")["lessons"] == ["Uploads above 50 MB time out."]

    call("write", "deploy/region", "eu-west-1")
    assert (call("read", "deploy/region"), call("keys", "deploy")) == ("eu-west-1", ["deploy/region"])
    assert call("search", "region", kinds=["entry"])["results"][0]["text"] == "Which region?"

    assert call("keep_response", "Hi", "small", "Hello") is True
    assert call("cached_response", "Hi", "small") == "Hello"


@pytest.mark.slow
@pytest.mark.postgres
def test_documents_history_and_knowledge_over_the_client(call):
    assert call("write_document", "MEMORY.md", "# Memory\n\n- One\n", base=0)["status"] == "written"
    with pytest.raises(Conflict) as raised:
        call("write_document", "MEMORY.md", "# Other\n", base=0)
    assert (raised.value.code, raised.value.details["head"]) == ("stale_base", 1)
    assert call("document", "MEMORY.md")["content"] == "# Memory\n\n- One\n"
    assert [row["revision"] for row in call("revisions", "MEMORY.md")] == [1]
    assert [row["name"] for row in call("documents")] == ["MEMORY.md"]
    [found] = call("search", "one", kinds=["memory"])["results"]
    assert call("why", found["id"])["fact"]["text"] == "One"
    proposal = call("propose", "MEMORY.md", "# Memory\n\n- One\n- Two\n", base=1, reason="said")
    assert [row["id"] for row in call("proposals")] == [proposal["id"]] == [call("proposal", proposal["id"])["id"]]

    assert call("add_fact", "Two")["status"] == "written"
    assert "hub.add_fact" in call("skill")
    call("note", "Moved the backups.")
    assert [row["content"] for row in call("history", "backups")] == ["Moved the backups."]

    entry = call("learn", "Tests run twice.", tags=["ci"])
    changed = call("change_knowledge", entry["id"], category="project_decision")
    assert changed.pop("run") is None
    assert call("knowledge", category="project_decision") == [changed]
    read = call("knowledge_entry", entry["id"])
    assert read == changed | {"access_count": 1, "accessed_at": read["accessed_at"]}
    assert "Tests run twice." in call("knowledge_prompt")


def test_items_are_replaced_in_one_call_or_not_at_all(workspace, monkeypatch):
    hub = waiting(token_for(workspace, *ALL))
    first, second, third = ({"role": "user", "content": text} for text in ("one", "two", "three"))
    add_items(hub, "cli:main", [first, second])

    replace_items(hub, "cli:main", [first, third])
    assert read_items(hub, "cli:main") == [first, third]

    with pytest.raises(BadRequest):
        replace_items(hub, "cli:main", [second, {"role": "nobody", "content": 1}])
    monkeypatch.setattr(MemoryHub, "append", lambda *_: pytest.fail("the call after the first one isn't needed"))
    replace_items(hub, "cli:main", [second])
    assert read_items(hub, "cli:main") == [second]
    assert Session.objects.get().epoch == 2

    replace_items(hub, "cli:main", [])
    assert read_items(hub, "cli:main") == []


def test_sessions_and_runs_over_the_client(call):
    session = call("open_session", "cli:main", "Deploys")
    call("append", session["id"], "Hello")

    assert call("sessions", channel="cli")[0]["entries"] == call("stats", session["id"])["entries"] == 1
    run = call("extract", "The cache is cold on Mondays.", source="nightly")
    assert [row["id"] for row in call("runs")] == [run["id"]] == [call("run", run["id"])["id"]]
    assert call("compress", session["id"])["kind"] == "compression"
    exported = call("export_session", session["id"], "nanobot").decode()
    assert "Hello" in exported
    imported = call("import_session", "cli_other.jsonl", exported.replace("cli:main", "cli:other"))
    assert (imported["added"]["entries"], imported["problems"]) == (1, [])
    assert call("archive_and_clear", session["id"])["kind"] == "consolidation"
    assert call("clear", session["id"])["epoch"] == 1
    assert call("observations") == []


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (results.Me, responses.Me),
        (results.Session, responses.SessionAnswer),
        (results.Figures, responses.Figures),
        (results.Entry, responses.EntryAnswer),
        (results.Appended, responses.AppendedAnswer),
        (results.Context, responses.ContextAnswer),
        (results.Imported, responses.ImportAnswer),
        (results.Run, responses.RunAnswer),
        (results.Revision, responses.RevisionAnswer),
        (results.Document, responses.DocumentAnswer),
        (results.Proposal, responses.ProposalAnswer),
        (results.Written, responses.WriteAnswer),
        (results.HistoryEntry, responses.HistoryAnswer),
        (results.KnowledgeEntry, responses.KnowledgeAnswer),
        (results.KnowledgeChanged, responses.KnowledgeChanged),
        (results.Observation, responses.ObservationAnswer),
        (results.Remembered, responses.RememberedAnswer),
        (results.Recalled, responses.RecallAnswer),
        (results.Why, responses.WhyAnswer),
        (results.Origin, responses.OriginAnswer),
        (results.Fact, responses.FactAnswer),
        (results.Message, responses.MessageAnswer),
        (results.Value, responses.ValueAnswer),
        (results.ValueWritten, responses.ValueWritten),
        (results.Found, responses.SearchAnswer),
        (results.Result, responses.SearchResult),
    ],
)
def test_client_types_match_the_response_schemas(ours, theirs):
    assert set(ours.__annotations__) == set(theirs.model_fields)


def test_repeated_call_has_one_effect(call):
    first = call("append", "cli:main", "Hello", idempotency_key="turn-1")

    assert call("append", "cli:main", "Hello", idempotency_key="turn-1") == first
    assert Entry.objects.count() == 1
    with pytest.raises(Conflict) as raised:
        call("append", "cli:main", "Other", idempotency_key="turn-1")
    assert raised.value.code == "idempotency_key_reused"


def test_problems_of_the_hub_become_client_errors(call, workspace):
    with pytest.raises(NotFound):
        call("read", "missing")
    with pytest.raises(BadRequest) as raised:
        call("append", "cli:main", [{"role": "nobody", "content": "Hello"}])
    assert raised.value.errors[0]["field"] == "entries[0].role"
    with pytest.raises(Refused):
        waiting(token_for(workspace, "read")).write("key", "value")
    with pytest.raises(NotAuthenticated):
        waiting("mh_0123456789_wrong").me()
