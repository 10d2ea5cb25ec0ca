"""Complete ninja's OpenAPI document with scopes, problem documents and idempotency keys."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from memoryhub.lib.http.problem_details import MEDIA_TYPE

ALWAYS = {
    "400": "The address, a header or the body can't be parsed",
    "401": "The token is missing or not valid",
    "403": "The token lacks the scope",
    "422": "The request is well-formed but invalid; errors lists the fields",
    "429": "The token's rate limit is exceeded; Retry-After says how long to wait",
    "503": "The database is busy or can't be reached; Retry-After says how long to wait",
    "507": "The hub's disk is full; nothing was saved",
}
WITH_BODY = {
    "409": "It conflicts with existing data, or the idempotency key was used for a different request",
    "413": "The body is too large",
    "415": "The body is not uncompressed JSON",
}
NOT_FOUND = {"404": "Not found in this token's workspace, or the cursor belongs to another list"}
OF_WRITING_DOCUMENTS = {
    "412": "The document has changed since that revision",
    "428": "If-Match is missing",
}
ERRORS = dict(sorted((ALWAYS | WITH_BODY | NOT_FOUND | OF_WRITING_DOCUMENTS).items()))
IDEMPOTENCY_KEY = {
    "name": "Idempotency-Key",
    "in": "header",
    "required": False,
    "schema": {"type": "string", "maxLength": 200},
    "description": "A repeated request with the same key within a day gets the first response and changes nothing.",
}
PROBLEM = {"$ref": "#/components/schemas/Problem"}
PROBLEM_SCHEMA = {
    "type": "object",
    "description": "An error (RFC 9457). code is for programs, detail for people.",
    "required": ["type", "title", "status", "detail", "code"],
    "properties": {
        "type": {"type": "string"},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "detail": {"type": "string"},
        "code": {"type": "string"},
        "errors": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["field", "message"],
                "properties": {"field": {"type": "string"}, "message": {"type": "string"}},
            },
        },
    },
}


def complete_description(schema: dict[str, Any], scopes: Mapping[str, str]) -> dict[str, Any]:
    """Add scopes, problems, idempotency keys and file responses to ninja's OpenAPI document.

    ``scopes``: the scope of each operation id, "" for any token.
    """
    components = schema.setdefault("components", {})
    components.setdefault("schemas", {})["Problem"] = PROBLEM_SCHEMA
    components["securitySchemes"] = {"Token": {"type": "http", "scheme": "bearer"}}
    for address, method, operation in operations(schema):
        operation["x-scope"] = scopes[operation["operationId"]]
        operation["security"] = [{"Token": []}]
        operation["operationId"] = operation["operationId"].rpartition(".")[2]
        operation["summary"] = operation["summary"].capitalize()
        responses = {str(status): answer for status, answer in operation["responses"].items()}
        if operation.pop("x-answer", "") == "file":
            text = {"schema": {"type": "string"}}
            responses["200"] = {"description": "The file", "content": {"application/octet-stream": text}}
        for status, description in _problems(address, method, operation).items():
            responses[status] = {"description": description, "content": {MEDIA_TYPE: {"schema": PROBLEM}}}
        operation["responses"] = dict(sorted(responses.items()))
        for one in operation.get("parameters", []):
            if one["name"] == "If-Match":
                one |= {"required": True, "schema": {"type": "string", "pattern": '^"[0-9]{1,9}"$'}}
        if method != "get":
            operation.setdefault("parameters", []).append(IDEMPOTENCY_KEY)
    return schema


def operations(schema: dict[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Yield the address, method and description of each operation."""
    for address, methods in schema["paths"].items():
        for method, operation in methods.items():
            yield address, method, operation


def _names_rows(operation: dict[str, Any]) -> bool:
    return any(one["name"] in ("cursor", "workspace") for one in operation.get("parameters", []))


def _problems(address: str, method: str, operation: dict[str, Any]) -> dict[str, str]:
    statuses = dict(ALWAYS)
    if "{" in address or address.endswith(("/context", "/value")) or _names_rows(operation):
        statuses |= NOT_FOUND
    if method != "get":
        statuses |= WITH_BODY
    if method == "put" and "documents" in address:
        statuses |= OF_WRITING_DOCUMENTS
    return statuses
