"""The MCP tools, named as in grid. Each calls one of ``memoryhub.agents.operations``."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from datetime import datetime
from functools import cache
from typing import Annotated, Any, Literal

from mcp.server.mcpserver.tools import Tool
from mcp_types import CallToolResult, ToolAnnotations
from pydantic import Field

from knowledge_app.services.documents.proposals import MAX_FACT
from knowledge_app.services.rows import key_values, observations
from knowledge_app.services.rows.observations import NewObservation
from memoryhub.agents.api_tokens import Caller
from memoryhub.agents.operations import knowledge, memory, queries
from memoryhub.agents.operations.categories import category_of
from memoryhub.lib.document_size import MAX_DOCUMENT_CHARS
from memoryhub.lib.validation import clean_text, json_text
from memoryhub.mcp import results as shapes
from memoryhub.mcp.arguments import MAX_QUERY, STORABLE, Cursor, Key, Name, Query, Reason, ToolAnswer
from memoryhub.mcp.calls import HubContext, answer
from memoryhub.mcp.change_tools import memory_correct, memory_line_replace, memory_withdraw
from memoryhub.mcp.session_tools import memory_recent, session_append, session_clear, session_list, session_read
from memoryhub.mcp.texts import as_match, joined_lines, match_line, match_text, why_text
from memoryhub.search import KINDS
from sessions_app.models.conversations import KEY_LENGTH


async def memory_read(context: HubContext, key: Key) -> Annotated[CallToolResult, shapes.Value]:
    """Read the value of a key: the exact value, such as a setting or an address.

    memory_list returns the keys. A value that is held for review isn't returned.
    """

    def read(caller: Caller, now: datetime) -> ToolAnswer:
        value = shapes.Value(**knowledge.read_value(caller, key, now=now))
        return value.value, value

    return await answer(context, read)


async def memory_write(
    context: HubContext,
    key: Key,
    value: Annotated[
        Any,
        Field(
            description="The value: text, or a number, boolean, object or list, which is stored as JSON text.",
            json_schema_extra={
                "anyOf": [
                    {"type": "string", "maxLength": key_values.MAX_CHARS},
                    *({"type": kind} for kind in ("number", "boolean", "object", "array", "null")),
                ]
            },
        ),
    ],
) -> Annotated[CallToolResult, shapes.WrittenValue]:
    """Set a key: store or save an exact value under a name of its own, replacing the current one.

    Use it for settings, addresses, ports, paths and JSON objects, and memory_remember for sentences. People can
    restore earlier values. A value that a person wrote, corrected or withdrew changes when a person approves it.
    """

    def write(caller: Caller, now: datetime) -> ToolAnswer:
        is_json = not isinstance(value, str)
        text = clean_text(json_text(value) if is_json else value)
        written = shapes.WrittenValue(**knowledge.set_value(caller, key, text, is_json=is_json, now=now))
        return _unless_held(f"Saved {written.key}.", written), written

    return await answer(context, write)


async def memory_list(
    context: HubContext,
    prefix: Annotated[
        str, Field(max_length=KEY_LENGTH, description="Only keys that start with this."), STORABLE
    ] = "",
    cursor: Cursor = "",
    limit: Annotated[int, Field(ge=1, le=1_000)] = 200,
) -> Annotated[CallToolResult, shapes.Keys]:
    """List the keys that exist: which keys are stored, without their values."""

    def read(caller: Caller, _now: datetime) -> ToolAnswer:
        keys, next_cursor = knowledge.list_keys(caller, prefix=prefix, cursor=cursor, limit=limit)
        return joined_lines(keys, next_cursor, "No keys."), shapes.Keys(keys=keys, next_cursor=next_cursor)

    return await answer(context, read)


async def memory_search(
    context: HubContext,
    query: Annotated[
        str,
        Field(
            min_length=1,
            max_length=MAX_QUERY,
            description='Words, "a phrase", -excluded, a OR b, session:KEY, after:2026-01-31, tag:NAME.',
        ),
        STORABLE,
    ],
    kinds: Annotated[list[str], Field(max_length=20, description=f"Only these kinds: {', '.join(KINDS)}.")] = [],  # noqa: B006
    limit: Annotated[int, Field(ge=1, le=100)] = 20,
    mode: Annotated[
        Literal["all", "grid"],
        Field(description="grid: keys and values that contain the query, as in grid."),
    ] = "all",
    own_sessions: Annotated[  # noqa: FBT002
        bool, Field(description="Include agents' own sessions: dream, heartbeat, cron.")
    ] = False,
    whole: Annotated[  # noqa: FBT002
        bool, Field(description="Take up to 20 times longer, if a search was cut short.")
    ] = False,
    as_typed: Annotated[bool, Field(description="Correct no words.")] = False,  # noqa: FBT002
) -> Annotated[CallToolResult, shapes.Matches]:
    """Search everything for words, best match first: all messages of all conversations, summaries, documents and
    their facts, history, knowledge, observations, keys and values.

    Use it to find the conversation or message where something was mentioned, said or pasted, or when memory_recall
    finds nothing.
    """

    def read(caller: Caller, now: datetime) -> ToolAnswer:
        found = queries.search(
            caller,
            query,
            kinds=kinds,
            limit=limit,
            mode=mode,
            own_sessions=own_sessions,
            only_covering=True,
            whole=whole,
            as_typed=as_typed,
            now=now,
        )
        return _matches(caller, found, "snippet")

    return await answer(context, read)


async def memory_recall(
    context: HubContext,
    query: Query,
    limit: Annotated[int, Field(ge=1, le=50, description="Maximum number of hits.")] = 10,
) -> Annotated[CallToolResult, shapes.Matches]:
    """Recall what is known about a subject, best match first: facts of the memory documents, knowledge, findings,
    insights, lessons, values and history entries, each with its kind and id.

    Call it before you start a task, and for questions: "what do you know about ...?", "what did we decide?", "what
    are my preferences?", "do I prefer ...?".
    """

    def read(caller: Caller, now: datetime) -> ToolAnswer:
        found = knowledge.recall_together(caller, query, limit=limit, now=now)
        return _matches(caller, found, "text")

    return await answer(context, read)


def _matches(caller: Caller, found: Mapping[str, Any], shown: str) -> tuple[str, shapes.Matches]:
    """Return search results as text and values. ``shown``: the field of a result that has its text."""
    rows = [as_match(caller, one, one[shown]) for one in found["results"]]
    return match_text(rows, found["notes"]), shapes.Matches(
        results=[shapes.Match(**row) for row in rows],
        notes=found["notes"] or None,
        corrected=found.get("corrected") or None,
    )


async def memory_remember(
    context: HubContext,
    content: Annotated[
        str,
        Field(
            min_length=1,
            max_length=observations.MAX_CHARS,
            description="One self-contained statement.",
        ),
        STORABLE,
    ],
    source: Annotated[
        str,
        Field(max_length=observations.MAX_SOURCE, description="Where it comes from, such as the goal and step."),
        STORABLE,
    ] = "",
    category: Annotated[
        Literal["", "finding", "insight", "lesson", "fact", "preference"],
        Field(
            description="finding, fact or preference; insight: a conclusion or decision; lesson: advice for later. "
            "Default: chosen by the content's words."
        ),
    ] = "",
) -> Annotated[CallToolResult, shapes.Remembered]:
    """Remember something for later: a preference of the user ("I prefer tabs", "I always use ...", "from now on"), a
    fact about a person ("my name is ..., I work in ..., I am allergic to ...") or project, a decision, a finding, or
    a lesson learned.

    Use it when the user says "remember that", "note that" or "keep in mind that"; memory_recall finds it. No
    passwords or raw data. What resembles a known row is offered to people as its confirmation instead.
    """

    def write(caller: Caller, now: datetime) -> ToolAnswer:
        chosen = category_of(content, category)
        remembered = shapes.Remembered(
            **knowledge.remember(caller, [NewObservation(chosen, content, source)], now=now)
        )
        known = f"Already known as observation {remembered.offered[0].observation}." if remembered.offered else ""
        if remembered.added:
            return _unless_held(f"Remembered as {chosen} {remembered.added[0].id}.", remembered.added[0]), remembered
        return known or "Already known.", remembered

    return await answer(context, write)


async def history_append(
    context: HubContext,
    content: Annotated[
        str, Field(min_length=1, max_length=memory.MAX_ENTRY, description="What happened, in brief."), STORABLE
    ],
    session: Annotated[
        str, Field(max_length=KEY_LENGTH, description="The key of the session it belongs to."), STORABLE
    ] = "",
) -> Annotated[CallToolResult, shapes.Note]:
    """Append an entry to the history log: what was done or happened today, such as a release or a migration.

    Entries of the log can't be changed. Use memory_remember for what stays true.
    """

    def write(caller: Caller, now: datetime) -> ToolAnswer:
        note = shapes.Note(**memory.append_history(caller, content, session_key=session, now=now))
        return _unless_held(f"Added at position {note.position}.", note), note

    return await answer(context, write)


async def history_search(
    context: HubContext,
    query: Annotated[
        str, Field(max_length=MAX_QUERY, description="Only entries that contain this text, ignoring case."), STORABLE
    ] = "",
    cursor: Cursor = "",
    limit: Annotated[int, Field(ge=1, le=200)] = 20,
) -> Annotated[CallToolResult, shapes.History]:
    """Show the history log, the latest entries first: what the log says happened; with a query, only about that."""

    def read(caller: Caller, now: datetime) -> ToolAnswer:
        found, next_cursor = memory.list_history(caller, text=query, cursor=cursor, limit=limit, now=now)
        rows = [one | {"kind": "history", "text": one["content"]} for one in found]
        entries = [shapes.HistoryNote(**one) for one in found]
        return joined_lines(map(match_line, rows), next_cursor, "No entries."), shapes.History(
            entries=entries, next_cursor=next_cursor
        )

    return await answer(context, read)


async def memory_document_read(
    context: HubContext,
    name: Name = "MEMORY.md",
    revision: Annotated[int | None, Field(ge=1, le=2**31 - 1, description="Default: the latest.")] = None,
    workspace: Annotated[
        str, Field(max_length=64, description="A shared workspace that results name. Default: your own."), STORABLE
    ] = "",
) -> Annotated[CallToolResult, shapes.DocumentText]:
    """Read a whole memory document (MEMORY.md, USER.md, SOUL.md, ...), or what it said in an earlier revision."""

    def read(caller: Caller, now: datetime) -> ToolAnswer:
        found = memory.read_document(caller, name, revision=revision, workspace=workspace, now=now)
        document = shapes.DocumentText(**found)
        return document.content, document

    return await answer(context, read)


async def memory_fact_add(
    context: HubContext,
    fact: Annotated[
        str, Field(min_length=1, max_length=MAX_FACT, description="One self-contained sentence."), STORABLE
    ],
    document: Name = "MEMORY.md",
) -> Annotated[CallToolResult, shapes.AddedFact]:
    """Add a fact as a new line to a memory document, when the document (MEMORY.md, USER.md) is asked for by name.

    Use memory_remember otherwise. A known fact changes nothing; a risky one waits for review.
    """

    def write(caller: Caller, now: datetime) -> ToolAnswer:
        written = memory.add_fact(caller, document, fact, now=now)
        added = shapes.AddedFact(document=written["name"], status=written["status"], revision=written["revision"])
        texts = {"written": "Added.", "unchanged": "Already known.", "held": "Waiting for review."}
        return texts[added.status], added

    return await answer(context, write)


async def memory_why(
    context: HubContext,
    fact: Annotated[int, Field(ge=1, lt=2**63, description="The fact's id, from memory_search with kinds: memory.")],
) -> Annotated[CallToolResult, shapes.Why]:
    """Explain why the memory contains a fact and where it comes from: the source messages, tool calls and history,
    how certain that is, and its revisions.

    Use it for questions such as "why do you believe this?" and "who said so?".
    """

    def read(caller: Caller, now: datetime) -> ToolAnswer:
        return why_text(memory.explain_fact(caller, fact, now=now))

    return await answer(context, read)


async def memory_document_propose(
    context: HubContext,
    name: Name,
    content: Annotated[str, Field(max_length=MAX_DOCUMENT_CHARS, description="The complete new text."), STORABLE],
    base: Annotated[
        int | None,
        Field(ge=0, le=2**31 - 1, description="The revision that you read; 0 for a new document."),
    ] = None,
    reason: Reason = "",
) -> Annotated[CallToolResult, shapes.Proposal]:
    """Propose a new version of a whole memory document, or a new document: create, rewrite, reorganise.

    It waits in the inbox for review: a person approves or rejects it. Read the document first and pass its revision
    as base, so that changes made since aren't lost. For one line, use memory_line_replace.
    """

    def write(caller: Caller, now: datetime) -> ToolAnswer:
        document = memory.propose_document(caller, name, content, base=base, reason=reason, now=now)
        proposal = shapes.Proposal(**document)
        return f"Proposal {proposal.id} for {proposal.document} is waiting for review.", proposal

    return await answer(context, write)


ToolFunction = Callable[..., Any]
READING: dict[str, ToolFunction] = {
    "Read a value": memory_read,
    "List keys": memory_list,
    "Search everything": memory_search,
    "Recall": memory_recall,
    "Search the history": history_search,
    "Read a document": memory_document_read,
    "Explain a fact": memory_why,
    "List what is new": memory_recent,
    "List sessions": session_list,
    "Read a session": session_read,
}
WRITING: dict[str, tuple[ToolFunction, bool]] = {  # with True if the tool is idempotent
    "Write a value": (memory_write, True),
    "Remember": (memory_remember, False),
    "Append to the history": (history_append, False),
    "Add a fact": (memory_fact_add, True),
    "Correct": (memory_correct, True),
    "Withdraw": (memory_withdraw, True),
    "Replace a line": (memory_line_replace, True),
    "Propose a document": (memory_document_propose, True),
    "Append to a session": (session_append, False),
    "Clear a session": (session_clear, True),
}


@cache
def all_tools() -> tuple[Tool, ...]:
    """Return the tools. Cached, since each one's JSON schema is computed from its function."""
    reading = [_tool(function, title, _hints(read_only=True, idempotent=True)) for title, function in READING.items()]
    return (
        *reading,
        *(
            _tool(function, title, _hints(read_only=False, idempotent=idempotent))
            for title, (function, idempotent) in WRITING.items()
        ),
    )


def _tool(function: ToolFunction, title: str, hints: ToolAnnotations) -> Tool:
    return Tool.from_function(function, title=title, description=inspect.getdoc(function), annotations=hints)


def _hints(*, read_only: bool, idempotent: bool) -> ToolAnnotations:
    """Return a tool's hints. No tool destroys data or reaches beyond the hub."""
    return ToolAnnotations(
        read_only_hint=read_only, destructive_hint=False, idempotent_hint=idempotent, open_world_hint=False
    )


def _unless_held(text: str, checked: shapes.Checked) -> str:
    reasons = ", ".join(dict.fromkeys(one.message for one in checked.findings))
    if run := getattr(checked, "run", None):
        return f"Not saved yet: run {run} is waiting for a person, because it {reasons}."
    held = f" Held for review: {reasons}. It can't be read or recalled until a person approves it."
    return f"{text}{held if checked.held else ''}"
