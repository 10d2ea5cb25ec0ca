"""Read grid's session files: ``sessions/<id>.jsonl``, with a header, events and footers, one JSON object per line."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC
from typing import Any

from memoryhub.lib.files.safe_folder import Folder, Stream, UnreadableFile, join_path
from memoryhub.lib.layouts.agent_entries import text_of, time_of
from memoryhub.lib.layouts.documents import empty_file, unread_file, unreadable_file
from memoryhub.lib.layouts.entries import MAX_ID_LENGTH
from memoryhub.lib.layouts.jsonl import json_lines
from memoryhub.lib.layouts.message_parts import hash_of
from memoryhub.lib.layouts.problem_counts import ProblemCounts, counted
from memoryhub.lib.layouts.records import EntryRecord, FileRead, Problem, SessionRecord, ToolCall
from memoryhub.lib.layouts.times import read_moment
from memoryhub.lib.validation import json_text

ROLES = {"system": "system", "user": "user", "assistant": "assistant"}  # by type of event
MAX_FILE_BYTES = 512 * 2**20
LOG_NOTE = "is an audit log of grid, which holds no memory"


@dataclass
class _Events:
    header: dict[str, Any] = field(default_factory=dict)
    entries: list[EntryRecord] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    other_count: int = 0


def session_files(folder: Folder, parent: str) -> list[str]:
    sessions = join_path(parent, "sessions")
    return [join_path(sessions, name) for name in folder.names(sessions) if name.endswith(".jsonl")]


def read_sessions(folder: Folder, parent: str) -> Iterator[FileRead]:
    """Yield the session files of a grid folder, and its audit logs as ignored."""
    for path in session_files(folder, parent):
        yield _read_session(folder, path)
    logs = join_path(parent, "logs")
    for name in folder.names(logs):
        yield unread_file(join_path(logs, name), LOG_NOTE)


def _read_session(folder: Folder, path: str) -> FileRead:
    try:
        events, info = folder.read(path, lambda stream: _read_events(stream, path), limit=MAX_FILE_BYTES)
    except UnreadableFile as error:
        return unreadable_file(path, "session", error)
    if events == _Events():
        return empty_file(path, "session", info)
    if events.other_count:
        one = "has 1 event that is not a message or tool call"
        what = counted(events.other_count, one, "has {} events that are not messages or tool calls")
        events.problems.append(Problem(path, None, what, "left out", "ignored"))
    times = [entry.occurred_at for entry in events.entries if entry.occurred_at]
    record = SessionRecord(
        key=_text(events.header.get("id")) or path.rpartition("/")[2].removesuffix(".jsonl"),
        entries=events.entries,
        title=_text(events.header.get("workflow_name")),
        created_at=read_moment(events.header.get("created_at"), UTC),
        updated_at=max(times, default=None),
    )
    return FileRead(path, "session", info, [record], events.problems)


def _read_events(stream: Stream, path: str) -> _Events:
    events = _Events()
    notes = ProblemCounts(path)
    for notes.at, value in json_lines(stream, path, events.problems):
        if isinstance(value, dict):
            _add(events, value, notes)
        else:
            notes.add("is not an object", "skipped", "rejected", json_text(value).encode())
    events.problems += notes.problems()
    return events


def _add(events: _Events, value: dict[str, Any], notes: ProblemCounts) -> None:
    if value.get("_type") == "header":
        if events.header:
            notes.add("is another header", "used instead of the one before", "ignored")
        events.header = value
    elif value.get("_type", "event") == "event":
        entry = _entry(value, notes)
        if entry:
            events.entries.append(entry)
        else:
            events.other_count += 1
    elif value.get("_type") != "footer":
        events.other_count += 1


def _entry(event: dict[str, Any], notes: ProblemCounts) -> EntryRecord | None:
    """Return an event as an entry, None for events about goals, phases, security and the like."""
    kind, text = _text(event.get("type")), text_of(event.get("content"))
    name, call_id = _text(event.get("tool")), _text(event.get("corr_id"))
    place = {part: event[part] for part in ("goal", "step", "agent") if isinstance(event.get(part), str)}
    if "goal" in place:
        place["source"] = ":".join(place[part] for part in ("goal", "step") if part in place)
    values: dict[str, Any] = {"source_hash": hash_of(event), "extra": place}
    if kind in (*ROLES, "tool_call", "tool_result"):
        values["occurred_at"], values["occurred_at_text"] = time_of(notes, UTC, event.get("timestamp"))
    if kind in ROLES and text.strip():
        return EntryRecord(kind="message", role=ROLES[kind], content=text, **values)
    if kind == "tool_call" and name:
        arguments = json_text(event.get("args") or {})
        call: ToolCall = {
            "id": call_id or "call",
            "type": "function",
            "function": {"name": name, "arguments": arguments},
        }
        return EntryRecord(kind="tool_call", role="assistant", content=text, tool_calls=[call], **values)
    if kind == "tool_result":
        error = event.get("error")
        output = text or (error if isinstance(error, str) else "")
        return EntryRecord(
            kind="tool_result", role="tool", content=output, name=name, tool_call_id=call_id or "call", **values
        )
    return None


def _text(value: Any) -> str:
    return value[:MAX_ID_LENGTH] if isinstance(value, str) else ""
