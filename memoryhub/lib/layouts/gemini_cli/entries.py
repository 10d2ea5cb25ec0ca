"""Convert the messages of a Gemini CLI session to entries and summaries."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, tzinfo
from typing import Any

from memoryhub.lib.layouts.agent_entries import short_text
from memoryhub.lib.layouts.entries import INVALID_TIME, MAX_ID_LENGTH
from memoryhub.lib.layouts.gemini_cli.log import (
    ChatLog,
    function_part,
    is_reply_to_summary,
    is_thought,
    part_text,
    parts_of,
    plain_text,
)
from memoryhub.lib.layouts.jsonl import title_of, with_hash, without_binary
from memoryhub.lib.layouts.problem_counts import ProblemCounts
from memoryhub.lib.layouts.records import REPAIRED, EntryRecord, Problem, SessionRecord, SummaryRecord, ToolCall
from memoryhub.lib.layouts.times import read_moment
from memoryhub.lib.validation import brief, clean_text, json_text, visible_line

INJECTED = ("<session_context>", "<environment_context>")  # beginnings of texts that the program adds
NOTICES = ("info", "error", "warning")
METADATA = ("sessionId", "startTime", "lastUpdated", "summary", "messages")
MESSAGE_FIELDS = ("id", "timestamp", "type", "content", "toolCalls", "thoughts")
CALL_FIELDS = ("id", "name", "args", "result", "timestamp")
FAILED = ("error", "cancelled")


def session_record(
    log: ChatLog, path: str, program: str, problems: list[Problem], *, parent: str, zone: tzinfo
) -> SessionRecord | None:
    """Return the session that a log leads to, None if it has neither messages nor metadata."""
    notes = log.notes
    converter = _Converter(log, notes, zone)
    entries = converter.entries()
    problems += notes.problems()
    if not log.messages and not log.metadata:
        return None
    metadata = log.metadata
    name = metadata.get("sessionId")
    if not isinstance(name, str) or not 0 < len(name) <= MAX_ID_LENGTH - 100:
        what = f"sessionId is {brief(name)}, not an id" if name else "has no sessionId"
        name = visible_line(clean_text(path.rpartition("/")[2].partition(".json")[0]))
        problems.append(Problem(path, None, what, f"imported as {name}, from the file name", "repaired"))
    title = metadata.get("summary")
    if not isinstance(title, str) or not title.strip():
        title = next((entry.content for entry in entries if entry.role == "user" and entry.kind == "message"), "")
    times = [entry.occurred_at for entry in entries if entry.occurred_at]
    return SessionRecord(
        key=f"{program}:{visible_line(name)}",
        entries=_with_session(entries, name),
        summaries=converter.summaries,
        title=title_of(title),
        created_at=read_moment(metadata.get("startTime"), zone) or min(times, default=None),
        updated_at=read_moment(metadata.get("lastUpdated"), zone) or max(times, default=None),
        is_by_id=True,
        parent_key=f"{program}:{visible_line(clean_text(parent))}" if parent else "",
        extra={key: value for key, value in metadata.items() if key not in METADATA},
    )


def _with_session(entries: list[EntryRecord], session: str) -> list[EntryRecord]:
    """Add the session to the ids of injected entries: the program derives them from the text, so that they recur."""
    return [
        replace(entry, source_id=f"{session}:{entry.source_id}"[:MAX_ID_LENGTH]) if entry.is_injected else entry
        for entry in entries
    ]


class _Converter:
    """Converts a log, and adds problems to ``notes``."""

    def __init__(self, log: ChatLog, notes: ProblemCounts, zone: tzinfo) -> None:
        self.log = log
        self.zone = zone
        self.notes = notes
        self.summaries: list[SummaryRecord] = []
        self.answered = {
            call_id(call) for message in log.messages.values() for call in _calls(message) if _result(call)
        }
        self._thoughts: list[Any] = []  # of messages without text and calls

    def entries(self) -> list[EntryRecord]:
        found: list[EntryRecord] = []
        for name, message in self.log.messages.items():
            if name in self.log.folded:
                continue
            self.notes.at = self.log.places.get(name) or name
            kind = message.get("type")
            is_rewound = name not in self.log.live
            if kind == "user":
                made = self._of_user(name, message)
            elif kind == "gemini":
                made = self._of_model(name, message)
            elif kind in NOTICES:
                made = [self._entry(name, message, role="system", is_injected=True)]
            else:
                self.notes.add(f"a message of the type {brief(kind)}", "skipped", "rejected")
                continue
            found += [replace(entry, is_rewound=is_rewound) for entry in made]
        self.notes.at = ""
        if self._thoughts and found:
            found[-1] = _with_thoughts(found[-1], self._thoughts)
        return [with_hash(entry) for entry in self._folded(found)]

    def _folded(self, entries: list[EntryRecord]) -> list[EntryRecord]:
        """Add the summaries, and to each entry the summary that folds it."""
        by_message: dict[str, list[EntryRecord]] = {}
        for entry in entries:
            by_message.setdefault(entry.source_id.partition("#")[0], []).append(entry)
        owner: dict[str, str] = {}
        for summary, names in self.log.folded.items():
            gone = [name for name in names if name not in self.log.live and name not in owner]
            owner |= dict.fromkeys(gone, summary)
            message = self.log.messages[summary]
            ids = [entry.source_id for name in gone for entry in by_message.get(name, []) if not entry.is_injected]
            self.summaries.append(
                SummaryRecord(
                    source_id=summary,
                    content=plain_text(message.get("content")),
                    entry_source_ids=ids,
                    created_at=self._time(message)[0],
                )
            )
        return [
            replace(entry, summary_source_id=owner[name], is_rewound=False)
            if (name := entry.source_id.partition("#")[0]) in owner and not entry.is_injected
            else entry
            for entry in entries
        ]

    def _of_user(self, name: str, message: dict[str, Any]) -> list[EntryRecord]:
        parts = parts_of(message.get("content"))
        responses = [value for part in parts if (value := function_part(part, "functionResponse"))]
        text = plain_text(parts)
        made: list[EntryRecord] = []
        if text or not responses:
            made.append(self._entry(name, message, role="user", is_injected=text.lstrip().startswith(INJECTED)))
        for response in responses:
            if not (known := call_id(response)) or known not in self.answered:
                self.answered.add(known)
                made.append(self._response(_numbered(name, made), message, response))
        return made

    def _response(self, name: str, message: dict[str, Any], response: dict[str, Any]) -> EntryRecord:
        """Return the entry of a result that no tool call contains."""
        content, is_error = _response_text(response)
        return self._tool_result(name, response, content, {"is_error": True} if is_error else {}, timed=message)

    def _tool_result(
        self, name: str, call: dict[str, Any], content: str, extra: dict[str, Any], *, timed: dict[str, Any]
    ) -> EntryRecord:
        """Return the entry of a call's result. ``timed``: the part of the file that has its time."""
        occurred_at, time_text = self._time(timed)
        return EntryRecord(
            kind="tool_result",
            role="tool",
            content=content,
            source_hash="",
            name=short_text(call.get("name")),
            tool_call_id=call_id(call),
            occurred_at=occurred_at,
            occurred_at_text=time_text,
            source_id=name,
            extra=extra,
        )

    def _of_model(self, name: str, message: dict[str, Any]) -> list[EntryRecord]:
        calls = _calls(message)
        known = {call_id(call) for call in calls}
        parts = parts_of(message.get("content"))
        calls += [
            {"id": f"{name}:{index}"} | value
            for index, part in enumerate(parts)
            if (value := function_part(part, "functionCall")) and call_id(value) not in known
        ]
        thoughts = [*parts_of(message.get("thoughts")), *(part for part in parts if is_thought(part))]
        text = plain_text(parts)
        if not text and not calls:
            self._thoughts += thoughts
            return []
        thoughts = [*self._thoughts, *thoughts]
        self._thoughts = []
        is_injected = bool(self.log.folded) and is_reply_to_summary(text)
        entry = self._entry(name, message, role="assistant", is_injected=is_injected)
        made = [_with_thoughts(replace(entry, tool_calls=[_tool_call(call) for call in calls]), thoughts)]
        if calls:
            made[0] = replace(made[0], kind="tool_call")
        for call in calls:
            if _result(call):
                made.append(self._result_entry(_numbered(name, made), message, call))
        return made

    def _result_entry(self, name: str, message: dict[str, Any], call: dict[str, Any]) -> EntryRecord:
        texts = []
        is_error = call.get("status") in FAILED
        for part in parts_of(_result(call)):
            response = function_part(part, "functionResponse")
            text, has_failed = _response_text(response) if response else (part_text(part), False)
            texts.append(text)
            is_error = is_error or has_failed
        content = "\n".join(text for text in texts if text)
        extra = {key: value for key, value in call.items() if key not in CALL_FIELDS}
        if extra.get("resultDisplay") == content:
            del extra["resultDisplay"]
        extra |= {"is_error": True} if is_error else {}
        return self._tool_result(name, call, content, extra, timed=call if call.get("timestamp") else message)

    def _entry(self, name: str, message: dict[str, Any], *, role: str, is_injected: bool) -> EntryRecord:
        occurred_at, time_text = self._time(message)
        extra = {key: value for key, value in message.items() if key not in MESSAGE_FIELDS}
        if is_injected:
            extra["type"] = message.get("type")
        if "displayContent" in extra and plain_text(extra["displayContent"]) == plain_text(message.get("content")):
            del extra["displayContent"]
        return EntryRecord(
            kind="context" if is_injected else "message",
            role=role,
            content=plain_text(message.get("content")),
            source_hash="",
            occurred_at=occurred_at,
            occurred_at_text=time_text,
            source_id=name,
            is_injected=is_injected,
            extra=extra,
        )

    def _time(self, record: dict[str, Any]) -> tuple[datetime | None, str]:
        text = record.get("timestamp")
        occurred_at = read_moment(text, self.zone)
        if text is None:
            return None, ""
        if occurred_at is None:
            self.notes.add(INVALID_TIME, REPAIRED, "repaired")
        return occurred_at, text if isinstance(text, str) else json_text(text)


