"""Read OpenClaw's older session files, ``agents/<id>/sessions/*.jsonl``, and what it keeps of deleted sessions."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from datetime import tzinfo
from typing import Any

from memoryhub.lib.files.safe_folder import MAX_LINES_FILE_BYTES, FileInfo, Folder, Stream, UnreadableFile, join_path
from memoryhub.lib.layouts.documents import empty_file, unread_file, unreadable_file
from memoryhub.lib.layouts.json_file import load_json
from memoryhub.lib.layouts.jsonl import json_lines
from memoryhub.lib.layouts.openclaw.events import Event, read_events
from memoryhub.lib.layouts.openclaw.store import NODE, WINDOW, session_records
from memoryhub.lib.layouts.problem_counts import ProblemCounts
from memoryhub.lib.layouts.records import FileRead, Problem
from memoryhub.lib.layouts.zstd import NoZstd, decompress
from memoryhub.lib.validation import BadJSON, decode_json

INDEX = "sessions.json"
NAME = re.compile(r"(?P<id>[^/]+?)\.jsonl(?:\.(?P<reason>reset|deleted)\.[^/]*?(?P<zstd>\.zst)?)?")
ARCHIVED = {"reset": "Kept by OpenClaw from before a reset.", "deleted": "Deleted in OpenClaw, which still keeps it."}


def session_names(folder: Folder, parent: str) -> list[str]:
    """Return the names of the session files, archived ones first: of a conversation, they are the earlier epochs."""
    names = [name for name in folder.names(parent) if NAME.fullmatch(name)]
    return sorted(names, key=lambda name: (name.endswith(".jsonl"), name))


def read_files(folder: Folder, parent: str, agent: str, stored: Collection[str], zone: tzinfo) -> Iterator[FileRead]:
    """Yield the session files of an agent. ``stored``: ids of sessions that its SQLite store contains, too."""
    keys: dict[str, tuple[str, dict[str, Any]]] | None = None
    for name in session_names(folder, parent):
        path = join_path(parent, name)
        match = NAME.fullmatch(name)
        if match is None:
            continue
        if match["id"] in stored:
            yield unread_file(path, "is also in the agent's SQLite store", "read from there", kind="session")
            continue
        if keys is None:
            keys = _keys(folder, join_path(parent, INDEX))
        key, entry = keys.get(match["id"], (f"agent:{agent}:session:{match['id']}", {}))
        window = dict.fromkeys(WINDOW) | {
            "session_id": match["id"],
            "session_key": key,
            "updated_at": entry.get("updatedAt"),
            "reason": match["reason"],
            **{name: entry[name] for name in ("channel", "model") if isinstance(entry.get(name), str)},
        }
        node = dict.fromkeys(NODE) | {
            "label": entry.get("label"),
            "display_name": entry.get("displayName"),
            "spawned_by": entry.get("spawnedBy"),
        }
        yield _read_file(folder, path, window, node, ARCHIVED.get(match["reason"] or "", ""), zone)


def _keys(folder: Folder, path: str) -> dict[str, tuple[str, dict[str, Any]]]:
    """Return the key and the entry of each session in the index, by its id."""
    value = load_json(folder, path)
    found: dict[str, tuple[str, dict[str, Any]]] = {}
    for key, entry in value.items() if isinstance(value, dict) else ():
        if isinstance(entry, dict) and isinstance(entry.get("sessionId"), str):
            found[entry["sessionId"]] = (key, entry)
    return found


def _read_file(
    folder: Folder, path: str, window: dict[str, Any], node: dict[str, Any], note: str, zone: tzinfo
) -> FileRead:
    counts = ProblemCounts(path)
    problems: list[Problem] = []
    try:
        events, info = _events(folder, path, counts, problems)
    except UnreadableFile as error:
        return unreadable_file(path, "session", error)
    if not events and not problems and not counts.problems():
        return empty_file(path, "session", info)
    transcript = read_events(window["session_id"], events, counts, zone)
    records = session_records(transcript, window, node)
    return FileRead(path, "session", info, [*records], problems + counts.problems(), note=note)


def _events(
    folder: Folder, path: str, counts: ProblemCounts, problems: list[Problem]
) -> tuple[list[Event], FileInfo]:
    def parse(stream: Stream) -> list[Event]:
        problems.clear()
        return list(_numbered(json_lines(stream, path, problems), counts))

    def unpack(stream: Stream) -> list[Event]:
        data = decompress(stream.read())
        problems.clear()
        lines = enumerate(data.split(b"\n"), 1)
        return list(_numbered(_decoded(lines, counts), counts))

    try:
        return folder.read(path, unpack if path.endswith(".zst") else parse, limit=MAX_LINES_FILE_BYTES)
    except NoZstd as error:
        raise UnreadableFile("is compressed; reading it needs Python 3.14 or backports.zstd") from error
    except ValueError as error:
        raise UnreadableFile(f"the compressed file {error}") from error


def _decoded(lines: Iterator[tuple[int, bytes]], counts: ProblemCounts) -> Iterator[tuple[int, Any]]:
    for number, line in lines:
        counts.at = number
        if line.strip():
            try:
                yield number, decode_json(line.decode("utf-8", "backslashreplace")).value
            except BadJSON:
                counts.add("a line is not JSON", "skipped", "rejected", line)


def _numbered(lines: Iterator[tuple[int, Any]], counts: ProblemCounts) -> Iterator[Event]:
    for number, value in lines:
        counts.at = number
        if isinstance(value, dict):
            yield Event(number, value, is_line=True)
        else:
            counts.add("a record is not an object", "skipped", "rejected")
