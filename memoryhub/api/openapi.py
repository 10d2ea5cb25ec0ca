"""The API's description, completed by what every operation has in common: scopes, problems, idempotency keys."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from memoryhub.lib.problem_details import MEDIA_TYPE

ALWAYS = {
    "400": "Something in the address, a header or the body can't be read",
    "401": "No token, or one that isn't good any more",
    "403": "The token lacks the scope",
    "422": "Understood, and not to be done; errors names the fields",
    "429": "More calls in a minute than the token is good for; Retry-After says how long to wait",
    "503": "Another writer keeps the database; Retry-After says how long to wait",
}
WITH_BODY = {
    "409": "It collides with what is there, or the idempotency key was used for another call",
    "413": "The body is too large",
    "415": "The body is not plain JSON",
}
NOT_FOUND = {"404": "There is none in this token's workspace, or the cursor is none of this list's"}
OF_WRITING_DOCUMENTS = {
    "412": "The document has moved on since that revision",
    "428": "If-Match is missing",
}
IDEMPOTENCY_KEY = {
    "name": "Idempotency-Key",
    "in": "header",
    "required": False,
    "schema": {"type": "string", "maxLength": 200},
    "description": "Sent again within a day, the same call has the same answer and changes nothing.",
}
PROBLEM = {"$ref": "#/components/schemas/Problem"}
PROBLEM_SCHEMA = {
    "type": "object",
    "description": "Every error (RFC 9457): code is for programs, detail for people.",
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


def described(schema: dict[str, Any], scopes: Mapping[str, str]) -> dict[str, Any]:
    """Return ninja's OpenAPI document with the scopes, problems, keys and files that it doesn't know of.

    ``scopes``: by operation id, "" for any.
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
        for status, words in _problems(address, method, operation).items():
            responses[status] = {"description": words, "content": {MEDIA_TYPE: {"schema": PROBLEM}}}
        operation["responses"] = dict(sorted(responses.items()))
        for one in operation.get("parameters", []):
            if one["name"] == "If-Match":
                one |= {"required": True, "schema": {"type": "string", "pattern": '^"[0-9]{1,9}"$'}}
        if method != "get":
            operation.setdefault("parameters", []).append(IDEMPOTENCY_KEY)
    return schema


def operations(schema: dict[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Yield address, method and operation, in the order of the document."""
    for address, methods in schema["paths"].items():
        for method, operation in methods.items():
            yield address, method, operation


def _has_cursor(operation: dict[str, Any]) -> bool:
    return any(one["name"] == "cursor" for one in operation.get("parameters", []))


def _problems(address: str, method: str, operation: dict[str, Any]) -> dict[str, str]:
    wanted = dict(ALWAYS)
    if "{" in address or address.endswith(("/context", "/value")) or _has_cursor(operation):
        wanted |= NOT_FOUND
    if method != "get":
        wanted |= WITH_BODY
    if method == "put" and "documents" in address:
        wanted |= OF_WRITING_DOCUMENTS
    return wanted
