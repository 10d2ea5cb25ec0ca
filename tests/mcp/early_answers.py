"""The SDK's answers to a client's first requests, which ``memoryhub.mcp.handshake`` gives before it is imported."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterable
from typing import Any

from memoryhub.mcp.server import build_server

METHODS = ("tools/list", "prompts/list", "resources/templates/list")


def request(method: str, number: int = 0, **params: Any) -> str:
    return json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params}) + "\n"


def initialize(version: str = "2025-06-18") -> str:
    client = {"name": "test", "version": "1"}
    return request("initialize", protocolVersion=version, capabilities={}, clientInfo=client)


class Requests:
    """A file for the SDK that sends each request when the one before is answered."""

    def __init__(self, lines: Iterable[str]) -> None:
        self.lines = iter(lines)
        self.results: list[Any] = []
        self._is_free = threading.Semaphore()

    def readline(self) -> str:
        self._is_free.acquire()
        return next(self.lines, "")

    def write(self, text: str) -> None:
        self.results.append(json.loads(text)["result"])
        self._is_free.release()

    def flush(self) -> None:
        """Do nothing."""


def sdk_answers(version: str) -> dict[str, Any]:
    """Return the SDK's results by method, for a protocol version."""
    requests = Requests([initialize(version), *(request(method, 1 + n) for n, method in enumerate(METHODS))])

    async def serve() -> None:
        await build_server(lambda _request, _now: None).serve_wire(requests)  # type: ignore[arg-type, return-value]

    asyncio.run(serve())
    return dict(zip(("initialize", *METHODS), requests.results, strict=True))


def recorded() -> str:
    """Return the text of early_answers.json."""
    return json.dumps(sdk_answers("2025-06-18"), indent=1, ensure_ascii=False) + "\n"
