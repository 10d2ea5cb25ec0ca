"""Edit Grip's knowledge.json in place, keeping everything that the hub doesn't know or didn't change.

A file is changed only if Python's JSON reproduces its exact bytes; files in another style are left alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from memoryhub.lib.json_numbers import dump_json, load_json
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
    """A change to an entry of the file: new ``values``, or removal if ``goes``."""

    values: dict[str, Any] = field(default_factory=dict)
    goes: bool = False


@dataclass(frozen=True)
class KnowledgeText:
    """The file's new text, None if nothing changes; or the reason why it is left alone."""

    text: str | None = None
    why_not: str = ""


def edited_knowledge(
    raw: bytes, edit_of: Callable[[str, str], EntryEdit | None], new: Callable[[], Iterable[KnowledgeRecord]]
) -> KnowledgeText:
    """Return knowledge.json with entries changed, removed, and appended. Pure.

    ``edit_of`` is called for each entry with its id and the id derived from its category and content, then ``new``
    for the entries to append. An entry whose category or content changes gets the id that Grip would give it. Other
    fields and keys, and the order, are kept.
    """
    try:
        text = raw.decode("utf-8")
        value = load_json(text)
        dump = _style_of(value, text)
    except (ValueError, RecursionError):
        return KnowledgeText(why_not="isn't JSON that can be read as it stands")
    if dump is None:
        return KnowledgeText(why_not="isn't in a style of JSON that can be written back byte for byte")
    rows = value.get("entries") if isinstance(value, dict) else value
    if not isinstance(rows, list):
        return KnowledgeText(why_not="has no list of entries")
    rows[:] = [edited for row in rows if (edited := _edited(row, edit_of)) is not None]
    rows += load_json(knowledge_json(new()))["entries"]
    changed = dump(value)
    return KnowledgeText(None if changed == text else changed)


def _style_of(value: Any, text: str) -> Callable[[Any], str] | None:
    end = "\n" if text.endswith("\n") else ""

    def dump(item: Any, style: dict[str, Any]) -> str:
        return dump_json(item, **style) + end

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
