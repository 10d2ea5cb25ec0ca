"""MCP resources: memory documents and session contexts."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import datetime
from typing import Any
from urllib.parse import quote

from mcp.server.context import CallNext, HandlerResult
from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ResourceError, ResourceNotFoundError
from mcp.shared.exceptions import MCPError
from mcp_types import INTERNAL_ERROR, Resource

from memoryhub.agents.api_tokens import Caller
from memoryhub.agents.operations import conversations, memory
from memoryhub.lib.errors import MemoryHubError
from memoryhub.lib.validation import clean_text
from memoryhub.mcp.calls import HubContext, RequestContext, call

DOCUMENTS = "memoryhub://documents/"
MARKDOWN = "text/markdown"


async def document(context: HubContext, name: str) -> str:
    """The current text of a memory document, in Markdown."""

    def read(caller: Caller, now: datetime) -> str:
        return str(memory.read_document(caller, clean_text(name), now=now)["content"])

    return await _read(context, read)


async def session_context(context: HubContext, key: str) -> str:
    """The context of a session by key: messages, token count, and the entries that were left out."""

    def read(caller: Caller, now: datetime) -> str:
        found = conversations.context_of_key(caller, clean_text(key), now=now)
        return json.dumps(found, ensure_ascii=False, default=str)

    return await _read(context, read)


def add_resources(server: MCPServer[Any]) -> None:
    server.resource(f"{DOCUMENTS}{{name}}", name="document", title="Memory document", mime_type=MARKDOWN)(document)
    server.resource(
        "memoryhub://context/{key}", name="context", title="Context of a session", mime_type="application/json"
    )(session_context)


async def with_documents(ctx: RequestContext, call_next: CallNext) -> HandlerResult:
    """Middleware that adds the workspace's documents to ``resources/list``."""
    result = await call_next(ctx)
    if ctx.method != "resources/list" or not isinstance(result, dict):
        return result
    try:
        documents = await call(ctx, lambda caller, _now: memory.list_documents(caller))
    except MemoryHubError as error:
        raise MCPError(code=INTERNAL_ERROR, message=f"{error.code}: {error.message}") from error
    listed = [
        Resource(
            uri=DOCUMENTS + quote(one["name"], safe=""),
            name=one["name"],
            description=f"Revision {one['revision']}, by {one['author']['name']}",
            mime_type=MARKDOWN,
        ).model_dump(mode="json", by_alias=True, exclude_none=True)
        for one in documents
    ]
    return result | {"resources": listed}


async def _read(context: HubContext, read: Callable[[Caller, datetime], str]) -> str:
    try:
        return await call(context.request_context, read)
    except MemoryHubError as error:
        kind = ResourceNotFoundError if error.code == "not_found" else ResourceError
        raise kind(f"{error.code}: {error.message}") from error
