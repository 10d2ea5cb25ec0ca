"""Read the JSON files in which OpenCode kept its sessions before version 1.2: ``storage/{session,message,part}/``."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from datetime import tzinfo
from typing import Any

from memoryhub.lib.files.safe_folder import FileInfo, Folder, UnreadableFile, join_path
from memoryhub.lib.layouts.documents import unreadable_file
from memoryhub.lib.layouts.opencode.messages import Message, Part, call_ids
from memoryhub.lib.layouts.opencode.sessions import project_path, session_record
from memoryhub.lib.layouts.problem_counts import ProblemCounts
from memoryhub.lib.layouts.records import FileRead
from memoryhub.lib.validation import BadJSON, decode_json

FOLDER = "storage"


def session_files(folder: Folder, home: str) -> list[str]:
    """Return the paths of the sessions' own files, oldest first."""
    parent = join_path(home, f"{FOLDER}/session")
    places = [f"{parent}/{name}" for name in folder.names(parent) if folder.is_folder(f"{parent}/{name}")]
    files = [f"{place}/{name}" for place in places for name in folder.names(place) if name.endswith(".json")]
    return sorted(files, key=lambda path: path.rpartition("/")[2])


def worktrees_of_files(folder: Folder, home: str) -> dict[str, str]:
    """Return the folders of the projects, by their ids."""
    parent = join_path(home, f"{FOLDER}/project")
    found = {}
    for name in folder.names(parent):
        value = _load(folder, f"{parent}/{name}")
        if isinstance(value.get("id"), str) and isinstance(value.get("worktree"), str):
            found[value["id"]] = value["worktree"]
    return found


def rows_of_files(folder: Folder, home: str) -> list[dict[str, Any]]:
    """Return the readable sessions, with the names of the database's columns."""
    return [_row(value) for path in session_files(folder, home) if (value := _load(folder, path)).get("id")]


def read_files(folder: Folder, home: str, project: str, zone: tzinfo) -> Iterator[FileRead]:
    """Yield each session with its messages; ``project``: only those of this folder, if not empty."""
    worktrees = worktrees_of_files(folder, home)
    for path in session_files(folder, home):
        try:
            value = _object(folder, path)
        except UnreadableFile as error:
            yield unreadable_file(path, "session", error)
            continue
        row = _row(value) | {"id": path.rpartition("/")[2].removesuffix(".json")}
        if not project or project_path(row, worktrees) == project:
            yield _read_session(folder, home, path, row, zone)


def _read_session(folder: Folder, home: str, path: str, row: dict[str, Any], zone: tzinfo) -> FileRead:
    files = _message_files(folder, home, str(row["id"]))
    places = [path, *(place for message, parts in files for place in (message, *parts))]
    stamps = "/".join(folder.stamp(place) for place in places)
    stamp = hashlib.sha256(stamps.encode()).hexdigest()
    if folder.is_unchanged(path, stamp):
        return FileRead(path, "session", None, is_skipped=True)
    counts = ProblemCounts(path)
    messages = [
        Message(_id(message), value, [part for place in parts if (part := _part(folder, place, counts))])
        for message, parts in files
        if (value := _counted(folder, message, counts)) is not None
    ]
    parent = row.get("parent_id")
    call = _parent_call(folder, home, parent, str(row["id"])) if isinstance(parent, str) else ""
    record = session_record(row, messages, call, counts, zone)
    newest = max(folder.modified_ns(place) for place in places)
    size = sum(int(one.split("-")[1]) for place in places if (one := folder.stamp(place)))
    info = FileInfo(size, newest, stamp, stamp)
    return FileRead(path, "session", info, [record] if record else [], counts.problems())


def _message_files(folder: Folder, home: str, session: str) -> list[tuple[str, list[str]]]:
    """Return the path of each message of a session and those of its parts, in their order."""
    parent = join_path(home, f"{FOLDER}/message/{session}")
    found = []
    for name in folder.names(parent):
        parts = join_path(home, f"{FOLDER}/part/{name.removesuffix('.json')}")
        found.append((f"{parent}/{name}", [f"{parts}/{part}" for part in folder.names(parts)]))
    return found


def _parent_call(folder: Folder, home: str, parent: str, child: str) -> str:
    counts = ProblemCounts("")
    for _message, paths in _message_files(folder, home, parent):
        parts = [part for path in paths if (part := _part(folder, path, counts))]
        if call := call_ids(parts).get(child):
            return call
    return ""


def _row(value: dict[str, Any]) -> dict[str, Any]:
    time = value.get("time")
    times = time if isinstance(time, dict) else {}
    share = value.get("share")
    return {
        "id": value.get("id"),
        "project_id": value.get("projectID"),
        "parent_id": value.get("parentID"),
        "directory": value.get("directory"),
        "title": value.get("title"),
        "version": value.get("version"),
        "share_url": share.get("url") if isinstance(share, dict) else None,
        "revert": value.get("revert"),
        "time_created": times.get("created"),
        "time_updated": times.get("updated"),
    }


def _part(folder: Folder, path: str, counts: ProblemCounts) -> Part | None:
    value = _counted(folder, path, counts)
    return None if value is None else Part(_id(path), value)


def _id(path: str) -> str:
    return path.rpartition("/")[2].removesuffix(".json")


def _counted(folder: Folder, path: str, counts: ProblemCounts) -> dict[str, Any] | None:
    try:
        return _object(folder, path)
    except UnreadableFile as error:
        counts.add(f"the file {path} {error.message}", "skipped", "rejected")
        return None


def _load(folder: Folder, path: str) -> dict[str, Any]:
    try:
        return _object(folder, path)
    except UnreadableFile:
        return {}


def _object(folder: Folder, path: str) -> dict[str, Any]:
    """Return the object in a JSON file. Raises UnreadableFile."""
    raw, _ = folder.read_bytes(path, even_if_unchanged=True)
    try:
        value = decode_json(raw.decode("utf-8", "backslashreplace")).value
    except BadJSON as error:
        raise UnreadableFile("is not JSON, or half written") from error
    if not isinstance(value, dict):
        raise UnreadableFile("is not a JSON object")
    return value
