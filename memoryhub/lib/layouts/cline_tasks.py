"""Read the tasks of Cline and Roo Code: ``tasks/<id>/api_conversation_history.json``, a list of Anthropic messages.

The messages have no ids, so that place and content identify them. The extensions add the state of the editor to a
user's texts, and older versions send results of tools as texts.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC
from typing import Any

from memoryhub.lib.files.safe_folder import Folder, UnreadableFile
from memoryhub.lib.layouts.agent_entries import time_of
from memoryhub.lib.layouts.entries import MAX_ID_LENGTH
from memoryhub.lib.layouts.file_names import last_part
from memoryhub.lib.layouts.json_file import load_json, open_json
from memoryhub.lib.layouts.jsonl import placeholder, title_of, with_hash, without_binary
from memoryhub.lib.layouts.problem_counts import ProblemCounts
from memoryhub.lib.layouts.records import DetectedLayout, EntryRecord, FileRead, Project, SessionRecord, ToolCall
from memoryhub.lib.layouts.times import read_epoch
from memoryhub.lib.validation import brief, clean_text, json_text, visible_line

TASKS = "tasks"
HISTORY = "api_conversation_history.json"
INDEXES = ("state/taskHistory.json", "tasks/_index.json")
MAX_INDEX_BYTES = 8 * 2**20
INJECTED = re.compile(r"\s*(?:<environment_details>|\[ERROR\]|\[TASK RESUMPTION\]|# task_progress|<system-reminder>)")
TASK = re.compile(r"\s*<(task|feedback|user_message|answer)>\n?(.*?)\n?</\1>\s*", re.DOTALL)
TOOL_TEXT = re.compile(r"\[(\w+)(?: [^\n]*)?\] Result:[ \n]?")
FOLDER_IN_TEXT = re.compile(rb"# Current (?:Working|Workspace) Directory \(([^)\"\\]{1,1000})\)")
NO_PROJECT = "tasks"  # the name of the project of tasks whose folder is unknown


def task_names(folder: Folder) -> list[str]:
    """Return the ids of the tasks that have a conversation."""
    return [name for name in folder.names(TASKS) if folder.is_file(_history(name))]


def _history(task: str) -> str:
    return f"{TASKS}/{task}/{HISTORY}"


def projects(folder: Folder) -> list[Project]:
    """Return the folders that tasks worked in."""
    names = task_names(folder)
    places = _folders_of_tasks(folder, names)
    found = []
    for place in dict.fromkeys(places[name] for name in names):
        paths = [_history(name) for name in names if places[name] == place]
        found.append(
            Project(
                name=place or NO_PROJECT,
                label=last_part(place) or NO_PROJECT,
                path=place,
                session_count=len(paths),
                byte_count=sum(folder.size(path) for path in paths),
                last_active=folder.latest_change(paths),
            )
        )
    return found


def read(folder: Folder, detected: DetectedLayout) -> Iterator[FileRead]:
    """Yield each task of the detected project, or of all."""
    names = task_names(folder)
    if detected.project:
        places = _folders_of_tasks(folder, names)
        names = [name for name in names if (places[name] or NO_PROJECT) == detected.project]
    titles = {name: value.get("task") for name, value in _index(folder).items()} if names else {}
    for name in names:
        yield _read_task(folder, name, titles.get(name))


def _index(folder: Folder) -> dict[str, dict[str, Any]]:
    """Return what the extension's list of tasks says, by task."""
    found: dict[str, dict[str, Any]] = {}
    for path in INDEXES:
        value = load_json(folder, path, limit=MAX_INDEX_BYTES, no_wait=True)
        rows = value.get("entries") if isinstance(value, dict) else value
        for row in rows if isinstance(rows, list) else []:
            if isinstance(row, dict) and isinstance(row.get("id"), str):
                found[row["id"]] = row
    return found


def _folders_of_tasks(folder: Folder, names: list[str]) -> dict[str, str]:
    """Return the folder that each task worked in: from the list, or else as the first messages name it."""
    index = _index(folder)
    found = {}
    for name in names:
        row = index.get(name, {})
        known = row.get("cwdOnTaskInitialization") or row.get("workspace")
        found[name] = visible_line(known) if isinstance(known, str) and known else _folder_in_text(folder, name)
    return found


def _folder_in_text(folder: Folder, task: str) -> str:
    try:
        head, _ = folder.read(_history(task), lambda stream: stream.head(), even_if_unchanged=True, no_wait=True)
    except UnreadableFile:
        return ""
    match = FOLDER_IN_TEXT.search(head)
    return visible_line(clean_text(match[1].decode("utf-8", "replace"))) if match else ""


