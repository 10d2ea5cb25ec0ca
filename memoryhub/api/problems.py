"""Errors of the REST API as problem documents (RFC 9457)."""

from __future__ import annotations

import json
from collections.abc import Sequence
from http import HTTPStatus
from typing import Any

from django.http import HttpRequest, HttpResponse
from ninja import NinjaAPI
from ninja.errors import HttpError, ValidationError

from memoryhub.lib.database.faults import DatabaseFault
from memoryhub.lib.errors import MemoryHubError
from memoryhub.lib.http.problem_details import MEDIA_TYPE, problem_document
from memoryhub.lib.validation import brief


def problem(status: int, code: str, detail: str, **members: Any) -> HttpResponse:
    """Return a problem document: ``type``, ``title``, ``status``, ``detail``, ``code`` and the error's own members.

    ``errors`` lists invalid fields as ``{field, message}``.
    """
    body = json.dumps(problem_document(status, code, detail) | members, ensure_ascii=False, default=str)
    response = HttpResponse(body, content_type=MEDIA_TYPE, status=status)
    if status == HTTPStatus.UNAUTHORIZED:
        response["WWW-Authenticate"] = 'Bearer realm="MemoryHub"'
    if "retry_after" in members:
        response["Retry-After"] = str(members["retry_after"])
    return response


def error_problem(error: MemoryHubError) -> HttpResponse:
    """Return an expected error as a problem. The field of a bad entry is named as in ``entries[1].role``."""
    members = dict(error.details)
    if "index" in members:
        place = f"entries[{members['index']}]"
        field = f"{place}.{members['field']}" if members.get("field") else place
        members = {"errors": [{"field": field, "message": error.message}]}
    return problem(error.status, error.code, error.message, **members)


def fault_problem(fault: DatabaseFault) -> HttpResponse:
    """Return a fault of the database as a problem, with Retry-After."""
    return problem(fault.status, fault.code, fault.message, retry_after=fault.retry_after)


def add_handlers(api: NinjaAPI) -> None:
    """Turn every error of an operation into a problem document."""

    @api.exception_handler(MemoryHubError)
    def on_error(_request: HttpRequest, error: MemoryHubError) -> HttpResponse:
        return error_problem(error)

    @api.exception_handler(ValidationError)
    def on_invalid(_request: HttpRequest, error: ValidationError) -> HttpResponse:
        errors = [{"field": _field(one["loc"]), "message": one["msg"]} for one in error.errors[:50]]
        listed = "; ".join(f"{one['field']}: {one['message']}" for one in errors[:3])
        return problem(422, "invalid", brief(f"Invalid: {listed}"), errors=errors)

    @api.exception_handler(HttpError)
    def on_http_error(_request: HttpRequest, error: HttpError) -> HttpResponse:
        if isinstance(error.__cause__, MemoryHubError):
            return error_problem(error.__cause__)
        return problem(error.status_code, "refused", error.message)


def _field(place: Sequence[str | int]) -> str:
    """Return the path of a field, such as ``entries[1].role``, without the part of the request that contains it."""
    source, *parts = place
    if source == "body" and parts[:1] == ["body"]:  # the views' name for it
        del parts[0]
    named = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in parts[1:])
    return f"{parts[0]}{named}" if parts else "body"
