"""The contents of the API's documentation page: operations with their fields, grouped by tag."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from memoryhub.api.openapi import ERRORS, operations

EXAMPLES = {  # values for the example commands
    "key": "cli:main",
    "session": "cli:main",
    "entries": [{"role": "user", "content": "The pool is closed on Mondays."}],
    "content": "The pool is closed on Mondays.",
    "text": "Moved the pool's hours to the calendar.",
    "query": "when is the pool closed",
    "observations": [{"category": "finding", "content": "The pool is closed on Mondays."}],
}


@dataclass(frozen=True)
class FieldPart:
    """A parameter or a field of the body. ``place``: query, path, header or body."""

    name: str
    place: str
    type: str
    is_required: bool
    description: str


@dataclass(frozen=True)
class OperationPart:
    """An operation as the page shows it. ``errors`` are statuses, ``example`` is a shell command."""

    anchor: str
    method: str
    address: str
    title: str
    description: str
    scope: str
    fields: list[FieldPart]
    answers: list[tuple[str, str, str]]
    errors: list[str]
    example: str


def grouped_operations(schema: dict[str, Any]) -> list[tuple[str, list[OperationPart]]]:
    """Return the operations of an OpenAPI document grouped by tag, in the document's order."""
    groups: dict[str, list[OperationPart]] = {}
    for address, method, operation in operations(schema):
        tag = operation.get("tags", ["Others"])[0]
        groups.setdefault(tag, []).append(_operation(schema, address, method, operation))
    return list(groups.items())


def _operation(schema: dict[str, Any], address: str, method: str, operation: dict[str, Any]) -> OperationPart:
    body = operation.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema", {})
    fields = [_parameter(schema, one) for one in operation.get("parameters", [])]
    fields += _body_fields(schema, body)
    answers = [
        (status, one.get("description", ""), _answer_type(schema, one))
        for status, one in operation["responses"].items()
        if status not in ERRORS
    ]
    return OperationPart(
        anchor=operation["operationId"].replace("_", "-"),
        method=method.upper(),
        address=address,
        title=operation["summary"],
        description=operation.get("description", ""),
        scope=operation.get("x-scope", ""),
        fields=fields,
        answers=answers,
        errors=[status for status in operation["responses"] if status in ERRORS],
        example=_example(address, method, operation, _resolved(schema, body)),
    )


def _parameter(schema: dict[str, Any], one: dict[str, Any]) -> FieldPart:
    inner = one["schema"]
    description = one.get("description") or inner.get("description", "")
    return FieldPart(one["name"], one["in"], _type(schema, inner), bool(one.get("required")), description)


def _body_fields(schema: dict[str, Any], body: dict[str, Any]) -> list[FieldPart]:
    resolved = _resolved(schema, body)
    required = resolved.get("required", [])
    return [
        FieldPart(name, "body", _type(schema, inner), name in required, inner.get("description", ""))
        for name, inner in resolved.get("properties", {}).items()
    ]


def _resolved(schema: dict[str, Any], part: dict[str, Any]) -> dict[str, Any]:
    name = part.get("$ref", "").rpartition("/")[2]
    found: dict[str, Any] = schema["components"]["schemas"][name] if name else part
    return found


def _type(schema: dict[str, Any], part: dict[str, Any]) -> str:
    """Describe a schema: ``string``, ``list of NewObservation``, ``integer or null``."""
    if "$ref" in part:
        inner = _resolved(schema, part)
        return " | ".join(map(str, inner["enum"])) if "enum" in inner else str(part["$ref"].rpartition("/")[2])
    if "anyOf" in part:
        return " or ".join(_type(schema, one) for one in part["anyOf"])
    if "enum" in part:
        return " | ".join(str(value) or '""' for value in part["enum"])
    if part.get("type") == "array":
        return f"list of {_type(schema, part.get('items', {}))}"
    return str(part.get("format") or part.get("type", "any"))


def _answer_type(schema: dict[str, Any], answer: dict[str, Any]) -> str:
    for media in answer.get("content", {}).values():
        return _type(schema, media.get("schema", {}))
    return ""


def _example(address: str, method: str, operation: dict[str, Any], body: dict[str, Any]) -> str:
    required = [one for one in operation.get("parameters", []) if one["in"] == "query" and one.get("required")]
    query = "&".join(f"{one['name']}={str(EXAMPLES.get(one['name'], '…')).replace(' ', '+')}" for one in required)
    place = address.replace("{pk}", "1").replace("{name}", "MEMORY.md") + (f"?{query}" if query else "")
    flags = "" if method == "get" else f" -X {method.upper()}"
    if "If-Match" in [one["name"] for one in operation.get("parameters", [])]:
        flags += " -H 'If-Match: \"1\"'"
    if body.get("properties"):
        values = {name: EXAMPLES.get(name, "…") for name in body.get("required", list(body["properties"])[:1])}
        flags += f" -H 'Content-Type: application/json' -d '{json.dumps(values, ensure_ascii=False)}'"
    return f'curl{flags} -H "Authorization: Bearer $TOKEN" "$HUB{place}"'