def _read_task(folder: Folder, task: str, title: Any) -> FileRead:
    path = _history(task)
    file = open_json(folder, path, "session", keep_spelling=False)
    if isinstance(file, FileRead):
        return file
    if not isinstance(file.value, list):
        return file.rejected("is not a conversation: it is not a list of messages")
    notes = ProblemCounts(path)
    entries: list[EntryRecord] = []
    for number, message in enumerate(file.value, 1):
        notes.at = str(number)
        entries += _entries(message, notes)
    notes.at = ""
    first = next((entry.content for entry in entries if entry.role == "user" and entry.kind == "message"), "")
    times = [entry.occurred_at for entry in entries if entry.occurred_at]
    created_at = read_epoch(int(task))[0] if task.isdigit() and len(task) <= 15 else None
    record = SessionRecord(
        key=f"cline:{visible_line(clean_text(task))}",
        entries=[with_hash(entry) for entry in entries],
        title=title_of(title if isinstance(title, str) and title else first),
        created_at=created_at or min(times, default=None),
        updated_at=max(times, default=None),
    )
    read = file.read([record])
    return replace(read, problems=[*read.problems, *notes.problems()])


def _entries(message: Any, notes: ProblemCounts) -> list[EntryRecord]:
    """Return the entries of a message: its text and calls, and each result of a tool."""
    if not isinstance(message, dict) or message.get("role") not in ("user", "assistant"):
        notes.add("a message has no known role", "skipped", "rejected")
        return []
    role, content = message["role"], message.get("content")
    blocks = content if isinstance(content, list) else [{"type": "text", "text": content}] if content else []
    occurred_at, time_text = time_of(notes, UTC, message.get("ts"))
    extra = {key: without_binary(value) for key, value in message.items() if key not in ("role", "content", "ts")}
    found = []
    texts: list[str] = []
    calls: list[ToolCall] = []
    thinking: list[Any] = []
    for block in blocks:
        made = _of_block(block, role, texts, calls, thinking, notes)
        found += [replace(entry, occurred_at=occurred_at, occurred_at_text=time_text) for entry in made]
    if thinking:
        extra["thinking"] = thinking
    if texts or calls:
        said = EntryRecord(
            kind="tool_call" if calls else "message",
            role=role,
            content="\n".join(texts),
            source_hash="",
            tool_calls=calls,
            occurred_at=occurred_at,
            occurred_at_text=time_text,
            extra=extra,
        )
        return [said, *found] if role == "assistant" else [*found, said]
    if found and extra:
        found[0] = replace(found[0], extra=found[0].extra | extra)
    return found


def _of_block(
    block: Any,
    role: str,
    texts: list[str],
    calls: list[ToolCall],
    thinking: list[Any],
    notes: ProblemCounts,
) -> list[EntryRecord]:
    """Add a block to the text, the calls or the thinking of its message, or return it as an entry of its own."""
    if not isinstance(block, dict):
        notes.add("a part of a message is not an object", "skipped", "rejected")
        return []
    kind = block.get("type")
    if kind == "text" and isinstance(block.get("text"), str):
        return _of_text(block["text"], role, texts)
    if kind == "tool_use" and isinstance(block.get("name"), str):
        arguments = json_text(without_binary(block.get("input") or {}))
        function = {"name": block["name"][:MAX_ID_LENGTH], "arguments": arguments}
        calls.append({"id": _id(block.get("id")), "type": "function", "function": function})  # type: ignore[typeddict-item]
    elif kind == "tool_result":
        extra = {"is_error": True} if block.get("is_error") is True else {}
        name = _id(block.get("tool_use_id"))
        return [_entry("tool_result", "tool", _text_of(block.get("content")), tool_call_id=name, extra=extra)]
    elif kind in ("thinking", "redacted_thinking", "reasoning"):
        thinking.append(without_binary({key: value for key, value in block.items() if key != "type"}))
    elif kind in ("image", "document"):
        texts.append(_text_of([block]))
    else:
        notes.add(f"a part of the type {brief(kind)}", "its JSON is imported", "noted")
        texts.append(json_text(without_binary(block)))
    return []


def _of_text(text: str, role: str, texts: list[str]) -> list[EntryRecord]:
    if role == "user" and INJECTED.match(text):
        return [_entry("context", "user", text, is_injected=True)]
    if role == "user" and (result := TOOL_TEXT.match(text)):
        extra = {"is_error": True} if "<error>" in text[:400] or "The tool execution failed" in text[:400] else {}
        return [_entry("tool_result", "tool", text[result.end() :], name=result[1], extra=extra)]
    task = TASK.fullmatch(text) if role == "user" else None
    texts.append(task[2] if task else text)
    return []


def _entry(kind: Any, role: str, content: str, **values: Any) -> EntryRecord:
    return EntryRecord(kind=kind, role=role, content=content, source_hash="", **values)


def _id(value: Any) -> str:
    return value[:MAX_ID_LENGTH] if isinstance(value, str) else ""


def _text_of(content: Any) -> str:
    """Return the content of a tool's result, or of an image, as text."""
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else [] if content is None else [content]
    return "\n".join(_part_text(part) for part in parts)


def _part_text(part: Any) -> str:
    if not isinstance(part, dict):
        return part if isinstance(part, str) else json_text(part)
    if isinstance(part.get("text"), str):
        return str(part["text"])
    source = part.get("source")
    if isinstance(source, dict) and isinstance(source.get("data"), str):
        media = source.get("media_type")
        return placeholder(media if isinstance(media, str) else str(part.get("type")), source["data"])
    return json_text(without_binary(part))
