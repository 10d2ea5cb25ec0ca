"""Read the home of Codex (``~/.codex``): rollouts, instructions and generated memory."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, tzinfo
from typing import Any

from memoryhub.lib.files.safe_folder import MAX_LINES_FILE_BYTES, Folder, Stream, UnreadableFile, join_path
from memoryhub.lib.layouts.codex.session import Rollout, read_rollout
from memoryhub.lib.layouts.documents import empty_file, read_document, unreadable_file
from memoryhub.lib.layouts.file_names import last_part
from memoryhub.lib.layouts.jsonl import json_lines
from memoryhub.lib.layouts.message_parts import own_id
from memoryhub.lib.layouts.records import DetectedLayout, FileRead, Problem, Project
from memoryhub.lib.text_caches import keeps_texts
from memoryhub.lib.validation import BadJSON, clean_text, decode_json, visible_line

LAYOUT = "codex"
ROLLOUT = re.compile(
    r"rollout-.*?([0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})\.jsonl", re.IGNORECASE
)
MAX_ANCESTORS = 20
NO_FOLDER = "(no folder)"  # the project of sessions that don't say where they worked
MAX_KNOWN_HEADS = 20_000
MAX_CWD = 1000  # characters; PostgreSQL can't index much longer names of projects
_YEAR, _TWO = re.compile(r"\d{4}"), re.compile(r"\d\d")
_CWD = re.compile(r"<cwd>([^<]+)</cwd>|Current working directory: ([^\\\n]+)")


@dataclass(frozen=True)
class Head:
    """What the beginning of a rollout says. ``is_rollout``: whether the first line describes a session of Codex."""

    session_id: str = ""
    cwd: str = ""
    forked_from: str = ""
    forked_at: int | None = None  # the ordinal of the first line that the fork doesn't have; None: it repeats them
    is_rollout: bool = False


def find(folder: Folder, only: str = "") -> DetectedLayout | None:
    """Detect a home with rollouts, or the folder that contains it as ``.codex``. ``only``: a single rollout."""
    if only:
        is_rollout = only.endswith(".jsonl") and head(folder, only).is_rollout
        return DetectedLayout(LAYOUT, "", "", "") if is_rollout else None
    for home in ("", ".codex"):
        if next(_rollouts(folder, home), None):
            return DetectedLayout(LAYOUT, "", home, home)
    return None


def _rollouts(folder: Folder, home: str) -> Iterator[str]:
    sessions = join_path(home, "sessions")
    parents = [sessions, join_path(home, "archived_sessions")]
    for year in filter(_YEAR.fullmatch, folder.names(sessions)):
        for month in filter(_TWO.fullmatch, folder.names(f"{sessions}/{year}")):
            days = filter(_TWO.fullmatch, folder.names(f"{sessions}/{year}/{month}"))
            parents += [f"{sessions}/{year}/{month}/{day}" for day in days]
    for parent in parents:
        yield from (f"{parent}/{name}" for name in folder.names(parent) if ROLLOUT.fullmatch(name))


# By folder, path and inode: each project asks for all of them. Without a working folder, by the stamp: the first line
# may be half written.
_known_heads: dict[tuple[str, str, str], Head] = {}
keeps_texts(_known_heads.clear)


def head(folder: Folder, path: str) -> Head:
    """Return what the beginning of a rollout says; an empty Head if it can't be read."""
    stamp = folder.stamp(path)
    keys = [(str(folder.path), path, version) for version in (stamp.partition("-")[0], stamp)]
    if (known := _known_heads.get(keys[0]) or _known_heads.get(keys[1])) is not None:
        return known
    try:
        found, _ = folder.read(path, _read_head, limit=MAX_LINES_FILE_BYTES, even_if_unchanged=True, no_wait=True)
    except UnreadableFile:
        return Head()
    if len(_known_heads) >= MAX_KNOWN_HEADS:
        _known_heads.clear()
    _known_heads[keys[0] if found.cwd else keys[1]] = found
    return found


def _read_head(stream: Stream) -> Head:
    data = stream.head()
    try:
        record = decode_json(data.partition(b"\n")[0].decode("utf-8", "replace")).value
    except BadJSON:
        record = None
    payload = record.get("payload", record) if isinstance(record, dict) else None
    meta: dict[str, Any] = payload if isinstance(payload, dict) else {}
    cwd, place = meta.get("cwd"), meta.get("forked_from_ordinal_exclusive")
    if not isinstance(cwd, str):
        match = _CWD.search(data[:200_000].decode("utf-8", "replace"))
        cwd = (match.group(1) or match.group(2)) if match else ""
    cwd = visible_line(clean_text(cwd)) if len(cwd) <= MAX_CWD else ""
    forked_at = place if type(place) is int else None
    is_rollout = isinstance(record, dict) and (record.get("type") == "session_meta" or "instructions" in record)
    return Head(own_id(meta.get("id")), cwd, own_id(meta.get("forked_from_id")), forked_at, is_rollout)


