"""Problem documents (RFC 9457), the JSON of every error in REST and MCP."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

from memoryhub.lib.http.request_ids import current_request_id

MEDIA_TYPE = "application/problem+json"


def problem_document(status: int, code: str, detail: str) -> dict[str, Any]:
    """Return a problem document. ``code`` and ``request_id`` are additional members."""
    document = {
        "type": "about:blank",
        "title": HTTPStatus(status).phrase,
        "status": status,
        "detail": detail,
        "code": code,
    }
    request_id = current_request_id()
    return document | {"request_id": request_id} if request_id else document
