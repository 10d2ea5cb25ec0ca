"""Read the home of Claude Code (``~/.claude``): transcripts, subagents and memory of its projects."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, tzinfo
from typing import Any

from memoryhub.lib.files.safe_folder import MAX_LINES_FILE_BYTES, Folder, SkippedPath, UnreadableFile, join_path
from memoryhub.lib.layouts.claude_code import forks
from memoryhub.lib.layouts.claude_code.session import read_records
from memoryhub.lib.layouts.documents import empty_file, read_document, unreadable_file
from memoryhub.lib.layouts.file_names import last_part
from memoryhub.lib.layouts.json_file import load_json
from memoryhub.lib.layouts.jsonl import title_of, without_binary
from memoryhub.lib.layouts.message_parts import call_ref, own_id
from memoryhub.lib.layouts.records import DetectedLayout, DocumentLimit, FileRead, Project, SessionRecord
from memoryhub.lib.validation import clean_text

LAYOUT = "claude-code"
SESSION_NAME = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\.jsonl")
AGENT_NAME = re.compile(r"agent-([\w.-]+)\.jsonl")
INDEX_LIMIT = DocumentLimit(byte_count=25_000, lines=200)  # of MEMORY.md in a prompt
MAX_META_BYTES = 2**20


def find(folder: Folder, only: str = "") -> DetectedLayout | None:
    """Detect a home (``projects/<name>/<uuid>.jsonl``), the folder that contains it, or the folder of one project.

    ``only``: a single transcript.
    """
    if only:
        is_transcript = only.endswith(".jsonl") and forks.head(folder, only).is_transcript
        return DetectedLayout(LAYOUT, "", "", "", settings={"single_project": True}) if is_transcript else None
    is_other = any(folder.exists(name) for name in ("sessions", "memory", "workspace"))
    for home in ("",) if is_other else ("", ".claude"):
        if any(_transcripts(folder, parent) for parent in _project_folders(folder, home)):
            return DetectedLayout(LAYOUT, "", home, home)
    names = _transcripts(folder, "")
    if names and forks.head(folder, names[0]).is_transcript:
        return DetectedLayout(LAYOUT, "", "", "", settings={"single_project": True})
    return None


def _project_folders(folder: Folder, home: str) -> list[str]:
    parent = join_path(home, "projects")
    return [path for name in folder.names(parent) if folder.is_folder(path := join_path(parent, name))]


def _transcripts(folder: Folder, parent: str) -> list[str]:
    return [join_path(parent, name) for name in folder.names(parent) if SESSION_NAME.fullmatch(name)]


def projects(folder: Folder) -> list[Project]:
    """Return the projects of a home. The path comes from the newest transcript's first records."""
    detected = find(folder)
    if detected is None:
        return []
    found = [_project(folder, parent) for parent in _folders(folder, detected)]
    return [project for project in found if project.session_count or project.byte_count]


def _project(folder: Folder, parent: str) -> Project:
    sessions = _transcripts(folder, parent)
    files = [file for file in folder.files(parent) if isinstance(file, str)]
    newest = max((file for file in files if file in sessions), key=folder.modified_ns, default="")
    path = forks.head(folder, newest).cwd if newest else ""
    name = parent.rpartition("/")[2] or clean_text(folder.path.name)
    return Project(
        name=name,
        label=last_part(path) or name,
        path=path,
        session_count=len(sessions),
        byte_count=sum(folder.size(file) for file in files),
        last_active=folder.latest_change(files),
    )


def _folders(folder: Folder, detected: DetectedLayout) -> list[str]:
    if detected.settings.get("single_project"):
        return [""]
    found = _project_folders(folder, detected.home)
    return [path for path in found if detected.project in ("", path.rpartition("/")[2])]


def read(folder: Folder, detected: DetectedLayout, zone: tzinfo = UTC) -> Iterator[FileRead]:
    """Yield the transcripts of a project, those that others were forked from first, then its documents."""
    for parent in _folders(folder, detected):
        family = forks.Family(folder, _transcripts(folder, parent))
        for path in family.in_order():
            yield _read_session(folder, path, family, zone)
        for path in _agent_files(folder, parent):
            yield _read_agent(folder, path, zone)
        yield from _memory(folder, join_path(parent, "memory"))
    instructions = join_path(detected.home, "CLAUDE.md")
    if not detected.settings.get("single_project") and folder.exists(instructions):
        yield read_document(folder, instructions, name="CLAUDE.md", is_instructions=True)


