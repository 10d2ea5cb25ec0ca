"""The one shape of every error that agents get, whichever door they came by: problem documents (RFC 9457)."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

MEDIA_TYPE = "application/problem+json"


def problem_document(status: int, code: str, detail: str) -> dict[str, Any]:
    """Return a problem as JSON: ``code`` is for programs, ``detail`` for people, ``title`` the status in words."""
    return {
        "type": "about:blank",
        "title": HTTPStatus(status).phrase,
        "status": status,
        "detail": detail,
        "code": code,
    }
