"""Errors as agents get them: problem documents of one shape (RFC 9457), whatever went wrong and wherever."""

from __future__ import annotations

import json
from collections.abc import Sequence
from http import HTTPStatus
from typing import Any

from django.http import HttpRequest, HttpResponse
from ninja import NinjaAPI
from ninja.errors import HttpError, ValidationError

from memoryhub.lib.errors import MemoryHubError
from memoryhub.lib.problem_details import MEDIA_TYPE, problem_document
from memoryhub.lib.validation import brief


def problem(status: int, code: str, detail: str, **further: Any) -> HttpResponse:
    """Return a problem document: ``type, title, status, detail, code`` and what else the error knows.

    ``errors``, where single fields are at fault: a list of ``{field, message}``.
    """
    body = json.dumps(problem_document(status, code, detail) | further, ensure_ascii=False, default=str)
    response = HttpResponse(body, content_type=MEDIA_TYPE, status=status)
    if status == HTTPStatus.UNAUTHORIZED:
        response["WWW-Authenticate"] = 'Bearer realm="MemoryHub"'
    if "retry_after" in further:
        response["Retry-After"] = str(further["retry_after"])
    return response


def expected(error: MemoryHubError) -> HttpResponse:
    """Return an anticipated error as a problem; a bad entry names its field as ``entries[1].role``."""
    further = dict(error.details)
    if "index" in further:
        place = f"entries[{further['index']}]"
        field = f"{place}.{further['field']}" if further.get("field") else place
        further = {"errors": [{"field": field, "message": error.message}]}
    return problem(error.status, error.code, error.message, **further)


def add_handlers(api: NinjaAPI) -> None:
    """Let every error of an operation become a problem."""

    @api.exception_handler(MemoryHubError)
    def on_expected(_request: HttpRequest, error: MemoryHubError) -> HttpResponse:
        return expected(error)

    @api.exception_handler(ValidationError)
    def on_invalid(_request: HttpRequest, error: ValidationError) -> HttpResponse:
        errors = [{"field": _field(one["loc"]), "message": one["msg"]} for one in error.errors[:50]]
        words = "; ".join(f"{one['field']}: {one['message']}" for one in errors[:3])
        return problem(422, "invalid", brief(f"Not as it should be: {words}"), errors=errors)

    @api.exception_handler(HttpError)
    def on_http_error(_request: HttpRequest, error: HttpError) -> HttpResponse:
        if isinstance(error.__cause__, MemoryHubError):
            return expected(error.__cause__)
        return problem(error.status_code, "refused", error.message)


def _field(place: Sequence[str | int]) -> str:
    """Return where a value stands, as ``entries[1].role``; without the part of the request that holds it."""
    parts = [part for part in place if part not in ("body", "query", "path", "header")]
    named = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in parts[1:])
    return f"{parts[0]}{named}" if parts else "body"
