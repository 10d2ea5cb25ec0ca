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
    """Return what an async method gives, a list where it goes through one."""
    return [item async for item in answer] if hasattr(answer, "__aiter__") else await answer


@pytest.fixture
def naps() -> list[float]:
    """The seconds that a client would have slept."""
    NAPS.clear()
    return NAPS


@pytest.fixture(scope="session")
def waiting(make_httpserver: HTTPServer) -> Iterator[Callable[..., Any]]:
    """Call a method of MemoryHub by its name; a list comes whole."""
    with MemoryHub(make_httpserver.url_for("/"), TOKEN, sleep=NAPS.append) as hub:

        def call(name: str, *arguments: Any, **options: Any) -> Any:
            answer = getattr(hub, name)(*arguments, **options)
            return list(answer) if hasattr(answer, "__next__") else answer

        yield call


@pytest.fixture(scope="session")
def awaiting(make_httpserver: HTTPServer) -> Iterator[Callable[..., Any]]:
    """Call a method of AsyncMemoryHub by its name, and wait; a list comes whole."""
    hub = AsyncMemoryHub(make_httpserver.url_for("/"), TOKEN, sleep=nap)
    with asyncio.Runner() as runner:
        yield lambda name, *arguments, **options: runner.run(finish(getattr(hub, name)(*arguments, **options)))
        runner.run(hub.close())


@pytest.fixture(params=["waiting", "awaiting"])
def client(request, httpserver: HTTPServer, naps: list[float]) -> Callable[..., Any]:
    """Either client, each test once with both."""
    call: Callable[..., Any] = request.getfixturevalue(request.param)
    return call


@pytest.fixture
def closed_port() -> Iterator[str]:
    """The address of a hub that has gone."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        yield f"http://127.0.0.1:{held.getsockname()[1]}"