def _read_session(folder: Folder, path: str, family: forks.Family, zone: tzinfo) -> FileRead:
    try:
        file, info = folder.read(path, lambda stream: read_records(stream, path, zone), limit=MAX_LINES_FILE_BYTES)
    except UnreadableFile as error:
        return unreadable_file(path, "session", error)
    if not file.count and not file.problems:
        return empty_file(path, "session", info)
    sessions = file.sessions(_key(path), family.titles())
    if not sessions[0].forked_from and (parent := family.parent(path)):
        sessions[0] = replace(sessions[0], forked_from=_key(parent))
    items: list[Any] = [session for session in sessions if session.entries or session.summaries]
    note = "" if items else "The file contains no messages."
    return FileRead(path, "session", info, items, file.problems + file.counts.problems(), note=note)


def read_transcript(folder: Folder, path: str, zone: tzinfo = UTC) -> FileRead:
    """Read one transcript without the others of its project."""
    return _read_session(folder, path, forks.Family(folder, [path]), zone)


def _key(path: str) -> str:
    return f"claude:{path.rpartition('/')[2].removesuffix('.jsonl')}"


def _agent_files(folder: Folder, parent: str) -> list[str]:
    """Return the subagents' transcripts; older versions keep them beside the sessions."""
    found = [join_path(parent, name) for name in folder.names(parent) if AGENT_NAME.fullmatch(name)]
    for name in folder.names(parent):
        inner = join_path(join_path(parent, name), "subagents")
        if SESSION_NAME.fullmatch(f"{name}.jsonl"):
            files = (file for file in folder.files(inner, depth=2) if isinstance(file, str))
            found += [file for file in files if AGENT_NAME.fullmatch(file.rpartition("/")[2])]
    return found


def _read_agent(folder: Folder, path: str, zone: tzinfo) -> FileRead:
    try:
        file, info = folder.read(
            path, lambda stream: read_records(stream, path, zone, is_agent=True), limit=MAX_LINES_FILE_BYTES
        )
    except UnreadableFile as error:
        return unreadable_file(path, "session", error)
    if not file.count and not file.problems:
        return empty_file(path, "session", info)
    parts = path.split("/")
    is_inside = "subagents" in parts
    owner = parts[parts.index("subagents") - 1] if is_inside else file.session_id
    meta = _meta(folder, path.removesuffix(".jsonl") + ".meta.json") if is_inside else {}
    name = parts[-1].removesuffix(".jsonl")
    [session, *_] = file.sessions(f"claude:{owner}/{name}")
    items: list[Any] = [_with_meta(session, f"claude:{owner}", meta)] if session.entries else []
    return FileRead(path, "session", info, items, file.problems + file.counts.problems())


def _meta(folder: Folder, path: str) -> dict[str, Any]:
    value = load_json(folder, path, limit=MAX_META_BYTES)
    return value if isinstance(value, dict) else {}


def _with_meta(session: SessionRecord, parent: str, meta: dict[str, Any]) -> SessionRecord:
    title = own_id(meta.get("description"))
    rest = {name: value for name, value in meta.items() if name not in ("description", "toolUseId")}
    return replace(
        session,
        title=title_of(title) if title else session.title,
        parent_key=parent,
        parent_call_id=call_ref(meta.get("toolUseId")),
        extra=session.extra | without_binary(rest),
    )


def _memory(folder: Folder, parent: str) -> Iterator[FileRead]:
    """Yield the memory that Claude Code writes itself: an index, and a document for each topic."""
    for file in folder.files(parent):
        if isinstance(file, SkippedPath) or not file.endswith(".md"):
            continue
        name = file.removeprefix(f"{parent}/")
        if name == "MEMORY.md":
            yield read_document(folder, file, name=name, limit=INDEX_LIMIT)
        else:
            yield read_document(folder, file, name=f"memory/{name}")
