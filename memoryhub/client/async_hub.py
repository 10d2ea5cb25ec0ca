"""AsyncMemoryHub: the asynchronous client."""

from __future__ import annotations

import asyncio
import functools
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

import httpx2

from memoryhub.client import calls, results
from memoryhub.client.caching import OnError, skip_cache
from memoryhub.client.errors import MemoryHubError
from memoryhub.client.results import Page
from memoryhub.client.transport import (
    NO_RETRIES,
    Outcome,
    RetryPolicy,
    build_request,
    client_options,
    pause_after,
    read_answer,
)

T = TypeVar("T")
Ask = Callable[[str], Awaitable[str]]


class AsyncMemoryHub:
    """The asyncio version of MemoryHub, with the same methods. MemoryHub's docstrings have examples.

        async with AsyncMemoryHub("http://127.0.0.1:8765", token) as hub:
            await hub.append("cli:main", "Which region do we deploy to?")
            messages = (await hub.context("cli:main"))["messages"]
            async for key in hub.keys("deploy."):
                print(key, await hub.read(key))

    For another event loop, pass its ``sleep``.
    """

    def __init__(
        self,
        url: str,
        token: str,
        *,
        timeout: float = 10,
        retries: int = 3,
        patience: float = 60,
        transport: httpx2.AsyncBaseTransport | None = None,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._retry_policy = RetryPolicy(retries, patience)
        self._sleep = sleep
        self._client = httpx2.AsyncClient(transport=transport, **client_options(url, token, timeout))

    async def __aenter__(self) -> AsyncMemoryHub:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connections."""
        await self._client.aclose()

    async def me(self) -> results.Me:
        """Return the token's name, scopes and workspace."""
        return await self._send(calls.me())

    async def skill(self) -> str:
        """Return a skill in Markdown that tells an agent how to use its memory."""
        return await self._send(calls.skill())

    def sessions(self, key: str = "", channel: str = "") -> AsyncIterator[results.Session]:
        """Iterate over the sessions, or those of a channel."""
        return self._each(calls.sessions(key, channel))

    async def open_session(self, key: str, title: str = "", *, idempotency_key: str = "") -> results.Session:
        """Return the session with a key, creating it if needed."""
        return await self._send(calls.open_session(key, title), idempotency_key)

    async def session(self, session_id: int) -> results.Session:
        """Return a session and its counts."""
        return await self._send(calls.session(session_id))

    def entries(
        self, session_id: int, epoch: int | None = None, *, active: bool = False
    ) -> AsyncIterator[results.Entry]:
        """Iterate over the entries of an epoch, by default the current one."""
        return self._each(calls.entries(session_id, epoch, active=active))

    async def append(
        self, session: str | int, entries: calls.Entries, *, role: str = "user", idempotency_key: str = ""
    ) -> results.Appended:
        """Append a text or up to 1,000 entries to a session, by key (created if new) or by id."""
        return await self._send(calls.append(session, entries, role), idempotency_key)

    async def context(
        self,
        session: str | int,
        *,
        max_messages: int | None = None,
        max_tokens: int | None = None,
        text: bool = False,
    ) -> results.Context:
        """Return the messages to send to the model."""
        return await self._send(calls.context(session, max_messages, max_tokens, text=text))

    async def stats(self, session_id: int) -> results.Figures:
        """Return the token counts of a session, and what compression saved."""
        return await self._send(calls.stats(session_id))

    async def compress(self, session_id: int, *, prompt: str = "", idempotency_key: str = "") -> results.Run:
        """Request the compression of old entries into a summary."""
        return await self._send(calls.compress(session_id, prompt), idempotency_key)

    async def consolidate(self, session_id: int, *, idempotency_key: str = "") -> results.Run:
        """Request the consolidation of new entries into memory."""
        return await self._send(calls.consolidate(session_id), idempotency_key)

    async def clear(
        self, session_id: int, entries: Sequence[Mapping[str, Any]] = (), *, idempotency_key: str = ""
    ) -> results.Session:
        """Clear a session by starting its next epoch. Earlier entries are kept."""
        return await self._send(calls.clear(session_id, entries), idempotency_key)

    async def archive_and_clear(self, session_id: int, *, idempotency_key: str = "") -> results.Run:
        """Consolidate all entries of a session, then clear it."""
        return await self._send(calls.archive_and_clear(session_id), idempotency_key)

    async def export_session(self, session_id: int, layout: str = "", epoch: int | None = None) -> bytes:
        """Return a session as a file."""
        return await self._send(calls.export_session(session_id, layout, epoch))

    async def import_session(self, name: str, content: str, *, idempotency_key: str = "") -> results.Imported:
        """Import a session file."""
        return await self._send(calls.import_session(name, content), idempotency_key)

    def documents(self, workspace: str = "") -> AsyncIterator[results.Revision]:
        """Iterate over the memory documents."""
        return self._each(calls.documents(workspace))

    async def document(self, name: str, revision: int | None = None, workspace: str = "") -> results.Document:
        """Return a memory document, at its head or at a revision."""
        return await self._send(calls.document(name, revision, workspace))

    def revisions(self, name: str) -> AsyncIterator[results.Revision]:
        """Iterate over the revisions of a document."""
        return self._each(calls.revisions(name))

    async def why(self, fact_id: int) -> results.Why:
        """Return where a fact came from."""
        return await self._send(calls.why(fact_id))

    async def write_document(
        self, name: str, content: str, *, base: int, reason: str = "", idempotency_key: str = ""
    ) -> results.Written:
        """Write a document based on the revision that you read, 0 for a new document."""
        return await self._send(calls.write_document(name, content, base, reason), idempotency_key)

    async def add_fact(self, fact: str, name: str = "MEMORY.md", *, idempotency_key: str = "") -> results.Written:
        """Append one fact to a document. A risky one is ``held``."""
        return await self._send(calls.add_fact(fact, name), idempotency_key)

    async def propose(
        self, name: str, content: str, *, base: int | None = None, reason: str = "", idempotency_key: str = ""
    ) -> results.Proposal:
        """Propose a change of a document for review."""
        return await self._send(calls.propose(name, content, base, reason), idempotency_key)

    def proposals(self) -> AsyncIterator[results.Proposal]:
        """Iterate over the proposals, latest first."""
        return self._each(calls.proposals())

    async def proposal(self, proposal_id: int) -> results.Proposal:
        """Return a proposal and its decision."""
        return await self._send(calls.proposal(proposal_id))

    def history(self, text: str = "") -> AsyncIterator[results.HistoryEntry]:
        """Iterate over the history."""
        return self._each(calls.history(text))

    async def note(self, text: str, session: str = "", *, idempotency_key: str = "") -> results.HistoryEntry:
        """Add to the history."""
        return await self._send(calls.note(text, session), idempotency_key)

    def knowledge(self, text: str = "", category: str = "") -> AsyncIterator[results.KnowledgeEntry]:
        """Iterate over the knowledge."""
        return self._each(calls.knowledge(text, category))

    async def knowledge_entry(self, entry_id: int) -> results.KnowledgeEntry:
        """Return a knowledge entry."""
        return await self._send(calls.knowledge_entry(entry_id))

    async def learn(
        self,
        content: str,
        category: str = "learned_fact",
        *,
        source: str = "",
        tags: Sequence[str] = (),
        idempotency_key: str = "",
    ) -> results.KnowledgeEntry:
        """Add to the knowledge."""
        return await self._send(calls.learn(content, category, source, tags), idempotency_key)

    async def change_knowledge(
        self, entry_id: int, *, idempotency_key: str = "", **changes: Any
    ) -> results.KnowledgeChanged:
        """Change fields of a knowledge entry."""
        return await self._send(calls.change_knowledge(entry_id, changes), idempotency_key)

    async def knowledge_prompt(self, max_chars: int | None = None) -> str:
        """Return the knowledge as text for a prompt."""
        return await self._send(calls.knowledge_prompt(max_chars))

    def observations(self, category: str = "") -> AsyncIterator[results.Observation]:
        """Iterate over the observations."""
        return self._each(calls.observations(category))

    async def remember(
        self,
        content: str | Iterable[calls.Row],
        *,
        category: str = "finding",
        source: str = "",
        idempotency_key: str = "",
    ) -> results.Remembered:
        """Add a finding, an insight or a lesson, or up to 100 of them as dicts."""
        return await self._send(calls.remember(content, category, source), idempotency_key)

    async def recall(self, query: str, limit: int | None = None) -> results.Recalled:
        """Return the observations and other memories that match a question."""
        return await self._send(calls.recall(query, limit))

    def keys(self, prefix: str = "") -> AsyncIterator[str]:
        """Iterate over the keys of the stored values."""
        return self._each(calls.keys(prefix))

    async def read(self, key: str) -> str:
        """Return a stored value."""
        return await self._send(calls.read(key))

    async def write(self, key: str, value: str, *, idempotency_key: str = "") -> results.ValueWritten:
        """Store a value under a key."""
        return await self._send(calls.write(key, value), idempotency_key)

    async def cached_response(self, message: str, model: str) -> str | None:
        """Return the cached response of a model to a message, or None."""
        return await self._send(calls.cached_response(message, model))

    async def keep_response(self, message: str, model: str, response: str, *, idempotency_key: str = "") -> bool:
        """Cache a model's response. Returns False if the workspace has no cache."""
        return await self._send(calls.keep_response(message, model, response), idempotency_key)

    async def extract(self, text: str, source: str = "", *, idempotency_key: str = "") -> results.Run:
        """Request the extraction of observations from a text."""
        return await self._send(calls.extract(text, source), idempotency_key)

    async def search(
        self,
        query: str,
        *,
        kinds: Iterable[str] = (),
        limit: int | None = None,
        mode: str = "",
        own_sessions: bool = False,
        whole: bool = False,
        as_typed: bool = False,
    ) -> results.Found:
        """Search the workspace. ``own_sessions``: include agents' own sessions. ``whole``: take longer if needed."""
        return await self._send(
            calls.search(query, kinds, limit, mode, own_sessions=own_sessions, whole=whole, as_typed=as_typed)
        )

    def runs(self, kind: str = "", status: str = "") -> AsyncIterator[results.Run]:
        """Iterate over the runs, latest first."""
        return self._each(calls.runs(kind, status))

    async def run(self, run_id: int) -> results.Run:
        """Return a run."""
        return await self._send(calls.run(run_id))

    def cached(self, *, model: str, on_error: OnError = "pass", timeout: float = 2) -> Callable[[Ask], Ask]:
        """Cache the answers of an async function in the hub.

            @hub.cached(model="small")
            async def ask(message: str) -> str: ...

        Handles an unreachable hub as MemoryHub.cached does.
        """

        def decorate(ask: Ask) -> Ask:
            @functools.wraps(ask)
            async def answer(message: str) -> str:
                try:
                    kept = await self._send(calls.cached_response(message, model), once=timeout)
                except MemoryHubError as error:
                    skip_cache(error, on_error)
                    return await ask(message)
                if kept is not None:
                    return kept
                response = await ask(message)
                try:
                    await self._send(calls.keep_response(message, model, response), once=timeout)
                except MemoryHubError as error:
                    skip_cache(error, on_error)
                return response

            return answer

        return decorate

    async def _each(self, call: calls.Call[Page[T]]) -> AsyncIterator[T]:
        next_call: calls.Call[Page[T]] | None = call
        while next_call is not None:
            page = await self._send(next_call)
            for item in page.items:
                yield item
            next_call = calls.next_page(call, page)

    async def _send(self, call: calls.Call[T], idempotency_key: str = "", *, once: float | None = None) -> T:
        """Send a call with retries, or without them if ``once`` gives a timeout in seconds."""
        request = build_request(self._client, call, idempotency_key, once)
        policy = self._retry_policy if once is None else NO_RETRIES
        began, tries = time.monotonic(), 0
        while True:
            outcome = await self._try(request)
            tries += 1
            pause = pause_after(outcome, tries, began, policy)
            if pause is None:
                return read_answer(call, outcome)
            await self._sleep(pause)

    async def _try(self, request: httpx2.Request) -> Outcome:
        try:
            return await self._client.send(request)
        except httpx2.RequestError as error:
            return error
