"""MCP over HTTP, next to Django. Requests are authenticated before the SDK sees them.

The transport is stateless (no MCP session, one JSON response), so that any web process can answer a request.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.http.request import split_domain_port, validate_host
from django.utils import timezone
from mcp.server.transport_security import TransportSecuritySettings

from memoryhub.agents.api_tokens import Caller, NotAuthenticated, authenticate, bearer_token
from memoryhub.agents.call_limits import TooManyCalls, spend_call
from memoryhub.agents.hub_url import MCP_PATH, address_at
from memoryhub.lib.http.problem_details import MEDIA_TYPE, problem_document
from memoryhub.mcp.calls import in_thread
from memoryhub.mcp.server import build_server

PATHS = (MCP_PATH, f"{MCP_PATH}/")
RESOURCE_METADATA = "/.well-known/oauth-protected-resource"
SERVED = "memoryhub.mcp"  # key of the handler in the lifespan state, and of the caller in a request's scope
LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
UNIQUE_HEADERS = ("host", "origin", "authorization", "content-length", "content-encoding")


class Refused(Exception):
    """A rejected request: its status, and the code and detail of the problem document."""

    def __init__(self, status: int, code: str, detail: str, **headers: str) -> None:
        super().__init__(detail)
        self.status, self.code, self.detail, self.headers = status, code, detail, headers

    @classmethod
    def too_many(cls, error: TooManyCalls) -> Refused:
        return cls(429, error.code, error.message, **{"retry-after": str(error.details["retry_after"])})


@asynccontextmanager
async def running() -> AsyncIterator[Any]:
    """Run the MCP server during the block; yield its ASGI application."""
    server = build_server(lambda request, _now: request.scope[SERVED])
    server.streamable_http_app(
        json_response=True,
        stateless_http=True,
        max_request_body_size=settings.DATA_UPLOAD_MAX_MEMORY_SIZE,
        transport_security=TransportSecuritySettings(enable_dns_rebinding_protection=False),  # check_origin does this
    )
    async with server.session_manager.run():
        yield server.session_manager.handle_request


async def application(scope: Any, receive: Any, send: Any) -> None:
    """Answer a request for one of PATHS, or reject it with a problem document."""
    try:
        caller = await _admit(scope)
        served = scope.get("state", {}).get(SERVED)
        if served is None:
            raise Refused(503, "not_running", "MCP needs an ASGI server with lifespan support: use manage.py serve.")
    except Refused as refused:
        await refuse(refused, send)
    else:
        await served({**scope, SERVED: caller}, receive, uncached(send))


async def _admit(scope: Any) -> Caller:
    """Return the caller of a request. Raises Refused."""
    headers = read_headers(scope)
    check_origin(headers, scope.get("scheme", "http"))
    try:
        text = bearer_token(headers.get("authorization", ""))
    except NotAuthenticated as error:
        raise _unauthenticated(error, headers) from error
    caller = await in_thread(lambda: _authenticate(text, headers))
    _check_request(scope["method"], headers)
    return caller


def read_headers(scope: Any) -> dict[str, str]:
    """Return the headers. Raises Refused if one that matters here is repeated."""
    found: dict[str, str] = {}
    for raw_name, raw_value in scope["headers"]:
        name = raw_name.decode("latin-1").lower()
        if name in found and name in UNIQUE_HEADERS:
            raise Refused(400, "header_repeated", f"Send the header {name} once.")
        found[name] = raw_value.decode("latin-1")
    return found


def check_origin(headers: Mapping[str, str], scheme: str) -> None:
    """Reject web pages of other origins, DNS rebinding included. Raises Refused."""
    domain, port = split_domain_port(headers.get("host", ""))
    if not domain or not validate_host(domain, settings.ALLOWED_HOSTS):
        raise Refused(421, "unknown_host", "Unknown host name: use the one in MEMORYHUB_URL.")
    public = urlsplit(settings.MEMORYHUB_URL)
    own = {f"{public.scheme}://{public.netloc}"} | {f"http://{name}:{port}" for name in LOOPBACK}
    if "origin" in headers and headers["origin"].lower() not in own:
        raise Refused(403, "foreign_origin", "Web pages of other origins may not call the hub.")
    if settings.SECURE_SSL_REDIRECT and "https" not in (scheme, headers.get("x-forwarded-proto")):
        raise Refused(403, "https_needed", "Tokens may only be sent over HTTPS: use the address in MEMORYHUB_URL.")


def _unauthenticated(error: NotAuthenticated, headers: Mapping[str, str], reason: str = "") -> Refused:
    """Return a refusal that tells clients where to sign in (RFC 9728)."""
    base = address_at(headers["host"], settings.MEMORYHUB_URL)
    challenge = f'Bearer realm="MemoryHub"{reason}, resource_metadata="{base}{RESOURCE_METADATA}{MCP_PATH}"'
    return Refused(401, error.code, error.message, **{"www-authenticate": challenge})


def _authenticate(text: str, headers: Mapping[str, str]) -> Caller:
    now = timezone.now()
    try:
        caller = authenticate(text, via="mcp", now=now)
        spend_call(caller, now)
    except NotAuthenticated as error:
        raise _unauthenticated(error, headers, ', error="invalid_token"') from error
    except TooManyCalls as error:
        raise Refused.too_many(error) from error
    return caller


def _check_request(method: str, headers: Mapping[str, str]) -> None:
    if method != "POST":  # GET and DELETE are for sessions and streams, which don't exist here
        raise Refused(405, "method_not_allowed", "Use POST.", allow="POST")
    if headers.get("content-encoding", "identity").lower() != "identity":
        raise Refused(415, "body_compressed", "Send the body uncompressed.")
    length = headers.get("content-length", "0")
    if length.isdigit() and int(length) > settings.DATA_UPLOAD_MAX_MEMORY_SIZE:
        most = settings.DATA_UPLOAD_MAX_MEMORY_SIZE // 2**20
        raise Refused(413, "body_too_large", f"The body is larger than {most} MB.")


def uncached(send: Any) -> Any:
    """Wrap ``send`` so that responses have ``Cache-Control: no-store``."""

    async def senduncached(message: Any) -> None:
        if message["type"] == "http.response.start":
            headers = [pair for pair in message["headers"] if pair[0] != b"cache-control"]
            message = {**message, "headers": [*headers, (b"cache-control", b"no-store")]}
        await send(message)

    return senduncached


async def refuse(refused: Refused, send: Any) -> None:
    """Send a problem document with ``Cache-Control: no-store``."""
    document = problem_document(refused.status, refused.code, refused.detail)
    body = json.dumps(document, ensure_ascii=False).encode()
    headers = {"content-type": MEDIA_TYPE, "cache-control": "no-store"} | refused.headers
    headers["content-length"] = str(len(body))
    pairs = [(name.encode(), value.encode("latin-1")) for name, value in headers.items()]
    await send({"type": "http.response.start", "status": refused.status, "headers": pairs})
    await send({"type": "http.response.body", "body": body})
