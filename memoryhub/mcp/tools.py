"""The tools, named as grid's own agent names them. Each is one call of ``memoryhub.agents.operations``."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Annotated, Any, Literal

from mcp.server.mcpserver import MCPServer
from mcp_types import CallToolResult, ToolAnnotations
from pydantic import AfterValidator, BaseModel, Field

from knowledge_app.services.documents import editing
from knowledge_app.services.rows import key_values, observations
from knowledge_app.services.rows.observations import NewObservation
from memoryhub.agents.api_tokens import Caller
from memoryhub.agents.operations import knowledge, memory, queries
from memoryhub.lib.validation import clean_text
from memoryhub.mcp import results as shapes
from memoryhub.mcp.calls import HubContext, answer
from memoryhub.search import KINDS
from sessions_app.models.conversations import KEY_LENGTH

MAX_QUERY = 2_000
SHOWN = 2_000  # characters of a found row; the tool that reads its kind gives all of it
STORABLE = AfterValidator(clean_text)  # what no database takes becomes visible escapes, as everywhere
Told = tuple[str, BaseModel]

Key = Annotated[str, Field(min_length=1, max_length=KEY_LENGTH, description="The exact key."), STORABLE]
Query = Annotated[str, Field(min_length=1, max_length=MAX_QUERY, description="What to look for, in words."), STORABLE]
Cursor = Annotated[str, Field(max_length=2_000, description="next_cursor of the answer before, to go on.")]
Name = Annotated[
    str, Field(min_length=1, max_length=500, description="The document's name, such as MEMORY.md."), STORABLE
]
Reason = Annotated[str, Field(max_length=memory.MAX_REASON, description="Why, for the person who decides."), STORABLE]


async def memory_read(context: HubContext, key: Key) -> Annotated[CallToolResult, shapes.Value]:
    """Read the exact value that is kept under a key. memory_list tells the keys."""

    def read(caller: Caller, now: datetime) -> Told:
        value = shapes.Value(**knowledge.read_value(caller, key, now=now))
        return value.value, value

    return await answer(context, read)


async def memory_write(
    context: HubContext,
    key: Key,
    value: Annotated[str, Field(max_length=key_values.MAX_CHARS, description="The value, as text."), STORABLE],
) -> Annotated[CallToolResult, shapes.WrittenValue]:
    """Keep an exact value under a key, in place of the value that is there; people can restore earlier ones.

    For what is wanted back letter by letter: addresses, names, settings, preferences. What was learnt belongs to
    memory_remember.
    """

    def write(caller: Caller, now: datetime) -> Told:
        written = shapes.WrittenValue(**knowledge.set_value(caller, key, value, now=now))
        return f"Kept under {written.key}.", written

    return await answer(context, write)


async def memory_list(
    context: HubContext,
    prefix: Annotated[str, Field(max_length=KEY_LENGTH, description="How the keys begin."), STORABLE] = "",
    cursor: Cursor = "",
    limit: Annotated[int, Field(ge=1, le=1_000)] = 200,
) -> Annotated[CallToolResult, shapes.Keys]:
    """List the keys that memory_read knows, without their values."""

    def read(caller: Caller, _now: datetime) -> Told:
        keys, further = knowledge.list_keys(caller, prefix=prefix, cursor=cursor, limit=limit)
        return _lines(keys, further, "No keys."), shapes.Keys(keys=keys, next_cursor=further)

    return await answer(context, read)


async def memory_search(
    context: HubContext,
    query: Annotated[
        str,
        Field(
            min_length=1,
            max_length=MAX_QUERY,
            description='Words; "a phrase", -without, a OR b, session:KEY, after:2026-01-31 and tag:NAME narrow it.',
        ),
        STORABLE,
    ],
    kinds: Annotated[list[str], Field(max_length=20, description=f"Only these kinds: {', '.join(KINDS)}.")] = [],  # noqa: B006
    limit: Annotated[int, Field(ge=1, le=100)] = 20,
) -> Annotated[CallToolResult, shapes.Matches]:
    """Search everything that is kept here, best first: what was said, summaries, documents and their facts, history,
    knowledge, observations, keys and values."""

    def read(caller: Caller, now: datetime) -> Told:
        found = queries.search(caller, query, kinds=kinds, limit=limit, now=now)
        results = [shapes.Match(**one | {"text": one["text"][:SHOWN]}) for one in found["results"]]
        matches = shapes.Matches(query=found["query"], notes=found["notes"], results=results)
        return "\n".join([*matches.notes, *map(_match_line, results)]) or "Nothing found.", matches

    return await answer(context, read)


async def memory_recall(
    context: HubContext,
    query: Query,
    limit: Annotated[int, Field(ge=1, le=50, description="How many of each category.")] = 5,
) -> Annotated[CallToolResult, shapes.Recalled]:
    """Recall what was learnt about something: findings (facts), insights (conclusions) and lessons (advice).

    Worth a call before a task begins.
    """

    def read(caller: Caller, now: datetime) -> Told:
        recalled = shapes.Recalled(**knowledge.recall_for(caller, query, limit=limit, now=now))
        parts = [(title, getattr(recalled, title.lower())) for title in ("Findings", "Insights", "Lessons")]
        lines = [line for title, contents in parts if contents for line in (f"{title}:", *map(_bullet, contents))]
        return "\n".join(lines) or "Nothing is known about that.", recalled

    return await answer(context, read)


async def memory_remember(
    context: HubContext,
    category: Annotated[
        Literal["finding", "insight", "lesson"],
        Field(description="finding: a fact; insight: a conclusion or decision; lesson: advice for later."),
    ],
    content: Annotated[
        str,
        Field(
            min_length=1,
            max_length=observations.MAX_CHARS,
            description="One thing, in words that make sense by themselves.",
        ),
        STORABLE,
    ],
    source: Annotated[
        str, Field(max_length=observations.MAX_SOURCE, description="Where it comes from: goal and step."), STORABLE
    ] = "",
) -> Annotated[CallToolResult, shapes.Remembered]:
    """Remember a finding, an insight or a lesson for memory_recall. No passwords, keys or raw data.

    What is much like something known is offered to people as a confirmation instead of being stored twice.
    """

    def write(caller: Caller, now: datetime) -> Told:
        came_to = shapes.Remembered(
            **knowledge.remember(caller, [NewObservation(category, content, source)], now=now)
        )
        known = f"Known already, as observation {came_to.offered[0].observation}." if came_to.offered else ""
        return "Remembered." if came_to.added else known or "Known already.", came_to

    return await answer(context, write)


async def history_append(
    context: HubContext,
    content: Annotated[
        str, Field(min_length=1, max_length=memory.MAX_NOTE, description="What happened, in short."), STORABLE
    ],
    session: Annotated[str, Field(max_length=KEY_LENGTH, description="The key of its session."), STORABLE] = "",
) -> Annotated[CallToolResult, shapes.Note]:
    """Append an entry to the history log. Entries are never changed."""

    def write(caller: Caller, now: datetime) -> Told:
        note = shapes.Note(**memory.append_history(caller, content, session_key=session, now=now))
        return f"Noted at position {note.position}.", note

    return await answer(context, write)


async def history_search(
    context: HubContext,
    query: Annotated[
        str, Field(max_length=MAX_QUERY, description="A text that entries contain, in any case."), STORABLE
    ] = "",
    cursor: Cursor = "",
    limit: Annotated[int, Field(ge=1, le=200)] = 20,
) -> Annotated[CallToolResult, shapes.History]:
    """Look through the history log, the latest entries first; without a query, all of it."""

    def read(caller: Caller, now: datetime) -> Told:
        found, further = memory.list_history(caller, text=query, cursor=cursor, limit=limit, now=now)
        entries = [shapes.HistoryNote(**one) for one in found]
        lines = [one.content for one in entries]
        return _lines(lines, further, "No entries."), shapes.History(entries=entries, next_cursor=further)

    return await answer(context, read)


async def memory_document_read(
    context: HubContext,
    name: Name = "MEMORY.md",
    revision: Annotated[int | None, Field(ge=1, le=2**31 - 1, description="By default the latest.")] = None,
) -> Annotated[CallToolResult, shapes.DocumentText]:
    """Read a memory document, as it is or as it stood at a revision."""

    def read(caller: Caller, now: datetime) -> Told:
        document = shapes.DocumentText(**memory.read_document(caller, name, revision=revision, now=now))
        return document.content, document

    return await answer(context, read)


async def memory_document_propose(
    context: HubContext,
    name: Name,
    content: Annotated[
        str, Field(max_length=editing.MAX_CHARS, description="The whole document as it should be."), STORABLE
    ],
    base: Annotated[
        int | None,
        Field(ge=0, le=2**31 - 1, description="The revision that was read; 0 for a document that isn't there yet."),
    ] = None,
    reason: Reason = "",
) -> Annotated[CallToolResult, shapes.Proposal]:
    """Propose a new text of a memory document. It waits in the review inbox: a person approves or rejects it.

    Read the document first and give its revision as base, so that a change made meanwhile isn't lost.
    """

    def write(caller: Caller, now: datetime) -> Told:
        document = memory.propose_document(caller, name, content, base=base, reason=reason, now=now)
        proposal = shapes.Proposal(**document)
        return f"Proposal {proposal.id} for {proposal.document} waits for a person.", proposal

    return await answer(context, write)


Tool = Callable[..., Any]
READING: dict[str, Tool] = {
    "Read a value": memory_read,
    "List keys": memory_list,
    "Search everything": memory_search,
    "Recall": memory_recall,
    "Search the history": history_search,
    "Read a document": memory_document_read,
}
WRITING: dict[str, tuple[Tool, bool]] = {  # and whether doing it twice is like doing it once
    "Write a value": (memory_write, True),
    "Remember": (memory_remember, False),
    "Append to the history": (history_append, False),
    "Propose a document": (memory_document_propose, True),
}


def add_tools(server: MCPServer[Any]) -> None:
    for title, tool in READING.items():
        _add(server, tool, title, _hints(read_only=True, idempotent=True))
    for title, (tool, idempotent) in WRITING.items():
        _add(server, tool, title, _hints(read_only=False, idempotent=idempotent))


def _add(server: MCPServer[Any], tool: Tool, title: str, hints: ToolAnnotations) -> None:
    server.add_tool(tool, title=title, description=inspect.getdoc(tool), annotations=hints)


def _hints(*, read_only: bool, idempotent: bool) -> ToolAnnotations:
    """Return the hints of a tool; nothing here is ever lost by a call, or reaches beyond the hub."""
    return ToolAnnotations(
        read_only_hint=read_only, destructive_hint=False, idempotent_hint=idempotent, open_world_hint=False
    )


def _lines(texts: Sequence[str], further: str | None, nothing: str) -> str:
    more = [f"(There are more: go on with the cursor {further})"] if further else []
    return "\n".join([*texts, *more]) or nothing


def _match_line(match: shapes.Match) -> str:
    place = [match.kind, match.session or "", f"{match.occurred_at:%Y-%m-%d}" if match.occurred_at else ""]
    return f"- [{', '.join(part for part in place if part)}] {match.snippet}"


def _bullet(text: str) -> str:
    return f"- {text}"
