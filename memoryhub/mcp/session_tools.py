"""MCP tools for sessions, and for what is new, for agents that have no other connection to the hub."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal

from mcp_types import CallToolResult
from pydantic import BaseModel, Field

from memoryhub.agents.api_tokens import Caller
from memoryhub.agents.operations import conversations, queries
from memoryhub.mcp import results as shapes
from memoryhub.mcp.arguments import STORABLE, Cursor, ToolAnswer
from memoryhub.mcp.calls import HubContext, answer
from memoryhub.mcp.texts import as_match, counted, joined_lines, match_line, on_one_line, time_text
from memoryhub.search import KINDS
from sessions_app.models.conversations import KEY_LENGTH

MAX_MESSAGE = 200_000
MAX_MESSAGES = 100
SessionKey = Annotated[str, Field(min_length=1, max_length=KEY_LENGTH, description="The session's key."), STORABLE]


class NewMessage(BaseModel):
    role: Literal["user", "assistant", "system", "tool"]
    content: Annotated[str, Field(max_length=MAX_MESSAGE), STORABLE]


async def session_list(
    context: HubContext,
    channel: Annotated[
        str, Field(max_length=KEY_LENGTH, description="Only sessions of this channel, such as cli."), STORABLE
    ] = "",
    cursor: Cursor = "",
    limit: Annotated[int, Field(ge=1, le=100)] = 20,
) -> Annotated[CallToolResult, shapes.Sessions]:
    """List earlier conversations (sessions) with their keys and titles, latest first: which ones there were."""

    def read(caller: Caller, _now: datetime) -> ToolAnswer:
        found, next_cursor = conversations.list_sessions(caller, channel=channel, cursor=cursor, limit=limit)
        lines = [
            f"- {one['key']}, {counted(one['entries'], 'message')}, last changed {time_text(one['updated_at'])}: "
            f"{on_one_line(one['title'] or '') or 'no title'}"
            for one in found
        ]
        sessions = [
            shapes.SessionLine(
                session=one["key"], entries=one["entries"], title=on_one_line(one["title"] or "") or None
            )
            for one in found
        ]
        return joined_lines(lines, next_cursor, "No sessions."), shapes.Sessions(
            sessions=sessions, next_cursor=next_cursor
        )

    return await answer(context, read)


async def session_read(
    context: HubContext,
    session: SessionKey,
    cursor: Cursor = "",
    limit: Annotated[int, Field(ge=1, le=100)] = 30,
) -> Annotated[CallToolResult, shapes.SessionMessages]:
    """Read what was said in a session (an earlier conversation): its last messages in order.

    The cursor leads to the messages before them. session_list returns the keys.
    """

    def read(caller: Caller, now: datetime) -> ToolAnswer:
        found, next_cursor = conversations.read_session(caller, session, cursor=cursor, limit=limit, now=now)
        messages = [
            shapes.SessionMessage(position=one["position"], role=one["role"], text=_text(one)) for one in found
        ]
        lines = [
            f"- [message {one.position}, {one.role}, {time_text(row['occurred_at']) or 'no time'}] {one.text}"
            for one, row in zip(messages, found, strict=True)
        ]
        heading = f"The last messages of the session {session}:"
        text = joined_lines([heading, *lines] if lines else [], next_cursor, "No messages.")
        return text, shapes.SessionMessages(session=session, messages=messages, next_cursor=next_cursor)

    return await answer(context, read)


async def session_append(
    context: HubContext,
    session: SessionKey,
    messages: Annotated[
        list[NewMessage], Field(min_length=1, max_length=MAX_MESSAGES, description="In order, each only once.")
    ],
) -> Annotated[CallToolResult, shapes.Appended]:
    """Save this conversation: append its messages to a session, so that the next conversation finds them.

    The session is created if missing. Send each message once.
    """

    def write(caller: Caller, now: datetime) -> ToolAnswer:
        rows = [message.model_dump() for message in messages]
        made = shapes.Appended(**conversations.append(caller, session, rows, now=now) | {"session": session})
        return f"Appended {counted(made.added, 'message')} to {made.session}.", made

    return await answer(context, write)


async def session_clear(
    context: HubContext,
    session: SessionKey,
    *,
    archive: Annotated[bool, Field(description="Consolidate all entries into memory first.")] = True,
) -> Annotated[CallToolResult, shapes.Cleared]:
    """Clear a session: start it afresh with an empty context. Earlier entries are kept.

    With archive, a worker first consolidates all entries into MEMORY.md and the history; if that fails or is held for
    review, the session isn't cleared.
    """

    def write(caller: Caller, now: datetime) -> ToolAnswer:
        cleared = shapes.Cleared(**conversations.clear_session_of_key(caller, session, archive=archive, now=now))
        action = f"Run {cleared.run} will archive and clear" if cleared.run else "Cleared"
        return f"{action} {cleared.session}.", cleared

    return await answer(context, write)


async def memory_recent(
    context: HubContext,
    since: Annotated[
        str,
        Field(min_length=1, max_length=40, description="today, yesterday, monday, 7d or a date such as 2026-01-31."),
    ] = "yesterday",
    kinds: Annotated[
        list[str],
        Field(max_length=20, description=f"Only these kinds: {', '.join(KINDS)}. Default: all but single messages."),
    ] = [],  # noqa: B006
    limit: Annotated[int, Field(ge=1, le=200)] = 50,
) -> Annotated[CallToolResult, shapes.Matches]:
    """List what is new or changed since yesterday, the last days or another day, newest first: without a query."""

    def read(caller: Caller, now: datetime) -> ToolAnswer:
        found = queries.recent(caller, since, kinds=kinds, limit=limit, now=now)
        rows = [as_match(caller, one, one["text"]) for one in found]
        count = [f"New since {since}, newest first:"] if rows else []
        return joined_lines([*count, *map(match_line, rows)], None, "Nothing new."), shapes.Matches(
            results=[shapes.Match(**row) for row in rows]
        )

    return await answer(context, read)


def _text(entry: dict[str, Any]) -> str:
    """Return the text of an entry on one line, with the names of the tools that it calls."""
    names = [call["function"]["name"] for call in entry["tool_calls"] if isinstance(call.get("function"), dict)]
    called = f" (calls {', '.join(names)})" if names else ""
    return f"{on_one_line(entry['content'])}{called}".strip()
