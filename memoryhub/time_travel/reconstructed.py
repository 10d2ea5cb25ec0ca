"""Documents before the hub knew them, rebuilt from the agent's own calls that wrote the files.

A text is known from a call that wrote the whole file on. Each later edit must fit it; after one that doesn't, or a
call of an unknown kind, the text is unknown until the next whole file.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import Min

from knowledge_app.models import MemoryDocument
from memoryhub.lib.tool_calls import named_calls
from sessions_app.models import Entry, Workspace

MAX_CALLS = 5_000  # read, the latest first
_WHOLE = re.compile(r"^(write|create|save)", re.IGNORECASE)
_READS = re.compile(r"read|view|list|search|find|grep|open|delete", re.IGNORECASE)
_PATHS = ("path", "file_path", "filepath", "filename", "file", "target_file")
_CONTENTS = ("content", "contents", "file_text", "text")
_OLD = ("old_string", "old_text", "old_str", "oldText")
_NEW = ("new_string", "new_text", "new_str", "newText")


@dataclass(frozen=True)
class Reconstructed:
    """A document as ``calls`` tool calls left it; ``entry``: the message with the last of them."""

    document: MemoryDocument
    text: str
    entry: Entry
    calls: int

    @property
    def written_at(self) -> datetime | None:
        return self.entry.occurred_at


def reconstructed_documents(workspace: Workspace, at: datetime) -> list[Reconstructed]:
    """Return the documents of a moment before their first revision, by name. Two queries."""
    documents = MemoryDocument.objects.filter(workspace=workspace).annotate(known=Min("revisions__created_at"))
    unknown = {document.name: document for document in documents.filter(known__gt=at).order_by("name")}
    if not unknown:
        return []
    calls = Entry.objects.in_conversation().filter(
        workspace=workspace, kind=Entry.Kind.TOOL_CALL, occurred_at__lte=at
    )
    newest = calls.defer("content").select_related("session").order_by("-occurred_at", "-id")[:MAX_CALLS]
    entries = list(newest)[::-1]
    found = (replay(document, entries) for document in unknown.values())
    return [one for one in found if one is not None]


def replay(document: MemoryDocument, entries: Sequence[Entry]) -> Reconstructed | None:
    """Return a document after the calls of messages, oldest first; None if its text isn't known."""
    text, last, count = None, None, 0
    for entry in entries:
        for name, arguments in named_calls(entry.tool_calls):
            if not _is_write(name, arguments, document.name):
                continue
            text = text_after(text, name, arguments)
            last, count = entry, count + 1 if text is not None else 0
    return Reconstructed(document, text, last, count) if text is not None and last is not None else None


def text_after(text: str | None, name: str, arguments: Mapping[str, Any]) -> str | None:
    """Return a file's text after a call, given the text before it; None if unknown."""
    old, new = _first(arguments, _OLD), _first(arguments, _NEW)
    content = _first(arguments, _CONTENTS)
    if old:
        if text is None or new is None or old not in text:
            return None
        return text.replace(old, new) if arguments.get("replace_all") else text.replace(old, new, 1)
    return content if _WHOLE.match(name) and not arguments.get("append") else None


def _is_write(name: str, arguments: Any, document: str) -> bool:
    if not isinstance(arguments, dict) or _READS.search(name):
        return False
    path = _first(arguments, _PATHS) or ""
    return path.replace("\\", "/").rpartition("/")[2] == document


def _first(arguments: Mapping[str, Any], names: Sequence[str]) -> str | None:
    return next((value for name in names if isinstance(value := arguments.get(name), str)), None)
