from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from typing import Any, TypeVar

import httpx2
import pytest
from django.db import connections
from django.utils import timezone
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from memoryhub import asgi
from memoryhub.agents.api_tokens import Caller
from memoryhub.mcp import calls
from memoryhub.mcp import transport as door
from memoryhub.mcp.server import build_server
from memoryhub.models import ApiToken

HUB = "http://127.0.0.1:8765"
ResultT = TypeVar("ResultT")


@pytest.fixture
def within_a_minute(time_machine: Any) -> None:
    """Let the test begin with a minute: limits count from one minute of the clock to the next."""
    time_machine.move_to(timezone.now().replace(second=0, microsecond=0))


@pytest.fixture
def one_connection(db: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let the tools' threads use the test's connection, so that they see uncommitted rows."""
    own = connections["default"]

    def on_it(work: Callable[[], ResultT]) -> ResultT:
        connections["default"] = own
        try:
            return work()
        finally:
            del connections["default"]

    own.inc_thread_sharing()
    monkeypatch.setattr(calls, "_with_usable_connections", on_it)
    yield
    own.dec_thread_sharing()


@asynccontextmanager
async def web(**headers: str) -> AsyncIterator[httpx2.AsyncClient]:
    """An HTTP client of the hub's ASGI application, with its lifespan running."""
    async with door.running() as served:

        async def application(scope: Any, receive: Any, send: Any) -> None:
            await asgi.application({**scope, "state": {door.SERVED: served}}, receive, send)

        transport = httpx2.ASGITransport(app=application)
        async with httpx2.AsyncClient(transport=transport, base_url=HUB, headers=headers) as client:
            yield client


def with_client(token: str, do: Callable[[Client], Awaitable[ResultT]], mode: str = "auto") -> ResultT:
    """Run a function with the SDK's client over HTTP and return its result."""

    async def run() -> ResultT:
        async with (
            web(Authorization=f"Bearer {token}") as http,
            Client(streamable_http_client(f"{HUB}/mcp", http_client=http), mode=mode) as client,
        ):
            return await do(client)

    return asyncio.run(run())


def in_memory(do: Callable[[Client], Awaitable[ResultT]]) -> ResultT:
    """Run a function with the SDK's client in memory: no transport, no database."""
    caller = Caller(ApiToken(name="nobody", scopes=[]), "mcp")

    async def run() -> ResultT:
        async with Client(build_server(lambda _request, _now: caller)) as client:
            return await do(client)

    return asyncio.run(run())


def call(token: str, tool: str, /, **arguments: Any) -> Any:
    """Call one tool."""
    return with_client(token, lambda client: client.call_tool(tool, arguments))
