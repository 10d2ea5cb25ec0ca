"""Pass a client's requests on standard input on to the hub that runs on this machine, which answers at once.

Importing Django and the SDK takes seconds and 100 MB for each client. A command that finds no hub, or whose hub
stops, serves by itself. This module imports little, and neither Django nor the SDK.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import re
from base64 import b64encode
from collections.abc import Mapping
from contextlib import suppress
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from platformdirs import user_data_dir

from memoryhub.mcp import handshake
from memoryhub.mcp.handshake import VERSION_KEY, Wire, decoded

PATH = "/mcp"
LOOPBACK = ("127.0.0.1", "localhost", "::1")
SECONDS_TO_CONNECT = 2.0
SECONDS_TO_ANSWER = 120.0
OK, ACCEPTED = 200, 202
OPENING = ("initialize", "notifications/initialized")
INTERNAL_ERROR = -32603  # of JSON-RPC
STOPPED = "The hub stopped during this call, which may have been carried out. Look before you repeat it."
_TEXT = re.compile(r"[\x21-\x7e]+")


class NotReached(Exception):
    """The hub doesn't accept connections, so it doesn't know of the request."""


class NoAnswer(Exception):
    """The hub accepted a request, but didn't answer."""


def database_mark(database_url: str) -> str:
    """Return a text that tells whether two processes use the same database, without its password."""
    return hashlib.sha256(database_url.encode()).hexdigest()


def running_hub(home: Path, database_url: str) -> str:
    """Return the address of the hub that runs on this machine with this home and database, or ""."""
    with suppress(OSError, ValueError), (home / "address").open() as opened:
        try:
            fcntl.flock(opened, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:  # the hub holds the lock until it ends
            address, _, mark = opened.read().partition("\n")
            parts = urlsplit(address)
            is_here = parts.scheme == "http" and parts.hostname in LOOPBACK and parts.port
            return address if is_here and mark == database_mark(database_url) else ""
    return ""


class Hub:
    """A hub at an address, called with a token. ``version``: the protocol version that was agreed upon."""

    def __init__(self, address: str, token: str) -> None:
        self.version = ""
        self._host = urlsplit(address).netloc
        self._headers = {
            "Authorization": f"Bearer {token}",
            "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
        }

    def send(self, line: str, message: dict[str, Any]) -> tuple[int, bytes]:
        """Send a message; return the status and the body. Raises NotReached, NoAnswer."""
        connection = HTTPConnection(self._host, timeout=SECONDS_TO_CONNECT)
        try:
            connection.connect()
        except OSError as error:
            raise NotReached from error
        try:
            connection.sock.settimeout(SECONDS_TO_ANSWER)
            headers = self._headers | _routing_headers(message, self.version)
            connection.request("POST", PATH, line.strip().encode(), headers)
            response = connection.getresponse()
            return response.status, response.read()
        except (OSError, HTTPException) as error:
            raise NoAnswer from error
        finally:
            connection.close()


def _routing_headers(message: dict[str, Any], version: str) -> dict[str, str]:
    """Return the headers that repeat parts of a message. Later protocols name their version in each message."""
    own, method = _own_version(message), message.get("method")
    if not own or not isinstance(method, str) or not _TEXT.fullmatch(own + method):
        return {"MCP-Protocol-Version": version} if version else {}
    name = message["params"].get("uri" if method == "resources/read" else "name")
    encoded = f"=?base64?{b64encode(name.encode()).decode()}?=" if isinstance(name, str) else ""
    return {"MCP-Protocol-Version": own, "Mcp-Method": method} | ({"Mcp-Name": encoded} if encoded else {})


def _own_version(message: dict[str, Any]) -> str:
    params = message.get("params")
    meta = params.get("_meta") if isinstance(params, dict) else None
    version = meta.get(VERSION_KEY) if isinstance(meta, dict) else None
    return version if isinstance(version, str) else ""


def serve_from_hub(arguments: list[str], environ: Mapping[str, str]) -> bool:
    """Serve a client of the command ``mcp_server`` until it ends; return False if no hub runs on this machine."""
    if handshake.wire is None:
        return False
    home = Path(environ.get("MEMORYHUB_HOME") or user_data_dir("memoryhub")).expanduser()
    address = running_hub(home, environ.get("DATABASE_URL", ""))
    with suppress(OSError, UnicodeDecodeError):
        file = Path(arguments[1]).expanduser() if arguments else None
        token = file.read_text(encoding="utf-8-sig") if file else environ["MEMORYHUB_TOKEN"]
        return bool(address) and forward(handshake.wire, Hub(address, token.strip()))
    return False


def forward(wire: Wire, hub: Hub) -> bool:
    """Let a hub answer until the end of the input; return False if this process has to serve by itself.

    The hub must accept the first message, so that the token is one of this hub. It is an initialize request that was
    answered early, or a request of a protocol without them.
    """
    opening: list[str] = []  # what another server has to know first
    while line := wire.readline():
        message = decoded(line)
        is_opening = message.get("method") in OPENING
        if not wire.is_serving and not (wire.is_initializing or _own_version(message)):
            return _leave(wire, line)
        try:
            status, body = hub.send(line, message)
        except NotReached:
            return _leave(wire, *opening, line)
        except NoAnswer:
            if not is_opening:
                _fail(wire, message, STOPPED)
            return _leave(wire, *opening, *([line] if is_opening else []))
        if wire.is_initializing:
            hub.version = _version(body)
        if not wire.is_serving and (status != OK or (wire.is_initializing and not hub.version)):
            return _leave(wire, line)
        wire.is_serving = True
        _answer(wire, message, status, body)
        opening += [line] if is_opening else []
    return True


def _leave(wire: Wire, *lines: str) -> bool:
    wire.put_back(*lines)
    return False


def _version(body: bytes) -> str:
    """Return the protocol version in the answer to an initialize request, "" if it is an error."""
    try:
        return str(json.loads(body)["result"]["protocolVersion"])
    except (ValueError, KeyError, TypeError):
        return ""


def _answer(wire: Wire, message: dict[str, Any], status: int, body: bytes) -> None:
    if status == OK:
        wire.write(body.replace(b"\n", b"").decode("utf-8", "replace") + "\n")
    elif status != ACCEPTED:
        _refuse(wire, message, status, body)


def _refuse(wire: Wire, message: dict[str, Any], status: int, body: bytes) -> None:
    """Answer a request that the hub refused, such as for its rate limit, in the words of its problem document."""
    problem = decoded(body.decode("utf-8", "replace"))
    if "jsonrpc" in problem:
        wire.write(json.dumps(problem) + "\n")
        return
    text = f"{problem.get('code', 'refused')}: {problem.get('detail', f'The hub answered {status}.')}"
    if message.get("method") == "tools/call" and "id" in message:
        result = {"content": [{"type": "text", "text": text}], "isError": True}
        wire.write(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}) + "\n")
    else:
        _fail(wire, message, text)


def _fail(wire: Wire, message: dict[str, Any], text: str) -> None:
    if "id" in message and "method" in message:
        error = {"code": INTERNAL_ERROR, "message": text}
        wire.write(json.dumps({"jsonrpc": "2.0", "id": message["id"], "error": error}) + "\n")
