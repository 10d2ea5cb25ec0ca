"""AsyncMemoryHub: the client for programs that run in an event loop."""

from __future__ import annotations

import asyncio
import functools
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from typing import Any, TypeVar

import httpx2

from memoryhub.client import calls
from memoryhub.client.caching import OnError, pass_over
from memoryhub.client.errors import MemoryHubError
from memoryhub.client.results import (
    Appended,
    Context,
    Document,
    Entry,
    Figures,
    Found,
    HistoryEntry,
    Imported,
    KnowledgeEntry,
    Me,
    Observation,
    Page,
    Proposal,
    Recalled,
    Remembered,
    Revision,
    Run,
    Session,
    Value,
    Written,
)
from memoryhub.client.transport import (
    NO_PATIENCE,
    Outcome,
    Patience,
    build_request,
    client_values,
    pause_after,
    read_answer,
)

T = TypeVar("T")
Ask = Callable[[str], Awaitable[str]]


class AsyncMemoryHub:
    """MemoryHub for asyncio: the same methods, to be awaited; its docstrings have an example of each.

        async with AsyncMemoryHub("http://127.0.0.1:8765", token) as hub:
            await hub.append("cli:main", "Which region do we deploy to?")
            messages = (await hub.context("cli:main"))["messages"]
            async for key in hub.keys("deploy."):
                print(key, await hub.read(key))

    Under another event loop, give it that one's ``sleep``.
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
        self._patience = Patience(retries, patience)
        self._sleep = sleep
        self._client = httpx2.AsyncClient(transport=transport, **client_values(url, token, timeout))

    async def __aenter__(self) -> AsyncMemoryHub:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connections."""
        await self._client.aclose()

    async def me(self) -> Me:
        """Return whose token this is."""
        return await self._send(calls.me())

    def sessions(self, key: str = "", channel: str = "") -> AsyncIterator[Session]:
        """Go through the sessions, of a channel if one is named."""
        return self._each(calls.sessions(key, channel))

    async def open_session(self, key: str, title: str = "", *, idempotency_key: str = "") -> Session:
        """Return the session of a key, opened where it is new."""
        return await self._send(calls.open_session(key, title), idempotency_key)

    async def session(self, session_id: int) -> Session:
        """Return a session and its figures."""
        return await self._send(calls.session(session_id))

    def entries(self, session_id: int, epoch: int | None = None) -> AsyncIterator[Entry]:
        """Go through what was said."""
        return self._each(calls.entries(session_id, epoch))

    async def append(
        self, session: str | int, entries: calls.Entries, *, role: str = "user", idempotency_key: str = ""
    ) -> Appended:
        """Append a text, an entry or up to 1,000 of them to a session, by its key (new ones are opened) or its id."""
        return await self._send(calls.append(session, entries, role), idempotency_key)

    async def context(
        self, session: str | int, *, max_messages: int | None = None, max_tokens: int | None = None
    ) -> Context:
        """Return what to send to the model."""
        return await self._send(calls.context(session, max_messages, max_tokens))

    async def stats(self, session_id: int) -> Figures:
        """Return what a session holds, and what folding it away saved."""
        return await self._send(calls.stats(session_id))

    async def compress(self, session_id: int, *, idempotency_key: str = "") -> Run:
        """Ask for old entries to be folded into a summary."""
        return await self._send(calls.compress(session_id), idempotency_key)

    async def consolidate(self, session_id: int, *, idempotency_key: str = "") -> Run:
        """Ask for what was said to become memory."""
        return await self._send(calls.consolidate(session_id), idempotency_key)

    async def clear(self, session_id: int, *, idempotency_key: str = "") -> Session:
        """Begin a session anew, in its next epoch; what was said before is kept."""
        return await self._send(calls.clear(session_id), idempotency_key)

    async def export_session(self, session_id: int, layout: str = "", epoch: int | None = None) -> bytes:
        """Return a session as a file."""
        return await self._send(calls.export_session(session_id, layout, epoch))

    async def import_session(self, name: str, content: str, *, idempotency_key: str = "") -> Imported:
        """Take in a session's file."""
        return await self._send(calls.import_session(name, content), idempotency_key)

    def documents(self) -> AsyncIterator[Revision]:
        """Go through the memory documents."""
        return self._each(calls.documents())

    async def document(self, name: str, revision: int | None = None) -> Document:
        """Return a memory document, as it is or as it was at a revision."""
        return await self._send(calls.document(name, revision))

    def revisions(self, name: str) -> AsyncIterator[Revision]:
        """Go through the revisions of a document."""
        return self._each(calls.revisions(name))

    async def write_document(
        self, name: str, content: str, *, base: int, reason: str = "", idempotency_key: str = ""
    ) -> Written:
        """Write a document on the revision that you read; 0 says that it isn't there yet."""
        return await self._send(calls.write_document(name, content, base, reason), idempotency_key)

    async def propose(
        self, name: str, content: str, *, base: int | None = None, reason: str = "", idempotency_key: str = ""
    ) -> Proposal:
        """Put a change of a document before a person."""
        return await self._send(calls.propose(name, content, base, reason), idempotency_key)

    def proposals(self) -> AsyncIterator[Proposal]:
        """Go through what agents proposed, latest first."""
        return self._each(calls.proposals())

    async def proposal(self, proposal_id: int) -> Proposal:
        """Return a proposal and what became of it."""
        return await self._send(calls.proposal(proposal_id))

    def history(self, text: str = "") -> AsyncIterator[HistoryEntry]:
        """Go through the history."""
        return self._each(calls.history(text))

    async def note(self, text: str, session: str = "", *, idempotency_key: str = "") -> HistoryEntry:
        """Add to the history."""
        return await self._send(calls.note(text, session), idempotency_key)

    def knowledge(self, text: str = "", category: str = "") -> AsyncIterator[KnowledgeEntry]:
        """Go through the knowledge."""
        return self._each(calls.knowledge(text, category))

    async def knowledge_entry(self, entry_id: int) -> KnowledgeEntry:
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
    ) -> KnowledgeEntry:
        """Add to the knowledge."""
        return await self._send(calls.learn(content, category, source, tags), idempotency_key)

    async def change_knowledge(self, entry_id: int, *, idempotency_key: str = "", **changes: Any) -> KnowledgeEntry:
        """Change fields of a knowledge entry."""
        return await self._send(calls.change_knowledge(entry_id, changes), idempotency_key)

    async def knowledge_prompt(self, max_chars: int | None = None) -> str:
        """Return the knowledge as a text for a prompt."""
        return await self._send(calls.knowledge_prompt(max_chars))

    def observations(self, category: str = "") -> AsyncIterator[Observation]:
        """Go through the observations."""
        return self._each(calls.observations(category))

    async def remember(
        self,
        content: str | Iterable[calls.Row],
        *,
        category: str = "finding",
        source: str = "",
        idempotency_key: str = "",
    ) -> Remembered:
        """Remember a finding, an insight or a lesson, or up to 100 of them as dicts."""
        return await self._send(calls.remember(content, category, source), idempotency_key)

    async def recall(self, query: str, limit: int | None = None) -> Recalled:
        """Return what was remembered that fits a question."""
        return await self._send(calls.recall(query, limit))

    def keys(self, prefix: str = "") -> AsyncIterator[str]:
        """Go through the keys of exact values."""
        return self._each(calls.keys(prefix))

    async def read(self, key: str) -> str:
        """Return an exact value."""
        return await self._send(calls.read(key))

    async def write(self, key: str, value: str, *, idempotency_key: str = "") -> Value:
        """Keep an exact value."""
        return await self._send(calls.write(key, value), idempotency_key)

    async def cached_response(self, message: str, model: str) -> str | None:
        """Return a model's kept answer to a message, None where there is none."""
        return await self._send(calls.cached_response(message, model))

    async def keep_response(self, message: str, model: str, response: str, *, idempotency_key: str = "") -> bool:
        """Keep a model's answer; False where the workspace keeps none."""
        return await self._send(calls.keep_response(message, model, response), idempotency_key)

    async def extract(self, text: str, source: str = "", *, idempotency_key: str = "") -> Run:
        """Ask for the observations in a text."""
        return await self._send(calls.extract(text, source), idempotency_key)

    async def search(self, query: str, *, kinds: Iterable[str] = (), limit: int | None = None) -> Found:
        """Search all that is kept."""
        return await self._send(calls.search(query, kinds, limit))

    def runs(self, kind: str = "", status: str = "") -> AsyncIterator[Run]:
        """Go through the runs, latest first."""
        return self._each(calls.runs(kind, status))

    async def run(self, run_id: int) -> Run:
        """Return a run as it stands."""
        return await self._send(calls.run(run_id))

    def cached(self, *, model: str, on_error: OnError = "pass", timeout: float = 2) -> Callable[[Ask], Ask]:
        """Keep the answers of an async function in the hub's response cache.

            @hub.cached(model="small")
            async def ask(message: str) -> str: ...

        It passes over a hub that can't be asked just as MemoryHub.cached does.
        """

        def decorate(ask: Ask) -> Ask:
            @functools.wraps(ask)
            async def answer(message: str) -> str:
                try:
                    kept = await self._send(calls.cached_response(message, model), once=timeout)
                except MemoryHubError as error:
                    pass_over(error, on_error)
                    return await ask(message)
                if kept is not None:
                    return kept
                response = await ask(message)
                try:
                    await self._send(calls.keep_response(message, model, response), once=timeout)
                except MemoryHubError as error:
                    pass_over(error, on_error)
                return response

            return answer

        return decorate

    async def _each(self, call: calls.Call[Page[T]]) -> AsyncIterator[T]:
        following: calls.Call[Page[T]] | None = call
        while following is not None:
            page = await self._send(following)
            for item in page.items:
                yield item
            following = calls.following(call, page)

    async def _send(self, call: calls.Call[T], idempotency_key: str = "", *, once: float | None = None) -> T:
        """Send a call, as often as patience allows, or ``once`` within some seconds."""
        request = build_request(self._client, call, idempotency_key, once)
        patience = self._patience if once is None else NO_PATIENCE
        began, tries = time.monotonic(), 0
        while True:
            outcome = await self._try(request)
            tries += 1
            pause = pause_after(outcome, tries, began, patience)
            if pause is None:
                return read_answer(call, outcome)
            await self._sleep(pause)

    async def _try(self, request: httpx2.Request) -> Outcome:
        try:
            return await self._client.send(request)
        except httpx2.RequestError as error:
            return error
