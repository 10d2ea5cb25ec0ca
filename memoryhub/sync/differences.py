"""What would be written to an agent's files, as diffs with secrets masked. Reads only."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from knowledge_app.models import KnowledgeEntry, MemoryDocument
from knowledge_app.services.rows.knowledge_json import unwritten_entries
from memoryhub.forgetting.agent_files import BAR, text_of_file
from memoryhub.lib.masked_text import masked
from memoryhub.lib.text.diff import DiffLine, diff_lines
from memoryhub.sync.status import FileStatus
from sessions_app.models import Workspace


@dataclass(frozen=True)
class Difference:
    """A file that has older text than the hub, and the lines that would change; of knowledge, a line is an entry."""

    file: FileStatus
    lines: list[DiffLine]

    @property
    def has_forgotten(self) -> bool:
        return any(BAR in line.text for line in self.lines)


def differences(workspace: Workspace, files: Sequence[FileStatus]) -> list[Difference]:
    """Return the changes of each file that would be written."""
    waiting = [file for file in files if file.standing == "ahead"]
    return [
        Difference(file, _of_document(file.document) if file.document else _of_knowledge(workspace))
        for file in waiting
    ]


def _of_document(document: MemoryDocument) -> list[DiffLine]:
    before, after = masked(text_of_file(document)), masked(document.head.content if document.head else "")
    lines = diff_lines(before, after)
    return lines if before else [line for line in lines if line.mark == "ins"]


def _of_knowledge(workspace: Workspace) -> list[DiffLine]:
    kept, withdrawn = unwritten_entries(workspace)
    pairs = [(_entry(row, row.corrected) if row.corrected else "", _entry(row, {})) for row in kept]
    pairs += [(_entry(row, {}), "") for row in withdrawn]
    changed = [pair for pair in pairs if pair[0] != pair[1]]
    return [line for number, pair in enumerate(changed, 1) for line in _of_entry(*pair, number)]


def _of_entry(before: str, after: str, number: int) -> list[DiffLine]:
    lines = diff_lines(before, after) if before and after else [DiffLine("del" if before else "ins", before or after)]
    return [replace(line, old_number=number, new_number=number) for line in lines]


def _entry(row: KnowledgeEntry, earlier: dict[str, Any]) -> str:
    """Return an entry on one line. ``earlier``: values that its file has instead."""
    category = str(earlier.get("category", row.category))
    label = dict(KnowledgeEntry.Category.choices).get(category, category)
    return f"{label}: {masked(' '.join(str(earlier.get('content', row.content)).split()))}"
