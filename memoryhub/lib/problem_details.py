"""Problem documents (RFC 9457), the JSON of every error in REST and MCP."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

MEDIA_TYPE = "application/problem+json"


def problem_document(status: int, code: str, detail: str) -> dict[str, Any]:
    """Return a problem document. ``code`` is an additional member."""
    return {
        "type": "about:blank",
        "title": HTTPStatus(status).phrase,
        "status": status,
        "detail": detail,
        "code": code,
    }
