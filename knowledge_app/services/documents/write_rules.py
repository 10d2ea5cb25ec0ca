"""Which documents the hub may write to agents' files, and which texts."""

from __future__ import annotations

import re

from django.db.models import Q
from django.utils.translation import gettext

from knowledge_app.models import MemoryDocument
from knowledge_app.services.documents import limits
from sessions_app.models import Workspace
from sessions_app.models.workspaces import INSTRUCTED

FILE_PATHS = {  # of the documents that a layout's programs read, relative to their workspace
    "nanobot": {"MEMORY.md": "memory/MEMORY.md", "SOUL.md": "SOUL.md", "USER.md": "USER.md"},
    "grip": {"MEMORY.md": "memory/MEMORY.md"},
}
WRITTEN_PATHS = {  # of the files that the hub may write in folders of other layouts, as regular expressions
    "claude-code": r"(^|/)memory/[^/]+\.md$",
    "openclaw": r"^(.*/)?workspace/[^/]+\.md$|^(.*/)?memory/[^/]+\.md$|^[^/]+\.md$",
    "hermes": r"(^|/)memories/[^/]+\.md$",
    "basic-memory": r"[^/]\.md$",
    "memory-bank": r"[^/]\.md$",
}
INSTRUCTIONS = {"gemini-cli": r"(^|/)(GEMINI|QWEN)\.md$"}  # of which the programs write a part


def writable() -> Q:
    """Return the condition for documents that the hub may write, if writing is on."""
    condition = Q(is_instructions=True)
    for layout, pattern in INSTRUCTIONS.items():
        condition |= Q(workspace__layout=layout, path__regex=pattern)
    condition &= Q(workspace__write_instructions=True, workspace__layout__in=INSTRUCTED)
    for layout, paths in FILE_PATHS.items():
        condition |= Q(workspace__layout=layout, name__in=paths)
    for layout, pattern in WRITTEN_PATHS.items():
        condition |= Q(workspace__layout=layout, is_instructions=False, path__regex=pattern)
    return condition & Q(folder=None) & ~Q(workspace__path="")


def is_writable(document: MemoryDocument, workspace: Workspace) -> bool:
    """Tell whether the hub may write a document, if writing is on. The same condition as ``writable``."""
    layout = workspace.layout
    if not workspace.path or document.folder_id is not None:
        return False
    if are_instructions(document, layout):
        return workspace.write_instructions
    if layout in FILE_PATHS:
        return document.name in FILE_PATHS[layout]
    pattern = WRITTEN_PATHS.get(layout, "")
    return bool(pattern) and not document.is_instructions and re.search(pattern, document.path) is not None


def are_instructions(document: MemoryDocument, layout: str) -> bool:
    """Tell whether people keep a document as instructions for the agent, so that writing it has to be turned on."""
    if layout not in INSTRUCTED:
        return False
    pattern = INSTRUCTIONS.get(layout, "")
    return document.is_instructions or (bool(pattern) and re.search(pattern, document.path) is not None)


def why_not_writable(document: MemoryDocument, workspace: Workspace) -> str:
    """Return the reason why the hub never writes a document; "" if it may."""
    if is_writable(document, workspace):
        return ""
    if document.folder_id is not None:
        return gettext("From an additional folder, which the hub only reads.")
    if are_instructions(document, workspace.layout):
        return gettext("Instructions that people keep, often in Git. Writing them is off.")
    if workspace.layout == Workspace.Layout.CODEX:
        return gettext("Codex generates this file and would overwrite changes.")
    return gettext("The hub doesn't write this file.")


def refusal_of(document: MemoryDocument, text: str) -> str:
    """Return why a text can't be written to a document's file; "" if it can."""
    if limits.is_strict(document) and (over := limits.excesses(document, text)):
        words = gettext("longer than the agent accepts (%(sizes)s)")
        return words % {"sizes": ", ".join(over)}
    if document.separator and _ends_with(document.separator, text):
        synced = document.synced_revision
        if synced is None or not _ends_with(document.separator, synced.content):
            return gettext("ends with a separator line (%(mark)s)") % {"mark": document.separator}
    return ""


def _ends_with(separator: str, text: str) -> bool:
    return text.rstrip().rpartition("\n")[2].strip() == separator
