"""Read the tool calls of stored messages."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from memoryhub.lib.validation import BadJSON, decode_json


def named_calls(tool_calls: Sequence[dict[str, Any]]) -> Iterator[tuple[str, Any]]:
    """Yield the name and the decoded arguments of each tool call of a message."""
    for call in tool_calls:
        function = call.get("function") if isinstance(call, dict) else None
        if not isinstance(function, dict):
            continue
        arguments = function.get("arguments")
        if isinstance(arguments, str):
            try:
                arguments = decode_json(arguments).value
            except BadJSON:
                arguments = {"text": arguments}
        yield str(function.get("name", "")), arguments
