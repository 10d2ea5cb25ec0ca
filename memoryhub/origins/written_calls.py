"""Find facts in the arguments of tool calls that write memory. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from memoryhub.lib.text.facts import fact_lines
from memoryhub.lib.tool_calls import named_calls

_WRITES = re.compile(
    r"write|edit|save|append|create|update|replace|patch|insert|remember|memor|note|fact", re.IGNORECASE
)
_READS = re.compile(r"read|list|search|find|recall|delete|remove|forget", re.IGNORECASE)
_EARLIER = re.compile(r"^(old|search|find|before)", re.IGNORECASE)  # arguments with the text to be replaced
_PATHS = ("path", "file_path", "filepath", "filename", "file", "target_file")
_ADDED = re.compile(r"^\+(?!\+\+)", re.MULTILINE)  # lines that a patch adds


def facts_written(tool_calls: Sequence[dict[str, Any]], document: str) -> set[str]:
    """Return the texts that the tool calls of a message write to a document: its bullets, and whole arguments.

    A call that names another file doesn't count, nor do arguments with the text to be replaced.
    """
    texts: set[str] = set()
    for name, arguments in named_calls(tool_calls):
        if not _WRITES.search(name) or _READS.search(name) or not _is_of(arguments, document):
            continue
        for value in _values(arguments):
            texts |= {line.text for line in fact_lines(value)} | {value.strip()}
            if _ADDED.search(value):
                added = "\n".join(line[1:] for line in value.split("\n") if _ADDED.match(line))
                texts |= {line.text for line in fact_lines(added)}
    return texts - {""}


def texts_written(tool_calls: Sequence[dict[str, Any]]) -> set[str]:
    """Return all text arguments of the tool calls of a message."""
    return {value.strip() for _, arguments in named_calls(tool_calls) for value in _values(arguments)} - {""}


def _is_of(arguments: Any, document: str) -> bool:
    paths = [arguments[name] for name in _PATHS if name in arguments] if isinstance(arguments, dict) else []
    return not paths or any(str(path).replace("\\", "/").rpartition("/")[2] == document for path in paths)


def _values(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for item in value:
            yield from _values(item)
    elif isinstance(value, dict):
        for name, item in value.items():
            if not _EARLIER.match(str(name)):
                yield from _values(item)
