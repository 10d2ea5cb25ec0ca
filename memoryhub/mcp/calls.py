"""One call of an agent: by whom, in a thread that may wait for the database, and the words where it can't be done."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from typing import Any, TypeVar

from django.db import OperationalError, close_old_connections
from django.utils import timezone
from mcp.server.context import ServerRequestContext
from mcp.server.mcpserver import Context
from mcp_types import CallToolResult, TextContent
from pydantic import BaseModel

from memoryhub.agents.api_tokens import Caller
from memoryhub.lib import db_retry
from memoryhub.lib.errors import MemoryHubError

THREADS = 6  # each has a connection of its own; SQLite has one writer, so more would only wait
CODE = "memoryhub/code"  # where an error's code stands in a result's _meta
FindCaller = Callable[[Any, datetime], Caller]  # from the HTTP request, None on stdio
HubContext = Context[FindCaller, Any]
RequestContext = ServerRequestContext[FindCaller, Any]
ResultT = TypeVar("ResultT")

_threads = ThreadPoolExecutor(THREADS, thread_name_prefix="mcp")


async def in_thread(work: Callable[[], ResultT]) -> ResultT:
    """Do what reads or writes the database where the event loop doesn't wait for it."""
    return await asyncio.get_running_loop().run_in_executor(_threads, _with_living_connections, work)


def _with_living_connections(work: Callable[[], ResultT]) -> ResultT:
    close_old_connections()  # no request of Django's begins or ends here
    try:
        return work()
    finally:
        close_old_connections()


async def call(request: RequestContext, work: Callable[[Caller, datetime], ResultT]) -> ResultT:
    """Do a piece of work for the agent that asks. Raises what the work and the agent's token raise."""

    def run() -> ResultT:
        now = timezone.now()
        return work(request.lifespan_context(request.request, now), now)

    return await in_thread(run)


async def answer(context: HubContext, work: Callable[[Caller, datetime], tuple[str, BaseModel]]) -> CallToolResult:
    """Return a tool's result from its text for people and models, and its values; expected errors are results too."""
    try:
        text, values = await call(context.request_context, work)
    except MemoryHubError as error:
        return refusal(error.code, error.message, **error.details)
    except OperationalError as error:
        if not db_retry.is_transient(error):
            raise
        return refusal("busy", "Another writer keeps the database: call this again.")
    return CallToolResult(
        content=[TextContent(type="text", text=text)], structured_content=values.model_dump(mode="json")
    )


def refusal(code: str, message: str, **details: object) -> CallToolResult:
    """Return an error as a tool's result, which the model reads and can act on."""
    words = TextContent(type="text", text=f"{code}: {message}")
    return CallToolResult(content=[words], is_error=True, _meta={CODE: code} | details)
