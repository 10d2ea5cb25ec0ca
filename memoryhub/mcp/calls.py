"""Run an agent's call in a thread, and turn expected errors into results."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from typing import Any, TypeVar

from django.db import DatabaseError, InterfaceError, close_old_connections
from django.utils import timezone
from mcp.server.context import ServerRequestContext
from mcp.server.mcpserver import Context
from mcp_types import CallToolResult, TextContent
from pydantic import BaseModel

from memoryhub.agents.api_tokens import Caller
from memoryhub.lib.database.faults import fault_of
from memoryhub.lib.errors import MemoryHubError
from memoryhub.mcp.results import Compact

THREADS = 6  # each has its own connection; SQLite has one writer, so more would only wait
CODE = "memoryhub/code"  # key of the error code in a result's _meta
FindCaller = Callable[[Any, datetime], Caller]  # takes the HTTP request; None on stdio
HubContext = Context[FindCaller, Any]
RequestContext = ServerRequestContext[FindCaller, Any]
ResultT = TypeVar("ResultT")

_threads = ThreadPoolExecutor(THREADS, thread_name_prefix="mcp")


async def in_thread(work: Callable[[], ResultT]) -> ResultT:
    """Run database work in a thread, so that it doesn't block the event loop."""
    return await asyncio.get_running_loop().run_in_executor(_threads, _with_usable_connections, work)


def _with_usable_connections(work: Callable[[], ResultT]) -> ResultT:
    close_old_connections()  # Django does this only for its own requests
    try:
        return work()
    finally:
        close_old_connections()


async def call(request: RequestContext, work: Callable[[Caller, datetime], ResultT]) -> ResultT:
    """Run ``work`` for the calling agent. Raises its errors, and those of authentication."""

    def run() -> ResultT:
        now = timezone.now()
        return work(request.lifespan_context(request.request, now), now)

    return await in_thread(run)


async def answer(context: HubContext, work: Callable[[Caller, datetime], tuple[str, BaseModel]]) -> CallToolResult:
    """Return a tool's result with text and structured values. Expected errors become results too."""
    try:
        text, values = await call(context.request_context, work)
    except MemoryHubError as error:
        return refusal(error.code, error.message, **error.details)
    except (DatabaseError, InterfaceError, OSError) as error:
        fault = fault_of(error)
        if fault is None:
            raise
        return refusal(fault.code, fault.message)
    content = values.model_dump(mode="json", exclude_none=isinstance(values, Compact))
    return CallToolResult(content=[TextContent(type="text", text=text)], structured_content=content)


def refusal(code: str, message: str, **details: object) -> CallToolResult:
    """Return an error as a tool result, so that the model can read it."""
    content = TextContent(type="text", text=f"{code}: {message}")
    return CallToolResult(content=[content], is_error=True, _meta={CODE: code} | details)