def projects(folder: Folder) -> list[Project]:
    """Return the folders in which the sessions of a home worked."""
    detected = find(folder)
    found: dict[str, list[str]] = {}
    for path in _rollouts(folder, detected.home) if detected else ():
        found.setdefault(head(folder, path).cwd or NO_FOLDER, []).append(path)
    return [_project(folder, name, paths) for name, paths in sorted(found.items())]


def _project(folder: Folder, name: str, paths: list[str]) -> Project:
    return Project(
        name=name,
        label=last_part(name) or name,
        path="" if name == NO_FOLDER else name,
        session_count=len(paths),
        byte_count=sum(folder.size(path) for path in paths),
        last_active=folder.latest_change(paths),
    )


def project_of_file(folder: Folder, path: str) -> str | None:
    """Return the project of a rollout; None for a file that may concern any of them."""
    is_rollout = ROLLOUT.fullmatch(path.rpartition("/")[2]) is not None
    return (head(folder, path).cwd or None) if is_rollout else None


def read(folder: Folder, detected: DetectedLayout, zone: tzinfo = UTC) -> Iterator[FileRead]:
    """Yield the sessions of a project by the time when they began, then the home's documents."""
    paths = sorted(_rollouts(folder, detected.home), key=lambda path: path.rpartition("/")[2])
    by_id = {match.group(1).lower(): path for path in paths if (match := ROLLOUT.search(path))}
    titles = _titles(folder, join_path(detected.home, "session_index.jsonl"))
    for path in paths:
        if folder.is_unchanged(path):
            yield FileRead(path, "session", None, is_skipped=True)
        elif detected.project in ("", head(folder, path).cwd or NO_FOLDER):
            yield _read_session(folder, path, by_id, titles, zone)
    yield from _documents(folder, detected.home)


def read_transcript(folder: Folder, path: str, zone: tzinfo = UTC) -> FileRead:
    """Read one rollout without the others of its home."""
    return _read_session(folder, path, {}, {}, zone)


def _read_session(folder: Folder, path: str, by_id: dict[str, str], titles: dict[str, str], zone: tzinfo) -> FileRead:
    start = head(folder, path)
    try:
        rollout, info = folder.read(
            path,
            lambda stream: read_rollout(stream, path, zone, base=_base(folder, start, by_id, zone)),
            limit=MAX_LINES_FILE_BYTES,
        )
    except UnreadableFile as error:
        return unreadable_file(path, "session", error)
    if not rollout.count and not rollout.problems:
        return empty_file(path, "session", info)
    name = own_id(rollout.meta.get("id")) or _file_id(path)
    session = rollout.session(f"codex:{name}", titles.get(name, ""))
    if start.forked_at is not None and start.forked_from.lower() not in by_id:
        what = "the session that it was forked from is not in the folder"
        rollout.problems.append(Problem(path, None, what, "imported without its beginning", "noted"))
    items: list[Any] = [session] if session.entries or session.summaries else []
    note = "" if items else "The file contains no messages."
    return FileRead(path, "session", info, items, rollout.problems + rollout.counts.problems(), note=note)


def _file_id(path: str) -> str:
    match = ROLLOUT.search(path)
    return match.group(1).lower() if match else path.rpartition("/")[2].removesuffix(".jsonl")


def _base(folder: Folder, start: Head, by_id: dict[str, str], zone: tzinfo, depth: int = 0) -> Rollout | None:
    """Return the beginning of a fork's conversation that the fork refers to instead of repeating it."""
    path = by_id.get(start.forked_from.lower())
    if path is None or start.forked_at is None or depth >= MAX_ANCESTORS:
        return None
    base = _base(folder, head(folder, path), by_id, zone, depth + 1)
    try:
        return folder.read(
            path,
            lambda stream: read_rollout(stream, path, zone, base=base, before=start.forked_at),
            limit=MAX_LINES_FILE_BYTES,
            even_if_unchanged=True,
            no_wait=True,
        )[0]
    except UnreadableFile:
        return None


def _titles(folder: Folder, path: str) -> dict[str, str]:
    """Return the names that people gave to sessions."""
    try:
        lines, _ = folder.read(
            path,
            lambda stream: [value for _, value in json_lines(stream, path, [])],
            even_if_unchanged=True,
            no_wait=True,
        )
    except UnreadableFile:
        return {}
    records = [line for line in lines if isinstance(line, dict)]
    return {own_id(line.get("id")): own_id(line.get("thread_name")) for line in records}


def _documents(folder: Folder, home: str) -> Iterator[FileRead]:
    for name in ("AGENTS.md", "AGENTS.override.md"):
        if folder.exists(path := join_path(home, name)):
            yield read_document(folder, path, name=name, is_instructions=True)
    for name, label in (("MEMORY.md", "MEMORY.md"), ("memory_summary.md", "memories/memory_summary.md")):
        if folder.exists(path := join_path(home, f"memories/{name}")):
            yield read_document(folder, path, name=label)
