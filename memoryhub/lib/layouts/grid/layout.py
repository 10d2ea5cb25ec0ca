"""Read grid's folders. The hub never writes to them, because grid overwrites kv.json from memory."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from datetime import UTC, tzinfo
from typing import Any

from memoryhub.lib.files.safe_folder import Folder, UnreadableFile, join_path
from memoryhub.lib.json_numbers import SpelledText, dump_json, with_spellings
from memoryhub.lib.layouts.documents import unread_file, unreadable_file
from memoryhub.lib.layouts.grid.sessions import read_sessions
from memoryhub.lib.layouts.json_file import decode_file, open_json
from memoryhub.lib.layouts.records import (
    REPAIRED,
    DetectedLayout,
    FileRead,
    GraphRecord,
    KeyValueRecord,
    ObservationRecord,
    Problem,
    TermRecord,
)
from memoryhub.lib.layouts.times import read_moment
from memoryhub.lib.validation import brief, decode_utf8, json_text

CATEGORIES = ("finding", "insight", "lesson")
OBSERVATION_FIELDS = ("id", "content", "category", "source", "created_at")
META_LENGTHS = {"provider": 100, "model": 200, "base_url": 2000}
BLEVE_NOTE = (
    "is a binary index that only grid can read. To import its observations, put an export as "
    "observations-export.json, or the output of `agentmem list` as a .txt file, into this folder"
)
_LIST_HEAD = re.compile(r"=== (Finding|Insight|Lesson)s \(\d+\) ===")
_LIST_ROW = re.compile(r"\d+\. \[([0-9a-f]{8})\] (.*)")


def read(folder: Folder, detected: DetectedLayout, zone: tzinfo = UTC) -> Iterator[FileRead]:
    """Yield each source file of a grid folder, exports before the less detailed lists."""
    parent = detected.home
    if folder.exists(join_path(parent, "kv.json")):
        yield _read_key_values(folder, join_path(parent, "kv.json"))
    if folder.exists(join_path(parent, "semantic_graph.json")):
        yield _read_graph(folder, join_path(parent, "semantic_graph.json"), zone)
    for path in observation_exports(folder, parent):
        yield _read_export(folder, path, zone)
    for path in observation_lists(folder, parent):
        yield _read_list(folder, path)
    yield from read_sessions(folder, parent)
    bleve = join_path(parent, "observations.bleve")
    if folder.exists(join_path(bleve, "index_meta.json")):
        yield unread_file(bleve, BLEVE_NOTE)


def observation_exports(folder: Folder, parent: str) -> list[str]:
    names = [name for name in folder.names(parent) if re.fullmatch(r"observations.*\.json", name)]
    return [join_path(parent, name) for name in names]


def observation_lists(folder: Folder, parent: str) -> list[str]:
    """Return the text files that look like the output of ``agentmem list``."""
    return [
        join_path(parent, name)
        for name in folder.names(parent)
        if name.endswith(".txt") and _is_list(folder, join_path(parent, name))
    ]


def _is_list(folder: Folder, path: str) -> bool:
    try:
        raw, _ = folder.read_bytes(path)
    except UnreadableFile:
        return folder.is_unchanged(path)
    return bool(_LIST_HEAD.match(decode_utf8(raw[:400])[0].lstrip()))


def _read_key_values(folder: Folder, path: str) -> FileRead:
    try:
        raw, info = folder.read_bytes(path)
    except UnreadableFile as error:
        return unreadable_file(path, "key_values", error)
    file = decode_file(path, "key_values", raw, info)
    if isinstance(file, FileRead):
        return file
    if not isinstance(file.value, dict):
        return file.rejected("is not an object of keys and values")
    return file.read(
        [
            KeyValueRecord(key, value)
            if isinstance(value, str) and not isinstance(value, SpelledText)
            else KeyValueRecord(key, dump_json(value), is_json=True)
            for key, value in file.value.items()
        ]
    )


def _read_graph(folder: Folder, path: str, zone: tzinfo) -> FileRead:
    file = open_json(folder, path, "graph", keep_spelling=False)
    if isinstance(file, FileRead):
        return file
    terms = file.value.get("terms") if isinstance(file.value, dict) else None
    if not isinstance(terms, dict):
        return file.rejected("has no terms")
    raw_meta = file.value.get("meta")
    meta: dict[str, Any] = raw_meta if isinstance(raw_meta, dict) else {}
    if raw_meta is not None and not isinstance(raw_meta, dict):
        file.problems.append(Problem(path, None, "meta is not an object", "skipped", "rejected"))
    size = meta.get("dimensions")
    dimensions = size if type(size) is int and 0 <= size < 2**31 else 0
    odd = _odd_fields(meta)
    for name in odd:
        what = f"{name} is {brief(meta[name])}"
        file.problems.append(Problem(path, None, what, "not used", "repaired"))
    records = [_term(path, text, term, dimensions, file.problems) for text, term in terms.items()]
    built = meta.get("built_at")
    known = ("provider", "model", "base_url", "dimensions", "built_at")
    graph = GraphRecord(
        **{name: "" if name in odd else meta.get(name, "") for name in META_LENGTHS},
        dimensions=dimensions,
        built_at=read_moment(built, zone),
        built_at_text=built if isinstance(built, str) else "",
        terms=[record for record in records if record],
        extra={name: item for name, item in meta.items() if name not in known},
    )
    return file.read([graph])


def _odd_fields(meta: Mapping[str, Any]) -> list[str]:
    """Return the names of the fields of a graph's metadata that have an invalid value."""
    odd = [
        name
        for name, length in META_LENGTHS.items()
        if name in meta and not (isinstance(meta[name], str) and len(meta[name]) <= length)
    ]
    size, built = meta.get("dimensions", 0), meta.get("built_at", "")
    odd += [] if type(size) is int and 0 <= size < 2**31 else ["dimensions"]
    return odd if isinstance(built, str) else [*odd, "built_at"]


