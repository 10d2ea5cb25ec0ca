"""Read the file of ``@modelcontextprotocol/server-memory``: a knowledge graph as JSON lines.

The server rewrites the whole file at each call, without a lock and without a final newline, so that the hub never
writes to it. An observation of an entity, and a relation, each become a knowledge entry.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, tzinfo
from typing import Any

from memoryhub.lib.files.safe_folder import MAX_LINES_FILE_BYTES, Folder, Stream, UnreadableFile, display_path
from memoryhub.lib.layouts.documents import empty_file, unreadable_file
from memoryhub.lib.layouts.jsonl import json_lines
from memoryhub.lib.layouts.message_parts import hash_of
from memoryhub.lib.layouts.problem_counts import ProblemCounts
from memoryhub.lib.layouts.records import DetectedLayout, FileRead, KnowledgeRecord, Problem
from memoryhub.lib.validation import BadJSON, brief, decode_json, json_text

LAYOUT = "server-memory"
USUAL_NAME = "memory.jsonl"
CATEGORY = "learned_fact"
MAX_PROBED = 20  # files, and lines of a file
MAX_HEAD_BYTES = 2**20
ENTITY_FIELDS = ("type", "name", "entityType", "observations")
RELATION_FIELDS = ("type", "from", "to", "relationType")


def find(folder: Folder, only: str = "", *, is_certain: bool = False) -> DetectedLayout | None:
    """Return the layout if one of the first lines of a file (of ``only``, if given) is an entity or a relation."""
    if memory_files(folder, only):
        return DetectedLayout(LAYOUT, "", "", "")
    return DetectedLayout(LAYOUT, "", "", "") if is_certain else None


def memory_files(folder: Folder, only: str = "") -> list[str]:
    """Return the files of the server in a folder, by their first lines."""
    names = [only] if only else [name for name in folder.names() if name.endswith((".jsonl", ".json"))]
    names.sort(key=lambda name: name != USUAL_NAME)
    return [name for name in names[:MAX_PROBED] if _is_memory(folder, name)]


def read(folder: Folder, detected: DetectedLayout, zone: tzinfo = UTC) -> Iterator[FileRead]:
    """Yield the memory files of a folder; that with the usual name also if it is empty or damaged."""
    usual = [USUAL_NAME] if folder.exists(USUAL_NAME) else []
    for name in dict.fromkeys([*usual, *memory_files(folder)]):
        if detected.project in ("", display_path(name)):
            yield read_memory(folder, name, zone)


def _is_memory(folder: Folder, path: str) -> bool:
    try:
        head, _ = folder.read(path, lambda stream: stream.head(), limit=MAX_LINES_FILE_BYTES, even_if_unchanged=True)
    except UnreadableFile:
        return False
    return any(map(_is_record, head[:MAX_HEAD_BYTES].split(b"\n", MAX_PROBED)[:MAX_PROBED]))


def _is_record(line: bytes) -> bool:
    try:
        value = decode_json(line.decode("utf-8", "replace")).value
    except BadJSON:
        return False
    return isinstance(value, dict) and (
        (value.get("type") == "entity" and "name" in value and "observations" in value)
        or (value.get("type") == "relation" and "from" in value and "relationType" in value)
    )


def read_memory(folder: Folder, path: str, _zone: tzinfo = UTC) -> FileRead:
    """Read a memory file; its records have no times."""
    problems: list[Problem] = []

    def parse(stream: Stream) -> list[tuple[int, Any]]:
        problems.clear()
        return list(json_lines(stream, path, problems))

    try:
        lines, info = folder.read(path, parse, limit=MAX_LINES_FILE_BYTES)
    except UnreadableFile as error:
        return unreadable_file(path, "knowledge", error)
    if not info.size:
        return empty_file(path, "knowledge", info)
    records: dict[str, KnowledgeRecord] = {}
    notes = ProblemCounts(path)
    for notes.at, value in lines:
        found = list(_records(value, notes))
        for record in found:
            if record.content_id in records:
                notes.add("an observation or relation appears twice", "imported once", "noted")
            records.setdefault(record.content_id, record)
    return FileRead(path, "knowledge", info, list(records.values()), problems + notes.problems())


def _records(value: Any, notes: ProblemCounts) -> Iterator[KnowledgeRecord]:
    kind = value.get("type") if isinstance(value, dict) else None
    if kind == "entity" and isinstance(value.get("name"), str) and isinstance(value.get("observations"), list):
        yield from _observations(value, notes)
    elif kind == "relation" and all(isinstance(value.get(name), str) for name in RELATION_FIELDS):
        yield _relation(value)
    elif isinstance(kind, str) and kind not in ("entity", "relation"):
        notes.add(f"a record of the unknown type {brief(kind)}", "skipped", "rejected")
    else:
        what = "is neither an entity with observations nor a relation"
        notes.add(what, "skipped", "rejected", json_text(value).encode())


def _observations(entity: dict[str, Any], notes: ProblemCounts) -> Iterator[KnowledgeRecord]:
    name, kind = entity["name"], entity.get("entityType")
    extra = {field: value for field, value in entity.items() if field not in ENTITY_FIELDS}
    extra["entity"] = name
    if not isinstance(kind, str) and kind is not None:
        extra["entityType"] = kind
    if not entity["observations"]:
        notes.add("an entity has no observations", "nothing to import", "noted")
    for text in entity["observations"]:
        if not isinstance(text, str) or not text.strip():
            notes.add("an observation is not text", "skipped", "rejected")
            continue
        yield KnowledgeRecord(
            content_id=hash_of([name, text])[:32],
            category=CATEGORY,
            content=text,
            source=name,
            tags=[kind] if isinstance(kind, str) and kind else [],
            is_by_id=True,
            extra=extra,
        )


def _relation(relation: dict[str, Any]) -> KnowledgeRecord:
    start, end, kind = relation["from"], relation["to"], relation["relationType"]
    text = f"{start} {kind} {end}"
    extra = {field: value for field, value in relation.items() if field != "type"}
    return KnowledgeRecord(
        content_id=hash_of([start, text])[:32],
        category=CATEGORY,
        content=text,
        source=start,
        tags=["relation"],
        is_by_id=True,
        extra=extra,
    )
