"""The SDK's answers to a client's first requests, which ``memoryhub.mcp.handshake`` gives before it is imported."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterable
from typing import Any

from mcp_types import CLIENT_CAPABILITIES_META_KEY, CLIENT_INFO_META_KEY, PROTOCOL_VERSION_META_KEY
from mcp_types.version import LATEST_MODERN_VERSION

from memoryhub.mcp.handshake import DISCOVER
from memoryhub.mcp.server import build_server

METHODS = ("tools/list", "prompts/list", "resources/templates/list")


def request(method: str, number: int = 0, **params: Any) -> str:
    return json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params}) + "\n"


def initialize(version: str = "2025-06-18") -> str:
    client = {"name": "test", "version": "1"}
    return request("initialize", protocolVersion=version, capabilities={}, clientInfo=client)


def discover(version: str = LATEST_MODERN_VERSION) -> str:
    meta = {
        PROTOCOL_VERSION_META_KEY: version,
        CLIENT_INFO_META_KEY: {"name": "test", "version": "1"},
        CLIENT_CAPABILITIES_META_KEY: {},
    }
    return request(DISCOVER, _meta=meta)


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
    lines = [initialize(version), *(request(method, 1 + n) for n, method in enumerate(METHODS))]
    return dict(zip(("initialize", *METHODS), _results(lines), strict=True))


def _results(lines: Iterable[str]) -> list[Any]:
    requests = Requests(lines)

    async def serve() -> None:
        await build_server(lambda _request, _now: None).serve_wire(requests)  # type: ignore[arg-type, return-value]

    asyncio.run(serve())
    return requests.results


def recorded() -> str:
    """Return the text of early_answers.json, with a line for each tool."""
    answers = {DISCOVER: _results([discover()])[0]} | sdk_answers("2025-06-18")
    results = (f"{_dumped(method)}: {{\n{_fields(result)}\n}}" for method, result in answers.items())
    return "{\n" + ",\n".join(results) + "\n}\n"


def _fields(result: dict[str, Any]) -> str:
    return ",\n".join(f" {_dumped(name)}: {_by_line(value)}" for name, value in result.items())


def _by_line(value: Any) -> str:
    rows = ",\n".join(f"  {_dumped(item)}" for item in value) if isinstance(value, list) else ""
    return f"[\n{rows}\n ]" if rows else _dumped(value)


def _dumped(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
