"""Read OpenCode's sessions: its database, or the JSON files of versions before 1.2."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, tzinfo
from functools import partial
from typing import Any

from memoryhub.lib.files.safe_folder import Folder, UnreadableFile, join_path
from memoryhub.lib.files.sqlite_source import LOG, Row, Store, is_store
from memoryhub.lib.layouts.agent_entries import decoded
from memoryhub.lib.layouts.documents import read_document, unread_file
from memoryhub.lib.layouts.message_parts import MAX_OWN_ID
from memoryhub.lib.layouts.opencode.files import FOLDER, read_files, rows_of_files, session_files, worktrees_of_files
from memoryhub.lib.layouts.opencode.forks import Copies, find_copies, with_original_ids
from memoryhub.lib.layouts.opencode.messages import TASK, Message, Part, call_ids
from memoryhub.lib.layouts.opencode.sessions import SESSION, grouped, project_path, session_record
from memoryhub.lib.layouts.problem_counts import ProblemCounts
from memoryhub.lib.layouts.records import DetectedLayout, FileRead, Problem, Project, SessionRecord
from memoryhub.lib.layouts.store_files import StoredSession, from_store, has_usable_id, read_store, unread_sessions
from memoryhub.lib.layouts.times import read_epoch

STORE = "opencode.db"
HOMES = ("", ".local/share/opencode")  # of a user's home folder
INSTRUCTIONS = ".config/opencode/AGENTS.md"
TABLES = ("session", "message", "part")


def find(folder: Folder, *, is_certain: bool = False) -> DetectedLayout | None:
    """Return the layout of OpenCode's data folder, or of a user's home that contains it.

    ``is_certain``: the folder is OpenCode's, so that its database may be damaged.
    """
    for home in HOMES:
        store = join_path(home, STORE)
        if is_store(folder, store) or session_files(folder, home) or (is_certain and folder.exists(store)):
            return DetectedLayout("opencode", "", home=home)
    return None


def projects(folder: Folder) -> list[Project]:
    """Return the folders in which sessions were started."""
    detected = find(folder, is_certain=True)
    home = detected.home if detected else ""
    path = join_path(home, STORE)
    if not folder.is_file(path):
        rows, size = rows_of_files(folder, home), 0
        return grouped(rows, worktrees_of_files(folder, home), size)
    size = sum(folder.size(path + part) for part in ("", LOG))
    none: list[Project] = []
    return from_store(
        folder, path, lambda store: grouped(store.rows("session", SESSION), _worktrees(store), size), none
    )


def read(folder: Folder, detected: DetectedLayout, zone: tzinfo = UTC) -> Iterator[FileRead]:
    """Yield the sessions of one project, or of all if none is named."""
    path = join_path(detected.home, STORE)
    if folder.exists(path):
        yield from read_store(
            folder, path, lambda store, problems: _sessions(store, path, problems, detected.project, zone)
        )
        if session_files(folder, detected.home):
            place = join_path(detected.home, FOLDER)
            yield unread_file(place, "contains sessions from before the database, to which OpenCode moved them")
    else:
        yield from read_files(folder, detected.home, detected.project, zone)
    if detected.home and folder.exists(INSTRUCTIONS):
        yield read_document(folder, INSTRUCTIONS, is_instructions=True)


def _worktrees(store: Store) -> dict[str, str]:
    rows = store.rows("project", ("id", "worktree"))
    return {str(row["id"]): row["worktree"] for row in rows if isinstance(row["worktree"], str)}


def _sessions(
    store: Store, path: str, problems: list[Problem], project: str, zone: tzinfo
) -> Iterator[StoredSession]:
    missing = [name for name in TABLES if name not in store.tables]
    if missing:
        raise UnreadableFile(f"has no table {missing[0]}, so it isn't OpenCode's database, or a newer one")
    worktrees = _worktrees(store)
    messages = store.state("message", "session_id", ("time_created", "time_updated"), texts=("data",))
    parts = store.state("part", "session_id", ("time_created", "time_updated"), texts=("data",))
    rows = store.rows("session", SESSION, order="time_created, id")
    problems += unread_sessions(path, {row["id"] for row in rows}, messages)
    copies = find_copies(store, {row["id"]: row["time_created"] for row in rows})
    for row in rows:
        name = row["id"]
        is_wanted = not project or project_path(row, worktrees) == project
        if is_wanted and has_usable_id(name) and name in messages:
            state = f"{row}/{messages[name]}/{parts.get(name)}"
            changed_at = read_epoch(row["time_updated"])[0]
            yield StoredSession(name, state, partial(_records, store, row, copies, zone), changed_at)


def _records(store: Store, row: Row, copies: Copies, zone: tzinfo, counts: ProblemCounts) -> list[SessionRecord]:
    name = row["id"]
    parts: defaultdict[Any, list[Part]] = defaultdict(list)
    for part in store.rows("part", ("id", "message_id", "data"), where={"session_id": name}, order="id"):
        if (value := _object(part, "a part", counts)) is not None:
            parts[part["message_id"]].append(Part(str(part["id"])[:MAX_OWN_ID], value))
    ids: dict[str, str] = {}
    messages = []
    for one in store.rows("message", ("id", "data"), where={"session_id": name}, order="id"):
        if (value := _object(one, "a message", counts)) is not None:
            message = Message(str(one["id"])[:MAX_OWN_ID], value, parts.pop(one["id"], []))
            messages.append(with_original_ids(store, copies, message, ids))
    for orphan in (one for group in parts.values() for one in group):
        counts.at = orphan.id
        counts.add("a part of a message that isn't there", "skipped", "rejected")
    given = dict(row) | {key: _value(row[key]) for key in ("revert", "metadata", "model") if row[key] is not None}
    if isinstance(revert := given.get("revert"), dict):
        given["revert"] = revert | {
            key: ids.get(value, value) for key, value in revert.items() if isinstance(value, str)
        }
    record = session_record(given, messages, _parent_call(store, row), counts, zone)
    origin = copies.forked_from.get(name)
    return [replace(record, forked_from=f"opencode:{origin}" if origin else "")] if record else []


def _object(row: Row, what: str, counts: ProblemCounts) -> dict[str, Any] | None:
    counts.at = str(row["id"])
    value = decoded(row["data"], what, counts)
    if value is not None and not isinstance(value, dict):
        counts.add(f"{what} is not an object", "skipped", "rejected")
    return value if isinstance(value, dict) else None


def _value(text: Any) -> Any:
    """Return the value of a column that contains JSON, or its text if it doesn't."""
    value = decoded(text, "a column", ProblemCounts(""))
    return text if value is None else value


def _parent_call(store: Store, row: Row) -> str:
    """Return the id of the call by which another session started this one as a subagent."""
    if not isinstance(row["parent_id"], str):
        return ""
    found = store.rows("part", ("id", "data"), where={"session_id": row["parent_id"]})
    ignored = ProblemCounts("")
    parts = [
        Part("", value)
        for part in found
        if isinstance(part["data"], str)
        and TASK in part["data"]
        and row["id"] in part["data"]
        and isinstance(value := decoded(part["data"], "", ignored), dict)
    ]
    return call_ids(parts).get(row["id"], "")
