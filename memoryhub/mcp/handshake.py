"""Answer a client's first requests on standard input while Django and the SDK are imported, which takes seconds.

Clients give up on servers that answer late, or start without their tools. The answers depend neither on the token nor
on the data; ``make reference`` records them from the SDK in early_answers.json. The list of resources is empty until
the SDK serves, which is then announced as a change. This module imports only the standard library.
"""

from __future__ import annotations

import json
import os
import sys
import threading
from pathlib import Path
from queue import SimpleQueue
from typing import Any

ANSWERS = Path(__file__).with_name("early_answers.json")
VERSIONS = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")  # those with an initialize request
LISTED_LATER: dict[str, dict[str, Any]] = {"resources/list": {"resources": []}}
DISCOVER = "server/discover"  # the first request of clients of protocols without an initialize request
VERSION_KEY, CLIENT_KEY, CAPABILITIES_KEY = (
    f"io.modelcontextprotocol/{name}" for name in ("protocolVersion", "clientInfo", "clientCapabilities")
)
CHANGED = '{"jsonrpc": "2.0", "method": "notifications/resources/list_changed"}\n'
CHUNK = 65_536


class Wire:
    """Standard input and output as a file for the SDK, with early answers until the SDK serves.

    The SDK gets the initialize request too, so that its state is right; its answer, the same one, is left out. What
    follows a request that is left to the SDK may depend on its answer, and is left to the SDK as well.
    """

    def __init__(self, reader: int, writer: int, answers: dict[str, dict[str, Any]]) -> None:
        self.reader, self.writer, self.answers = reader, writer, answers | LISTED_LATER
        self.is_serving = False
        self._initialized: int | str | None = None  # id of the request, until the SDK has answered it
        self._is_left_to_sdk = False
        self._lists_later = False
        self._lines: SimpleQueue[str] = SimpleQueue()
        self._put_back: list[str] = []
        self._writing = threading.Lock()

    def read(self) -> None:
        """Read lines until the end. Early requests are answered, all others are kept for ``readline``."""
        buffer, searched = bytearray(), 0
        while chunk := os.read(self.reader, CHUNK):
            buffer += chunk
            while (end := buffer.find(b"\n", searched)) >= 0:
                self.receive(buffer[: end + 1].decode("utf-8", "replace"))
                del buffer[: end + 1]
                searched = 0
            searched = len(buffer)
        self._lines.put(buffer.decode("utf-8", "replace"))
        self._lines.put("")

    def receive(self, line: str) -> None:
        answer = None if self.is_serving else self._early_answer(line)
        if answer:
            self._send(json.dumps(answer) + "\n")
        if answer is None or "serverInfo" in answer["result"]:
            self._is_left_to_sdk |= self._initialized is None
            self._lines.put(line)

    def readline(self) -> str:
        return self._put_back.pop(0) if self._put_back else self._lines.get()

    def put_back(self, *lines: str) -> None:
        """Return these lines first from ``readline``. An initialize request among them was answered before."""
        self._put_back = [*lines, *self._put_back]
        if not self.is_initializing:
            requests = [one for one in map(decoded, lines) if one.get("method") == "initialize"]
            self._initialized = requests[0].get("id") if requests else None

    @property
    def is_initializing(self) -> bool:
        """Whether an initialize request was answered early, and not yet by what serves."""
        return self._initialized is not None

    def write(self, text: str) -> int:
        if self.is_initializing and json.loads(text).get("id") == self._initialized:
            self._initialized = None
            if self._lists_later:
                self._lists_later = False
                self._send(CHANGED)
        else:
            self._send(text)
        return len(text)

    def flush(self) -> None:
        """Do nothing: nothing is buffered."""

    def _send(self, text: str) -> None:
        rest = text.encode()
        with self._writing:
            while rest:
                rest = rest[os.write(self.writer, rest) :]

    def _early_answer(self, line: str) -> dict[str, Any] | None:
        try:
            request = decoded(line)
            method, number, params = request["method"], request["id"], request.get("params") or {}
            result = self.answers[method]
            if self._is_left_to_sdk or isinstance(number, bool) or not isinstance(number, int | str):
                return None
            if method == DISCOVER:
                _check_discovery(params, result)
            elif method == "initialize":
                result = result | {"protocolVersion": _version(params)}
                self._initialized = number
            elif self._initialized is None or "cursor" in params:
                return None
            self._lists_later |= method in LISTED_LATER
        except (ValueError, KeyError, TypeError, AttributeError):
            return None
        return {"jsonrpc": "2.0", "id": number, "result": result}


def decoded(line: str) -> dict[str, Any]:
    """Return the message in a line; {} if it is no JSON object."""
    try:
        message = json.loads(line)
    except (ValueError, RecursionError):
        return {}
    return message if isinstance(message, dict) else {}


wire: Wire | None = None


def answer_early(arguments: list[str], *, has_token: bool) -> None:
    """Set ``wire`` if the command ``mcp_server`` has a token; not for other arguments, such as --help.

    ``has_token``: whether MEMORYHUB_TOKEN is set. The descriptors 0 and 1 lead elsewhere then, so that output of
    imported code can't break the protocol.
    """
    global wire
    if len(arguments) == 2 and arguments[0] == "--token-file":
        can_answer = os.access(Path(arguments[1]).expanduser(), os.R_OK)
    else:
        can_answer = has_token and not arguments
    if not can_answer or os.name != "posix" or sys.stdin.isatty():
        return
    wire = Wire(os.dup(0), os.dup(1), json.loads(ANSWERS.read_text(encoding="utf-8")))
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    threading.Thread(target=wire.read, daemon=True).start()


def _check_discovery(params: dict[str, Any], result: dict[str, Any]) -> None:
    """Raise TypeError or KeyError unless a request asks for one of the versions in its result."""
    meta = params["_meta"]
    is_known = meta[VERSION_KEY] in result["supportedVersions"]
    if not is_known or not all(isinstance(meta[key], dict) for key in (CLIENT_KEY, CAPABILITIES_KEY)):
        raise TypeError


def _version(params: dict[str, Any]) -> str:
    """Return the protocol version for an initialize request. Raises TypeError or KeyError if it is invalid."""
    version, client = params["protocolVersion"], params["clientInfo"]
    texts = (version, client["name"], client["version"])
    if not isinstance(params["capabilities"], dict) or not all(isinstance(text, str) for text in texts):
        raise TypeError
    return version if version in VERSIONS else VERSIONS[-1]
