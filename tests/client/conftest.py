from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from pytest_httpserver import HTTPServer

from memoryhub.client import AsyncMemoryHub, MemoryHub

TOKEN = "mh_0123456789_secret"
NAPS: list[float] = []


async def nap(seconds: float) -> None:
    NAPS.append(seconds)


async def finish(answer: Any) -> Any:
    """Await the result of an async method, as a list if it is an iterator."""
    return [item async for item in answer] if hasattr(answer, "__aiter__") else await answer


@pytest.fixture
def naps() -> list[float]:
    """Record the seconds that a client would sleep."""
    NAPS.clear()
    return NAPS


@pytest.fixture(scope="session")
def waiting(make_httpserver: HTTPServer) -> Iterator[Callable[..., Any]]:
    """Call a method of MemoryHub by name. Iterators become lists."""
    with MemoryHub(make_httpserver.url_for("/"), TOKEN, sleep=NAPS.append) as hub:

        def call(name: str, *arguments: Any, **options: Any) -> Any:
            answer = getattr(hub, name)(*arguments, **options)
            return list(answer) if hasattr(answer, "__next__") else answer

        yield call


@pytest.fixture(scope="session")
def awaiting(make_httpserver: HTTPServer) -> Iterator[Callable[..., Any]]:
    """Call a method of AsyncMemoryHub by name and await it. Iterators become lists."""
    hub = AsyncMemoryHub(make_httpserver.url_for("/"), TOKEN, sleep=nap)
    with asyncio.Runner() as runner:
        yield lambda name, *arguments, **options: runner.run(finish(getattr(hub, name)(*arguments, **options)))
        runner.run(hub.close())


@pytest.fixture(params=["waiting", "awaiting"])
def client(request, httpserver: HTTPServer, naps: list[float]) -> Callable[..., Any]:
    """Run each test with both clients."""
    call: Callable[..., Any] = request.getfixturevalue(request.param)
    return call


@pytest.fixture
def closed_port() -> Iterator[str]:
    """Return the URL of a port on which nothing listens."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        yield f"http://127.0.0.1:{held.getsockname()[1]}"