def _calls(message: dict[str, Any]) -> list[dict[str, Any]]:
    calls = message.get("toolCalls")
    return [call for call in calls if isinstance(call, dict)] if isinstance(calls, list) else []


def _result(call: dict[str, Any]) -> Any:
    return call.get("result") or None


def call_id(call: dict[str, Any]) -> str:
    return short_text(call.get("id"))


def _tool_call(call: dict[str, Any]) -> ToolCall:
    arguments = without_binary(call.get("args"))
    text = arguments if isinstance(arguments, str) else json_text({} if arguments is None else arguments)
    return {
        "id": call_id(call),
        "type": "function",
        "function": {"name": short_text(call.get("name")), "arguments": text},
    }


def _response_text(response: dict[str, Any]) -> tuple[str, bool]:
    """Return the text of a function's response, and whether it is an error."""
    value = response.get("response")
    is_error = isinstance(value, dict) and "error" in value
    inner = value.get("error", value.get("output", value)) if isinstance(value, dict) else value
    text = inner if isinstance(inner, str) else "" if inner is None else json_text(without_binary(inner))
    files = [part_text(part) for part in parts_of(response.get("parts"))]
    return "\n".join(part for part in (text, *files) if part), is_error


def _numbered(name: str, made: list[EntryRecord]) -> str:
    return f"{name}#{len(made)}" if made else name


def _with_thoughts(entry: EntryRecord, thoughts: list[Any]) -> EntryRecord:
    return (
        replace(entry, extra=entry.extra | {"thoughts": [*entry.extra.get("thoughts", []), *thoughts]})
        if thoughts
        else entry
    )
