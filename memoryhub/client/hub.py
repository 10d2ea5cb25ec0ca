"""MemoryHub: the synchronous client."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
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


class MemoryHub:
    """A client for the workspace of one token. It is thread-safe.

        with MemoryHub("http://127.0.0.1:8765", token) as hub:
            hub.append("cli:main", "Which region do we deploy to?")
            hub.context("cli:main")["messages"]

    ``timeout``: seconds per network operation. ``retries``: how often a call is repeated if the hub is unreachable or
    busy. ``patience``: seconds after the first attempt in which a retry may begin. Lists are iterators that fetch
    page by page. Every method raises MemoryHubError on failure.
    """

    def __init__(
        self,
        url: str,
        token: str,
        *,
        timeout: float = 10,
        retries: int = 3,
        patience: float = 60,
        transport: httpx2.BaseTransport | None = None,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._retry_policy = RetryPolicy(retries, patience)
        self._sleep = sleep
        self._client = httpx2.Client(transport=transport, **client_options(url, token, timeout))

    def __enter__(self) -> MemoryHub:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def me(self) -> results.Me:
        """Return the token's name, scopes and workspace: ``hub.me()["scopes"]``."""
        return self._send(calls.me())

    def skill(self) -> str:
        """Return a skill in Markdown that tells an agent how to use its memory: ``hub.skill()``."""
        return self._send(calls.skill())

    def sessions(self, key: str = "", channel: str = "") -> Iterator[results.Session]:
        """Iterate over the sessions, or those of a channel: ``for session in hub.sessions(channel="cli"): ...``."""
        return self._each(calls.sessions(key, channel))

    def open_session(self, key: str, title: str = "", *, idempotency_key: str = "") -> results.Session:
        """Return the session with a key, creating it if needed: ``hub.open_session("cli:main")["id"]``."""
        return self._send(calls.open_session(key, title), idempotency_key)

    def session(self, session_id: int) -> results.Session:
        """Return a session and its counts: ``hub.session(12)["active_tokens"]``."""
        return self._send(calls.session(session_id))

    def entries(self, session_id: int, epoch: int | None = None, *, active: bool = False) -> Iterator[results.Entry]:
        """Iterate over the entries of an epoch, by default the current one: ``for entry in hub.entries(12): ...``."""
        return self._each(calls.entries(session_id, epoch, active=active))

    def append(
        self, session: str | int, entries: calls.Entries, *, role: str = "user", idempotency_key: str = ""
    ) -> results.Appended:
        """Append a text or up to 1,000 entries to a session, by key (created if new) or by id.

            hub.append("cli:main", "Which region?")
            hub.append("cli:main", [{"role": "assistant", "content": "eu-west-1"}])

        Entries have the shape of OpenAI's chat messages. ``role`` applies to a text.
        """
        return self._send(calls.append(session, entries, role), idempotency_key)

    def context(
        self,
        session: str | int,
        *,
        max_messages: int | None = None,
        max_tokens: int | None = None,
        text: bool = False,
    ) -> results.Context:
        """Return the messages to send to the model: ``hub.context("cli:main", max_tokens=8000)["messages"]``."""
        return self._send(calls.context(session, max_messages, max_tokens, text=text))

    def stats(self, session_id: int) -> results.Figures:
        """Return the token counts of a session, and what compression saved: ``hub.stats(12)``."""
        return self._send(calls.stats(session_id))

    def compress(self, session_id: int, *, prompt: str = "", idempotency_key: str = "") -> results.Run:
        """Request the compression of old entries into a summary: ``hub.run(hub.compress(12)["id"])["status"]``."""
        return self._send(calls.compress(session_id, prompt), idempotency_key)

    def consolidate(self, session_id: int, *, idempotency_key: str = "") -> results.Run:
        """Request the consolidation of new entries into memory: ``hub.consolidate(12)``."""
        return self._send(calls.consolidate(session_id), idempotency_key)

    def clear(
        self, session_id: int, entries: Sequence[Mapping[str, Any]] = (), *, idempotency_key: str = ""
    ) -> results.Session:
        """Start a session's next epoch, with ``entries``. Earlier entries are kept: ``hub.clear(12)``."""
        return self._send(calls.clear(session_id, entries), idempotency_key)

    def archive_and_clear(self, session_id: int, *, idempotency_key: str = "") -> results.Run:
        """Consolidate all entries of a session, then clear it: ``hub.archive_and_clear(12)``."""
        return self._send(calls.archive_and_clear(session_id), idempotency_key)

    def export_session(self, session_id: int, layout: str = "", epoch: int | None = None) -> bytes:
        """Return a session as a file: ``Path("main.jsonl").write_bytes(hub.export_session(12))``."""
        return self._send(calls.export_session(session_id, layout, epoch))

    def import_session(self, name: str, content: str, *, idempotency_key: str = "") -> results.Imported:
        """Import a session file: ``hub.import_session("main.jsonl", Path("main.jsonl").read_text())``."""
        return self._send(calls.import_session(name, content), idempotency_key)

    def documents(self, workspace: str = "") -> Iterator[results.Revision]:
        """Iterate over the memory documents: ``[document["name"] for document in hub.documents()]``."""
        return self._each(calls.documents(workspace))

    def document(self, name: str, revision: int | None = None, workspace: str = "") -> results.Document:
        """Return a memory document, at its head or at a revision: ``hub.document("MEMORY.md")["content"]``.

        ``workspace``: the slug of another one that the token may read.
        """
        return self._send(calls.document(name, revision, workspace))

    def revisions(self, name: str) -> Iterator[results.Revision]:
        """Iterate over the revisions of a document: ``for revision in hub.revisions("MEMORY.md"): ...``."""
        return self._each(calls.revisions(name))

    def why(self, fact_id: int) -> results.Why:
        """Return where a fact came from: ``hub.why(7)["origins"]``. Searches return the ids of facts.

        Raises NotFound.
        """
        return self._send(calls.why(fact_id))

    def write_document(
        self, name: str, content: str, *, base: int, reason: str = "", idempotency_key: str = ""
    ) -> results.Written:
        """Write a document based on the revision that you read, 0 for a new document.

            before = hub.document("MEMORY.md")
            text = before["content"] + "- deploys run on Fridays"
            hub.write_document("MEMORY.md", text, base=before["revision"])

        A change that needs review is ``held``. Raises Conflict, with the ``head`` in its details, if the document has
        changed since: read it again and merge.
        """
        return self._send(calls.write_document(name, content, base, reason), idempotency_key)

    def add_fact(self, fact: str, name: str = "MEMORY.md", *, idempotency_key: str = "") -> results.Written:
        """Append one fact to a document: ``hub.add_fact("Deploys run on Fridays.")``. A risky one is ``held``."""
        return self._send(calls.add_fact(fact, name), idempotency_key)

    def propose(
        self, name: str, content: str, *, base: int | None = None, reason: str = "", idempotency_key: str = ""
    ) -> results.Proposal:
        """Propose a change of a document for review: ``hub.propose("MEMORY.md", text, reason="duplicate")``."""
        return self._send(calls.propose(name, content, base, reason), idempotency_key)

    def proposals(self) -> Iterator[results.Proposal]:
        """Iterate over the proposals, latest first: ``for proposal in hub.proposals(): ...``."""
        return self._each(calls.proposals())

    def proposal(self, proposal_id: int) -> results.Proposal:
        """Return a proposal and its decision: ``hub.proposal(3)["status"]``."""
        return self._send(calls.proposal(proposal_id))

    def history(self, text: str = "") -> Iterator[results.HistoryEntry]:
        """Iterate over the history: ``for event in hub.history("backup"): ...``."""
        return self._each(calls.history(text))

    def note(self, text: str, session: str = "", *, idempotency_key: str = "") -> results.HistoryEntry:
        """Add to the history: ``hub.note("Moved the backups to eu-west-1.")``."""
        return self._send(calls.note(text, session), idempotency_key)

    def knowledge(self, text: str = "", category: str = "") -> Iterator[results.KnowledgeEntry]:
        """Iterate over the knowledge: ``for entry in hub.knowledge(category="project_decision"): ...``."""
        return self._each(calls.knowledge(text, category))

    def knowledge_entry(self, entry_id: int) -> results.KnowledgeEntry:
        """Return a knowledge entry: ``hub.knowledge_entry(7)["content"]``."""
        return self._send(calls.knowledge_entry(entry_id))

    def learn(
        self,
        content: str,
        category: str = "learned_fact",
        *,
        source: str = "",
        tags: Sequence[str] = (),
        idempotency_key: str = "",
    ) -> results.KnowledgeEntry:
        """Add to the knowledge: ``hub.learn("Tests run on both databases.", "project_decision")``."""
        return self._send(calls.learn(content, category, source, tags), idempotency_key)

    def change_knowledge(
        self, entry_id: int, *, idempotency_key: str = "", **changes: Any
    ) -> results.KnowledgeChanged:
        """Change fields of a knowledge entry: ``hub.change_knowledge(7, tags=["tests", "ci"])``."""
        return self._send(calls.change_knowledge(entry_id, changes), idempotency_key)

    def knowledge_prompt(self, max_chars: int | None = None) -> str:
        """Return the knowledge as text for a prompt: ``hub.knowledge_prompt(max_chars=2000)``."""
        return self._send(calls.knowledge_prompt(max_chars))

    def observations(self, category: str = "") -> Iterator[results.Observation]:
        """Iterate over the observations: ``for observation in hub.observations("lesson"): ...``."""
        return self._each(calls.observations(category))

    def remember(
        self,
        content: str | Iterable[calls.Row],
        *,
        category: str = "finding",
        source: str = "",
        idempotency_key: str = "",
    ) -> results.Remembered:
        """Add a finding, an insight or a lesson, or up to 100 of them as dicts.

            hub.remember("Uploads above 50 MB time out.", category="lesson")
            hub.remember([{"content": "The cache is cold on Mondays.", "category": "insight"}])

        Observations that resemble a known one are ``offered`` for review instead of added.
        """
        return self._send(calls.remember(content, category, source), idempotency_key)

    def recall(self, query: str, limit: int | None = None) -> results.Recalled:
        """Return observations and other memories for a question: ``hub.recall("upload time-outs")["lessons"]``."""
        return self._send(calls.recall(query, limit))

    def keys(self, prefix: str = "") -> Iterator[str]:
        """Iterate over the keys of the stored values: ``list(hub.keys("deploy."))``."""
        return self._each(calls.keys(prefix))

    def read(self, key: str) -> str:
        """Return a stored value: ``hub.read("deploy.region")``. Raises NotFound if there is none."""
        return self._send(calls.read(key))

    def write(self, key: str, value: str, *, idempotency_key: str = "") -> results.ValueWritten:
        """Store a value under a key: ``hub.write("deploy.region", "eu-west-1")``."""
        return self._send(calls.write(key, value), idempotency_key)

    def cached_response(self, message: str, model: str) -> str | None:
        """Return the cached response of a model to a message, or None: ``hub.cached_response("Hi", "m")``."""
        return self._send(calls.cached_response(message, model))

    def keep_response(self, message: str, model: str, response: str, *, idempotency_key: str = "") -> bool:
        """Cache a model's response: ``hub.keep_response("Hi", "m", "Hello")``. Returns False without a cache."""
        return self._send(calls.keep_response(message, model, response), idempotency_key)

    def extract(self, text: str, source: str = "", *, idempotency_key: str = "") -> results.Run:
        """Request the extraction of observations from a text: ``hub.extract(report, source="nightly")``."""
        return self._send(calls.extract(text, source), idempotency_key)

    def search(
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
        """Search the workspace: ``hub.search('"time out" -draft', kinds=["entry", "memory"])["results"]``."""
        return self._send(
            calls.search(query, kinds, limit, mode, own_sessions=own_sessions, whole=whole, as_typed=as_typed)
        )

    def runs(self, kind: str = "", status: str = "") -> Iterator[results.Run]:
        """Iterate over the runs, latest first: ``for run in hub.runs(status="failed"): ...``."""
        return self._each(calls.runs(kind, status))

    def run(self, run_id: int) -> results.Run:
        """Return a run: ``hub.run(41)["status"]``."""
        return self._send(calls.run(run_id))

    def cached(
        self, *, model: str, on_error: OnError = "pass", timeout: float = 2
    ) -> Callable[[Callable[[str], str]], Callable[[str], str]]:
        """Cache the answers of a function in the hub.

            @hub.cached(model="small")
            def ask(message: str) -> str: ...

        The cache must never break an agent: if the hub can't be reached, a warning is logged and the function runs
        undecorated. ``on_error="raise"`` raises the MemoryHubError instead. Cache requests aren't retried;
        ``timeout`` is in seconds per network operation.
        """

        def decorate(ask: Callable[[str], str]) -> Callable[[str], str]:
            @functools.wraps(ask)
            def answer(message: str) -> str:
                try:
                    kept = self._send(calls.cached_response(message, model), once=timeout)
                except MemoryHubError as error:
                    skip_cache(error, on_error)
                    return ask(message)
                if kept is not None:
                    return kept
                response = ask(message)
                try:
                    self._send(calls.keep_response(message, model, response), once=timeout)
                except MemoryHubError as error:
                    skip_cache(error, on_error)
                return response

            return answer

        return decorate

    def _each(self, call: calls.Call[Page[T]]) -> Iterator[T]:
        next_call: calls.Call[Page[T]] | None = call
        while next_call is not None:
            page = self._send(next_call)
            yield from page.items
            next_call = calls.next_page(call, page)

    def _send(self, call: calls.Call[T], idempotency_key: str = "", *, once: float | None = None) -> T:
        """Send a call with retries, or without them if ``once`` gives a timeout in seconds."""
        request = build_request(self._client, call, idempotency_key, once)
        policy = self._retry_policy if once is None else NO_RETRIES
        began, tries = time.monotonic(), 0
        while True:
            outcome = self._try(request)
            tries += 1
            pause = pause_after(outcome, tries, began, policy)
            if pause is None:
                return read_answer(call, outcome)
            self._sleep(pause)

    def _try(self, request: httpx2.Request) -> Outcome:
        try:
            return self._client.send(request)
        except httpx2.RequestError as error:
            return error
