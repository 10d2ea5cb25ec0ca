"""Convert the events of an OpenClaw session, which its store and its older files have in common, to entries."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import tzinfo
from typing import Any

from memoryhub.lib.layouts.agent_entries import EntryList, parts_of, short_text, text_of, time_of
from memoryhub.lib.layouts.jsonl import with_hash, without_binary
from memoryhub.lib.layouts.message_parts import MAX_OWN_ID, part_text, tool_call
from memoryhub.lib.layouts.problem_counts import ProblemCounts
from memoryhub.lib.layouts.records import EntryKind, EntryRecord, SummaryRecord
from memoryhub.lib.validation import brief, json_text

BOOKKEEPING = ("custom", "label", "model_change", "session", "session_info", "thinking_level_change")
ENVELOPE_FIELDS = ("type", "id", "parentId", "timestamp", "message")
MESSAGE_FIELDS = ("role", "content", "timestamp")
RESULT_FIELDS = (*MESSAGE_FIELDS, "toolCallId", "toolName", "isError")
SILENT = re.compile(r"\s*(?:NO_REPLY|HEARTBEAT_OK)[.!]?\s*")
INTERNAL = re.compile(
    r"<<<BEGIN_OPENCLAW_INTERNAL_CONTEXT>>>.*?(?:<<<END_OPENCLAW_INTERNAL_CONTEXT>>>|\Z)"
    r"|^[A-Z][\w ]{1,60} \(untrusted[^)\n]{0,80}\):\n```json\n.*?\n```[ \t]*$",
    re.DOTALL | re.MULTILINE,
)
INTERNAL_SOURCES = ("internal_system", "inter_session")  # message.provenance.kind
REPEATED = "has records that repeat an earlier one; the first is used"
MAX_DETAILS_CHARS = 65_536


@dataclass(frozen=True)
class Event:
    """A record of a transcript.

    ``number``: its line or its number in the store; ``is_active``: None if the store doesn't say.
    """

    number: int
    value: dict[str, Any]
    is_active: bool | None = None
    is_line: bool = False

    @property
    def place(self) -> int | str:
        return self.number if self.is_line else str(self.number)

    @property
    def id(self) -> str:
        value = self.value.get("id")
        return value if isinstance(value, str) and 0 < len(value) <= MAX_OWN_ID else ""


@dataclass(frozen=True)
class Transcript:
    """The entries of a session. ``parts``: between resets. ``header``: its first record."""

    parts: list[EntryList]
    header: dict[str, Any]
    name: str


def read_events(session_id: str, events: list[Event], counts: ProblemCounts, zone: tzinfo) -> Transcript:
    """Convert the events of a session, in their order."""
    converter = _Converter(session_id, {event.id: event.number for event in events}, counts, zone)
    path = _active_numbers(events)
    parts = [EntryList("thinking")]
    header: dict[str, Any] = {}
    name = ""
    skipped: Counter[str] = Counter()
    seen: dict[str, dict[str, Any]] = {}
    for event in events:
        counts.at = event.place
        kind = event.value.get("type")
        first = seen.setdefault(event.id, event.value) if event.id else event.value
        if first is not event.value and first == event.value:
            counts.add(REPEATED, "imported", "noted")
        elif kind == "reset":
            parts[-1].finish()
            parts.append(EntryList("thinking"))
        elif kind in BOOKKEEPING:
            skipped[kind] += kind != "session"
            header = header or (event.value if kind == "session" else {})
            name = short_text(event.value.get("name"), 200) if kind == "session_info" else name
        else:
            converter.add(event, parts[-1], is_rewound=event.number not in path)
    parts[-1].finish()
    counts.at = ""
    counts.left_out.update(skipped)
    for part in parts:
        part.entries = [with_hash(entry) for entry in _without_heartbeats(part.entries)]
    return Transcript(parts, header, name)


def _active_numbers(events: Iterable[Event]) -> set[int]:
    """Return the numbers of the events on the current branch.

    It leads from the last event over the parents to the first one. Instead of a parent that was never stored, it
    leads to the event before.
    """
    known = list(events)
    marked = [place for place, event in enumerate(known) if event.is_active]
    places = {event.id: place for place, event in enumerate(known) if event.id}
    found = {known[place].number for place in marked}
    place = marked[-1] if marked else len(known) - 1
    while place >= 0:
        event = known[place]
        found.add(event.number)
        parent = event.value.get("parentId", "")
        before = places.get(parent, place) if isinstance(parent, str) else place
        if before < place:
            place = before
        elif parent is None and event.value.get("type") != "reset":
            break
        else:
            place = max((one for one in marked if one < place), default=place - 1)
    return found


class _Converter:
    """Converts events. ``numbers``: of the events, by their ids."""

    def __init__(self, session_id: str, numbers: dict[str, int], counts: ProblemCounts, zone: tzinfo) -> None:
        self.session_id = session_id
        self.numbers = numbers
        self.counts = counts
        self.zone = zone
        self._used: dict[str, int] = {}  # numbers of events, by the ids of their entries

    def add(self, event: Event, found: EntryList, *, is_rewound: bool) -> None:
        """Add the entries of an event."""
        kind = event.value.get("type")
        if kind == "message":
            self._add_message(event, found, is_rewound=is_rewound)
        elif kind == "compaction":
            self._add_compaction(event, found, is_rewound=is_rewound)
        elif kind in ("branch_summary", "custom_message"):
            is_summary = kind == "branch_summary"
            content = event.value.get("summary" if is_summary else "content")
            entry = self._entry(
                event, event.value, "summary" if is_summary else "context", "system", text_of(content)
            )
            extra = {
                key: value
                for key, value in event.value.items()
                if key not in (*ENVELOPE_FIELDS, "content", "summary")
            }
            name = short_text(event.value.get("customType"))
            found.add(
                replace(
                    entry, name=name, is_rewound=is_rewound, is_injected=not is_summary, extra=without_binary(extra)
                )
            )
        else:
            what = f"a record of the type {brief(kind)}" if kind else "a record without a type"
            self.counts.add(what, "skipped", "rejected", json_text(event.value).encode()[:2000])

    def _id(self, event: Event) -> str:
        """Return an event's own id, or its place in the session if it has none or shares it."""
        name = event.id
        if not name or name in self._used:
            if name:
                self.counts.add("two records have the same id", "imported as separate entries", "noted")
            name = f"{self.session_id[:MAX_OWN_ID]}:{event.number}"
        self._used[name] = event.number
        return name

    def _entry(self, event: Event, source: dict[str, Any], kind: EntryKind, role: str, content: str) -> EntryRecord:
        occurred_at, text = time_of(self.counts, self.zone, source.get("timestamp"), event.value.get("timestamp"))
        return EntryRecord(
            kind=kind,
            role=role,
            content=content,
            source_hash="",
            occurred_at=occurred_at,
            occurred_at_text=text,
            source_id=self._id(event),
        )

    def _add_message(self, event: Event, found: EntryList, *, is_rewound: bool) -> None:
        message = event.value.get("message")
        if not isinstance(message, dict):
            self.counts.add("a message is not an object", "skipped", "rejected")
            return
        role = message.get("role")
        made: Iterator[EntryRecord]
        if role == "assistant":
            self._add_answer(event, message, found, is_rewound=is_rewound)
            return
        if role == "user":
            made = self._user(event, message)
        elif role == "toolResult":
            made = iter([self._result(event, message)])
        else:
            self.counts.add(f"a message of the role {brief(role)}", "imported as context", "noted")
            entry = self._entry(event, message, "context", "system", text_of(message.get("content", message)))
            made = iter([replace(entry, is_injected=True, extra=_further(event, message, MESSAGE_FIELDS))])
        for entry in made:
            found.add(replace(entry, is_rewound=is_rewound))

    def _user(self, event: Event, message: dict[str, Any]) -> Iterator[EntryRecord]:
        """Yield what the program added to a user's message, and the message."""
        text = text_of(message.get("content"))
        entry = self._entry(event, message, "message", "user", text)
        entry = replace(entry, extra=_further(event, message, MESSAGE_FIELDS))
        provenance = message.get("provenance")
        source = provenance.get("kind") if isinstance(provenance, dict) else None
        said = INTERNAL.sub("", text).strip()
        if source in INTERNAL_SOURCES or (not said and said != text):
            yield replace(entry, kind="context", is_injected=True)
            return
        for number, match in enumerate(INTERNAL.finditer(text), 1):
            yield replace(
                entry,
                kind="context",
                content=match.group(),
                source_id=f"{entry.source_id}#{number}",
                is_injected=True,
                extra={},
            )
        yield replace(entry, content=said) if INTERNAL.search(text) else entry

    def _result(self, event: Event, message: dict[str, Any]) -> EntryRecord:
        entry = self._entry(event, message, "tool_result", "tool", text_of(message.get("content")))
        extra = _further(event, message, RESULT_FIELDS)
        if len(json_text(extra.get("details"))) > MAX_DETAILS_CHARS:
            del extra["details"]
            self.counts.add("the details of a tool's result are longer than 64 KB", "left out", "noted")
        if message.get("isError") is True:
            extra["is_error"] = True
        return replace(
            entry,
            name=short_text(message.get("toolName")),
            tool_call_id=short_text(message.get("toolCallId")),
            extra=extra,
        )

    def _add_answer(self, event: Event, message: dict[str, Any], found: EntryList, *, is_rewound: bool) -> None:
        parts = parts_of(message.get("content"))
        kinds = [part.get("type") if isinstance(part, dict) else None for part in parts]
        thoughts = [without_binary(part) for part, kind in zip(parts, kinds, strict=True) if kind == "thinking"]
        calls = [
            tool_call(part.get("id"), part.get("name"), part.get("arguments"))
            for part, kind in zip(parts, kinds, strict=True)
            if kind == "toolCall"
        ]
        texts = [
            part_text(part) for part, kind in zip(parts, kinds, strict=True) if kind not in ("thinking", "toolCall")
        ]
        text = "\n".join(text for text in texts if text)
        failure = message.get("errorMessage")
        if not text and not calls and isinstance(failure, str):
            text = failure
        if not text and not calls:
            if thoughts:
                found.add_reasoning(thoughts)
            else:
                self.counts.add("an answer is empty", "skipped", "noted")
            return
        entry = self._entry(event, message, "tool_call" if calls else "message", "assistant", text)
        extra = _further(event, message, MESSAGE_FIELDS)
        if isinstance(failure, str):
            extra["is_error"] = True
        if not calls and SILENT.fullmatch(text):
            entry = replace(entry, is_injected=True, kind="context")
        found.add(replace(entry, tool_calls=calls, is_rewound=is_rewound, extra=extra), thoughts)

    def _add_compaction(self, event: Event, found: EntryList, *, is_rewound: bool) -> None:
        value = event.value
        entry = self._entry(event, value, "summary", "system", text_of(value.get("summary")))
        extra = {key: item for key, item in value.items() if key not in (*ENVELOPE_FIELDS, "summary")}
        if is_rewound:
            found.add(replace(entry, is_rewound=True, extra=without_binary(extra)))
            return
        first = value.get("firstKeptEntryId")
        start = self.numbers.get(first, event.number) if isinstance(first, str) else event.number
        kept = {
            one.source_id
            for one in found.entries
            if self._used.get(one.source_id, self._used.get(one.source_id.rpartition("#")[0], 0)) >= start
        }
        before = value.get("tokensBefore")
        summary = SummaryRecord(
            source_id=entry.source_id,
            content=entry.content,
            entry_source_ids=[],
            original_token_count=before if type(before) is int and 0 <= before < 2**31 else None,
            created_at=entry.occurred_at,
            extra=without_binary(extra),
        )
        found.fold(summary, kept)


def _further(event: Event, message: dict[str, Any], known: tuple[str, ...]) -> dict[str, Any]:
    """Return the fields of an event and its message that an entry has no attributes for."""
    outer = {key: value for key, value in event.value.items() if key not in ENVELOPE_FIELDS}
    inner = {key: value for key, value in message.items() if key not in known}
    found: dict[str, Any] = without_binary(outer | inner)
    return found


def _without_heartbeats(entries: list[EntryRecord]) -> list[EntryRecord]:
    """Hide the turns in which the program asked the agent whether anything needs attention, and nothing did."""
    found = list(entries)
    start: int | None = None
    for place, entry in enumerate(entries):
        if entry.role == "user" and entry.kind == "message":
            start = place if "HEARTBEAT" in entry.content.upper() else None
        elif start is not None and entry.is_injected and entry.role == "assistant" and "HEARTBEAT" in entry.content:
            for index in range(start, place):
                kind = "context" if found[index].kind == "message" else found[index].kind
                found[index] = replace(found[index], is_injected=True, kind=kind)
            start = None
    return found
