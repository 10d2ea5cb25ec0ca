"""Read the sessions and the memory of Gemini CLI.

A home (``~/.gemini``) has a folder ``tmp/<project>/chats`` for each project. A session is a log of JSON lines, or one
JSON object in older versions; ``gemini_log`` replays it. Versions of Qwen Code with the same files are read too.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, tzinfo

from memoryhub.lib.files.safe_folder import MAX_LINES_FILE_BYTES, Folder, Stream, UnreadableFile, join_path
from memoryhub.lib.layouts.documents import empty_file, read_document, unread_file, unreadable_file
from memoryhub.lib.layouts.gemini_cli.entries import session_record
from memoryhub.lib.layouts.gemini_cli.log import ChatLog
from memoryhub.lib.layouts.json_file import load_json, open_json
from memoryhub.lib.layouts.jsonl import json_lines
from memoryhub.lib.layouts.problem_counts import ProblemCounts
from memoryhub.lib.layouts.records import DetectedLayout, FileRead, Problem, Project
from memoryhub.lib.validation import clean_text, visible_line

LAYOUT = "gemini-cli"
HOMES = {"": "gemini", ".gemini": "gemini", ".qwen": "qwen"}  # places in a folder, and the prefix of session keys
MEMORY_FILES = {"gemini": "GEMINI.md", "qwen": "QWEN.md"}
MAX_NAMES_BYTES = 2**20  # of projects.json
SESSION_FILE = re.compile(r"session-.*\.jsonl?")
PROMPTS = "logs.json"  # the prompts of all sessions, a second time


@dataclass(frozen=True)
class _Chat:
    """A session file. ``parent``: the id of the session that started this one as a subagent."""

    path: str
    parent: str = ""
    has_successor: bool = False


def find(folder: Folder, *, is_certain: bool = False) -> DetectedLayout | None:
    """Return the layout of a home, of a folder that contains one, or of one project's folder."""
    for home in HOMES:
        if any(_chats(folder, parent) for parent in _project_folders(folder, home).values()):
            return DetectedLayout(LAYOUT, "", home, home)
    return DetectedLayout(LAYOUT, "", "", "") if is_certain else None


def projects(folder: Folder) -> list[Project]:
    """Return the projects of a home that have sessions."""
    detected = find(folder)
    if detected is None:
        return []
    names = _paths_of_projects(folder, detected.home)
    found = []
    for name, parent in _project_folders(folder, detected.home).items():
        if chats := _chats(folder, parent):
            path = _root(folder, parent) or names.get(name, "")
            found.append(
                Project(
                    name=visible_line(clean_text(name)),
                    label=path.rstrip("/").rpartition("/")[2] or visible_line(clean_text(name)),
                    path=path,
                    session_count=sum(not chat.has_successor for chat in chats),
                    byte_count=sum(folder.size(chat.path) for chat in chats),
                    last_active=folder.latest_change(chat.path for chat in chats),
                )
            )
    return found


def read(folder: Folder, detected: DetectedLayout, zone: tzinfo = UTC) -> Iterator[FileRead]:
    """Yield each session file of the detected project, or of all, and the home's memory document."""
    for name, parent in _project_folders(folder, detected.home).items():
        if detected.project in ("", visible_line(clean_text(name))):
            for chat in _chats(folder, parent):
                yield _read_chat(folder, chat, HOMES.get(detected.home, "gemini"), zone)
            if folder.exists(path := join_path(parent, PROMPTS)):
                yield unread_file(path, "repeats the prompts of the sessions")
    for file in MEMORY_FILES.values():
        if folder.exists(path := join_path(detected.home, file)):
            yield read_document(folder, path)


def _project_folders(folder: Folder, home: str) -> dict[str, str]:
    """Return the folders of projects by name: those in ``tmp``, or the folder itself."""
    tmp = join_path(home, "tmp")
    found = {name: join_path(tmp, name) for name in folder.names(tmp) if folder.is_folder(join_path(tmp, name))}
    if not found and not home and folder.is_folder("chats"):
        return {folder.path.name: ""}
    return found


def _chats(folder: Folder, project: str) -> list[_Chat]:
    """Return the session files of a project, those of subagents last."""
    parent = join_path(project, "chats")
    names = folder.names(parent)
    own = [
        _Chat(join_path(parent, name), has_successor=name.endswith(".json") and f"{name}l" in names)
        for name in names
        if SESSION_FILE.fullmatch(name)
    ]
    subagents = [
        _Chat(join_path(join_path(parent, name), file), parent=name)
        for name in names
        if folder.is_folder(join_path(parent, name))
        for file in folder.names(join_path(parent, name))
        if file.endswith((".jsonl", ".json"))
    ]
    return own + subagents


def _root(folder: Folder, project: str) -> str:
    """Return the path of a project's own folder, which Gemini CLI keeps beside the sessions."""
    try:
        raw, _ = folder.read_bytes(join_path(project, ".project_root"), limit=2**16, even_if_unchanged=True)
    except UnreadableFile:
        return ""
    return visible_line(clean_text(raw.decode("utf-8", "replace").strip()))


def _paths_of_projects(folder: Folder, home: str) -> dict[str, str]:
    """Return the paths of projects by the names of their folders: short names, or hashes of the path."""
    value = load_json(folder, join_path(home, "projects.json"), limit=MAX_NAMES_BYTES, no_wait=True)
    paths = value.get("projects") if isinstance(value, dict) else None
    if not isinstance(paths, dict):
        return {}
    hashed = {hashlib.sha256(path.encode()).hexdigest(): visible_line(path) for path in paths}
    return hashed | {name: visible_line(path) for path, name in paths.items() if isinstance(name, str)}


def _read_chat(folder: Folder, chat: _Chat, program: str, zone: tzinfo) -> FileRead:
    if chat.has_successor:
        return unread_file(chat.path, "was continued by the program as the .jsonl file of the same name")
    if chat.path.endswith(".json"):
        return _read_object(folder, chat, program, zone)
    problems: list[Problem] = []

    def parse(stream: Stream) -> ChatLog:
        problems.clear()
        log = ChatLog(notes=ProblemCounts(chat.path))
        for number, value in json_lines(stream, chat.path, problems):
            log.notes.at = number
            log.apply(value)
        log.notes.at = ""
        return log

    try:
        log, info = folder.read(chat.path, parse, limit=MAX_LINES_FILE_BYTES)
    except UnreadableFile as error:
        return unreadable_file(chat.path, "session", error)
    if not info.size:
        return empty_file(chat.path, "session", info)
    record = session_record(log, chat.path, program, problems, parent=chat.parent, zone=zone)
    return FileRead(chat.path, "session", info, [record] if record else [], problems)


def _read_object(folder: Folder, chat: _Chat, program: str, zone: tzinfo) -> FileRead:
    """Read a session of an older version, which is one object with all messages."""
    file = open_json(folder, chat.path, "session", keep_spelling=False)
    if isinstance(file, FileRead):
        return file
    if not isinstance(file.value, dict) or not isinstance(file.value.get("messages"), list):
        return file.rejected("is not a session: it has no list of messages")
    log = ChatLog(notes=ProblemCounts(chat.path))
    log.apply({name: value for name, value in file.value.items() if name != "messages"})
    log.replace_messages(file.value["messages"])
    record = session_record(log, chat.path, program, file.problems, parent=chat.parent, zone=zone)
    return replace(file.read([record] if record else []), kind="session")
