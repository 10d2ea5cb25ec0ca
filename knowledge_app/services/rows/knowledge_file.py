"""Grip's knowledge.json, changed in place: what the hub doesn't know or didn't change stays as it was.

The file is read without the repairs that storing its values takes, and is written only where Python's own JSON gives
back the very bytes that were read: a file in another style is left alone.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from memoryhub.lib.layouts.grip import content_id
from memoryhub.lib.layouts.records import KnowledgeRecord
from memoryhub.lib.layouts.write_rows import knowledge_json

STYLES: Sequence[dict[str, Any]] = [
    {"indent": indent, "ensure_ascii": ascii_only, "separators": separators}
    for indent, separators in ((2, None), (None, None), (4, None), (None, (",", ":")))
    for ascii_only in (False, True)
]


@dataclass(frozen=True)
class EntryEdit:
    """What becomes of one entry of the file: ``values`` replace its own, or it ``goes``."""

    values: dict[str, Any] = field(default_factory=dict)
    goes: bool = False


@dataclass(frozen=True)
class KnowledgeText:
    """The file's new text, None where nothing changes; or why it is left alone, in words."""

    text: str | None = None
    why_not: str = ""


def edited_knowledge(
    raw: bytes, edit_of: Callable[[str, str], EntryEdit | None], new: Callable[[], Iterable[KnowledgeRecord]]
) -> KnowledgeText:
    """Return knowledge.json with some entries changed, taken out and added at the end.

    ``edit_of`` is asked for each entry by its id and by the id that its category and content make; then ``new`` for
    what is to be added. An entry whose
    category or content changes gets the id that Grip would give it. Further fields and keys, and the order of all,
    stay. Pure.
    """
    try:
        text = raw.decode("utf-8")
        value = json.loads(text)
        dump = _style_of(value, text)
    except (ValueError, RecursionError):
        return KnowledgeText(why_not="isn't JSON that can be read as it stands")
    if dump is None:
        return KnowledgeText(why_not="isn't in a style of JSON that can be written back byte for byte")
    rows = value.get("entries") if isinstance(value, dict) else value
    if not isinstance(rows, list):
        return KnowledgeText(why_not="has no list of entries")
    rows[:] = [edited for row in rows if (edited := _edited(row, edit_of)) is not None]
    rows += json.loads(knowledge_json(new()))["entries"]
    changed = dump(value)
    return KnowledgeText(None if changed == text else changed)


def _style_of(value: Any, text: str) -> Callable[[Any], str] | None:
    end = "\n" if text.endswith("\n") else ""

    def dump(item: Any, style: dict[str, Any]) -> str:
        return json.dumps(item, **style) + end

    found = next((style for style in STYLES if dump(value, style) == text), None)
    return None if found is None else lambda item: dump(item, found)


def _edited(row: Any, edit_of: Callable[[str, str], EntryEdit | None]) -> Any:
    if not isinstance(row, dict) or not isinstance(row.get("content"), str):
        return row
    made = content_id(str(row.get("category")), row["content"])
    edit = edit_of(str(row.get("id") or made), made)
    if edit is None:
        return row
    if edit.goes:
        return None
    values = {name: value for name, value in edit.values.items() if row.get(name) != value}
    if values.keys() & {"category", "content"} and "id" in row:
        both = row | values
        values["id"] = content_id(str(both.get("category")), both["content"])
    return row | values