def _term(path: str, text: str, term: Any, dimensions: int, problems: list[Problem]) -> TermRecord | None:
    if not isinstance(term, dict):
        problems.append(Problem(path, None, f"the term {brief(text)} is not an object", "skipped", "rejected"))
        return None
    repairs: list[str] = []
    extra = {name: item for name, item in term.items() if name not in ("embedding", "related")}
    embedding = term.get("embedding", [])
    if not isinstance(embedding, list) or not all(map(_is_number, embedding)):
        repairs.append("the embedding is not a list of numbers")
        extra["embedding"], embedding = embedding, []
    elif len(embedding) != dimensions:
        repairs.append(f"the embedding has {len(embedding)} of {dimensions} numbers; it is not compared")
    related = term.get("related", [])
    words = [word for word in related if isinstance(word, str)] if isinstance(related, list) else []
    neighbours = [word for word in dict.fromkeys(words) if word != text]
    if neighbours != (related or []):
        repairs.append("its relations contain itself, duplicates or invalid values; those are dropped")
        extra["related"] = related
    if repairs:
        problems.append(Problem(path, None, f"the term {brief(text)}: {'; '.join(repairs)}", REPAIRED, "repaired"))
    return TermRecord(text, [float(number) for number in embedding], neighbours, extra)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _read_export(folder: Folder, path: str, zone: tzinfo) -> FileRead:
    file = open_json(folder, path, "observations")
    if isinstance(file, FileRead):
        return file
    if not isinstance(file.value, list):
        return file.rejected("is not a list of observations")
    records: dict[str, ObservationRecord] = {}
    for index, row in enumerate(file.value):
        record = _observation(row, zone)
        if isinstance(record, str) or record.uid in records:
            what = record if isinstance(record, str) else f"has the same id as an earlier one: {brief(record.uid)}"
            excerpt = json_text(row).encode()[:2000]
            file.problems.append(Problem(path, None, f"[{index}] {what}", "skipped", "rejected", excerpt))
            continue
        records[record.uid] = record
        if "source" in record.extra:
            what = f"[{index}]: the source is {brief(record.extra['source'])}, not text"
            file.problems.append(Problem(path, None, what, "kept as an extra field", "noted"))
        if record.occurred_at is None and record.occurred_at_text:
            what = f"[{index}]: the time is invalid"
            file.problems.append(Problem(path, None, what, "imported; its text is kept", "noted"))
    return file.read(list(records.values()))


def _observation(row: Any, zone: tzinfo) -> ObservationRecord | str:
    """Return an observation, or the reason why it is invalid."""
    if not isinstance(row, dict) or not isinstance(row.get("content"), str):
        return "has no content"
    if not isinstance(row.get("id"), str) or not row["id"]:
        return "has no id"
    if row.get("category") not in CATEGORIES:
        return f"has the category {brief(row.get('category'))}, which is not one of {', '.join(CATEGORIES)}"
    source, time = row.get("source", ""), row.get("created_at", "")
    extra = {name: item for name, item in row.items() if name not in OBSERVATION_FIELDS}
    if not isinstance(source, str):
        extra["source"], source = source, ""
    if not isinstance(time, str):
        extra["created_at"] = time
    return ObservationRecord(
        uid=row["id"],
        category=row["category"],
        content=row["content"],
        source=source,
        occurred_at=read_moment(time, zone),
        occurred_at_text=time if isinstance(time, str) else json_text(time),
        extra=with_spellings(extra, row),
    )


def _read_list(folder: Folder, path: str) -> FileRead:
    """Read the output of ``agentmem list``, which has eight characters of each id, no source and no time."""
    try:
        raw, info = folder.read_bytes(path)
    except UnreadableFile as error:
        return unreadable_file(path, "observations", error)
    text, repair = decode_utf8(raw)
    problems = [Problem(path, None, repair, "imported", "repaired")] if repair else []
    records: list[ObservationRecord] = []
    category = ""
    for number, line in enumerate(text.split("\n"), 1):
        if head := _LIST_HEAD.match(line):
            category = head.group(1).lower()
        elif (row := _LIST_ROW.match(line)) and any(record.uid == row.group(1) for record in records):
            what = f"has the same id as an earlier one: {row.group(1)}"
            problems.append(Problem(path, number, what, "skipped", "rejected", line.encode()[:2000]))
        elif row:
            records.append(ObservationRecord(row.group(1), category, row.group(2), is_partial=True))
        elif line.strip() and not _append_line(records, line):
            problems.append(
                Problem(path, number, "is not an observation", "skipped", "rejected", line.encode()[:2000])
            )
    return FileRead(path, "observations", info, list(records), problems)


def _append_line(records: list[ObservationRecord], line: str) -> bool:
    """Add a line to the previous observation, whose content may have several; return False if there is none."""
    if not records:
        return False
    last = records.pop()
    content = f"{last.content}\n{line}"
    records.append(ObservationRecord(last.uid, last.category, content, is_partial=True))
    return True
