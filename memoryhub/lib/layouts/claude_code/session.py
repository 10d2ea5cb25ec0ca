"""Build sessions from the records of one of Claude Code's transcripts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, tzinfo
from typing import Any

from memoryhub.lib.files.safe_folder import Stream
from memoryhub.lib.layouts.claude_code.entries import (
    Answer,
    Context,
    attachment_entry,
    program_entry,
    record_id,
    user_entries,
)
from memoryhub.lib.layouts.claude_code.tree import Node, active_path, chain
from memoryhub.lib.layouts.jsonl import json_lines, title_of, without_binary
from memoryhub.lib.layouts.message_parts import hash_of, own_id, parts_text
from memoryhub.lib.layouts.problem_counts import ProblemCounts
from memoryhub.lib.layouts.records import EntryRecord, Problem, SessionRecord, SummaryRecord

MESSAGES = ("user", "assistant")
IN_TREE = (*MESSAGES, "attachment", "system", "progress")
TITLES = {"custom-title": "customTitle", "ai-title": "aiTitle", "summary": "summary"}  # the best first
BOOKKEEPING = {
    "agent-color",
    "agent-name",
    "agent-setting",
    "attribution-snapshot",
    "bridge-session",
    "content-replacement",
    "ended-by-model",
    "file-history-delta",
    "file-history-snapshot",
    "fork-context-ref",
    "frame-link",
    "isolation-latch",
    "last-prompt",
    "marble-origami-commit",
    "marble-origami-reset",
    "marble-origami-snapshot",
    "mode",
    "permission-mode",
    "pr-link",
    "progress",
    "queue-operation",
    "relocated",
    "speculation-accept",
    "tag",
    "worktree-state",
}
FORK_CALLS = ("Agent", "Task")  # the tool that starts a subagent, and its former name
REPEATED = "has records that repeat an earlier one's id; the first is used"


@dataclass
class Compaction:
    """``place``: the number of records before it. ``preserved``: ids of records that stay in the context."""

    place: int
    uuid: str
    preserved: set[str]
    text: str | None = None
    metadata: dict[str, Any] = field(default_factory=dict)
    moment: datetime | None = None


@dataclass
class Transcript:
    """The records of a conversation: of a session, or of one subagent of an older version in the session's file."""

    context: Context
    nodes: list[Node] = field(default_factory=list)
    items: list[tuple[int, EntryRecord | Answer]] = field(default_factory=list)  # with the place of their record
    compactions: list[Compaction] = field(default_factory=list)
    known: set[str] = field(default_factory=set)
    titles: dict[str, str] = field(default_factory=dict)
    calls: dict[str, str] = field(default_factory=dict)  # hash of a subagent's prompt: the id of the call
    answer: Answer | None = None
    forked_from: str = ""
    agent_id: str = ""
    prompt: str = ""  # the first that somebody typed

    def add(self, record: dict[str, Any]) -> None:
        """Add a record of the tree."""
        uuid = own_id(record.get("uuid")) or f"line {len(self.nodes)}"
        if uuid in self.known:
            self.context.counts.add(REPEATED, "imported", "noted")
            return
        self.known.add(uuid)
        fork = record.get("forkedFrom")
        if isinstance(fork, dict) and not self.forked_from:
            self.forked_from = own_id(fork.get("sessionId"))
        self.agent_id = self.agent_id or own_id(record.get("agentId"))
        self.nodes.append(_node(uuid, record))
        match record["type"]:
            case "user":
                self._add_user(record)
            case "assistant":
                self._add_assistant(record)
            case "attachment":
                self._add_entry(attachment_entry(record, self.context))
            case "system":
                self._add_system(record)
            case _:
                self.context.counts.left_out["progress"] += 1

    def _add_entry(self, entry: EntryRecord) -> None:
        self.items.append((len(self.nodes) - 1, entry))

    def _add_user(self, record: dict[str, Any]) -> None:
        if record.get("isCompactSummary") is True:
            self.answer = None
            self._add_summary(record)
            return
        entries = user_entries(record, self.context)
        for entry in entries:
            self._add_entry(entry)
            if entry.kind == "message" and not self.prompt:
                self.prompt = entry.content[:1000]
        if any(entry.kind != "tool_result" for entry in entries):
            self.answer = None

    def _add_assistant(self, record: dict[str, Any]) -> None:
        message = record["message"]
        message_id, request = own_id(message.get("id")), own_id(record.get("requestId"))
        last = self.items[-1][1] if self.items else None
        is_same = self.answer and message_id and self.answer.message_id == message_id
        if (
            not is_same
            or self.answer is None
            or (last is not self.answer and self.answer.request_id != (request or 0))
        ):
            self.answer = Answer(self.context, message_id, request)
            self.items.append((len(self.nodes) - 1, self.answer))
        count = len(self.answer.calls)
        self.answer.add(record)
        for call in self.answer.calls[count:]:
            if call["function"]["name"] in FORK_CALLS:
                self._note_prompt(message.get("content"))

    def _note_prompt(self, content: Any) -> None:
        for part in content if isinstance(content, list) else []:
            values = part.get("input") if isinstance(part, dict) else None
            if isinstance(values, dict) and isinstance(values.get("prompt"), str):
                self.calls[hash_of(values["prompt"])] = own_id(part.get("id"))

    def _add_system(self, record: dict[str, Any]) -> None:
        subtype = record.get("subtype")
        if subtype == "compact_boundary":
            self.answer = None
            self._add_boundary(record)
        elif isinstance(record.get("content"), str) and record["content"]:
            text = record["content"]
            self._add_entry(program_entry({**record, "content": None}, "system", text, self.context))
        else:
            self.context.counts.left_out[f"system/{subtype}"] += 1

    def _add_boundary(self, record: dict[str, Any]) -> None:
        value = record.get("compactMetadata")
        metadata: dict[str, Any] = value if isinstance(value, dict) else {}
        preserved: set[str] = set()
        segment, messages = metadata.get("preservedSegment"), metadata.get("preservedMessages")
        if isinstance(segment, dict) and (tail := own_id(segment.get("tailUuid"))):
            preserved = chain(self.nodes, own_id(segment.get("headUuid")), tail)
        if isinstance(messages, dict):
            for name in ("uuids", "allUuids"):
                listed = messages.get(name)
                preserved |= {item for item in listed if isinstance(item, str)} if isinstance(listed, list) else set()
        moment = self.context.time(record)[0]
        place = len(self.nodes) - 1
        self.compactions.append(Compaction(place, record_id(record), preserved, None, metadata, moment))

    def _add_summary(self, record: dict[str, Any]) -> None:
        message = record.get("message")
        text = parts_text(message.get("content") if isinstance(message, dict) else message)
        if not self.compactions or self.compactions[-1].text is not None:
            self.nodes[-1].continues = True
            moment = self.context.time(record)[0]
            self.compactions.append(Compaction(len(self.nodes) - 1, record_id(record), set(), None, {}, moment))
        self.compactions[-1].text = text


def _node(uuid: str, record: dict[str, Any]) -> Node:
    message = record.get("message")
    message = message if isinstance(message, dict) else {}
    content, kind = message.get("content"), record["type"]
    is_compaction = record.get("subtype") == "compact_boundary"
    parent = own_id(record.get("parentUuid")) or own_id(record.get("logicalParentUuid"))
    is_result = isinstance(content, list) and any(
        isinstance(part, dict) and part.get("type") == "tool_result" for part in content
    )
    return Node(
        uuid,
        parent,
        kind,
        own_id(message.get("id")) if kind == "assistant" else "",
        own_id(record.get("sourceToolAssistantUUID")),
        is_result,
        is_compaction,
    )


def read_records(stream: Stream, path: str, zone: tzinfo, *, is_agent: bool = False) -> SessionFile:
    """Read all records of a transcript. ``is_agent``: it is a subagent's own file."""
    file = SessionFile(path, zone, is_agent=is_agent)
    for number, record in json_lines(stream, path, file.problems):
        file.add(number, record)
    file.counts.at = ""
    return file


class SessionFile:
    """The conversations in a file: that of the session first, then those of subagents of older versions."""

    def __init__(self, path: str, zone: tzinfo = UTC, *, is_agent: bool = False) -> None:
        self.path = path
        self.problems: list[Problem] = []
        self.counts = ProblemCounts(path)
        self.main = Transcript(Context(zone, self.counts))
        self.agents: dict[str, Transcript] = {}
        self.session_id = ""  # as in the first record
        self.count = 0
        self._zone = zone
        self._is_agent = is_agent
        self._agent_of: dict[str, str] = {}  # record of a subagent: its name

    def add(self, number: int, record: Any) -> None:
        self.count += 1
        self.counts.at = number
        kind = record.get("type") if isinstance(record, dict) else None
        if not isinstance(record, dict) or not isinstance(kind, str):
            self.counts.add_unknown("no type")
            return
        self.session_id = self.session_id or own_id(record.get("sessionId"))
        if kind in IN_TREE and (kind != "progress" or record.get("uuid")):
            if kind in MESSAGES and not isinstance(record.get("message"), dict):
                what = f"the {kind} record has no message"
                self.problems.append(Problem(self.path, number, what, "skipped", "rejected"))
                return
            self._transcript(record).add(record)
        elif kind in TITLES:
            self._add_title(kind, record)
        elif kind in BOOKKEEPING:
            self.counts.left_out[kind] += 1
        else:
            self.counts.add_unknown(kind)

    def _add_title(self, kind: str, record: dict[str, Any]) -> None:
        title = record.get(TITLES[kind])
        is_of_other = kind == "summary" and own_id(record.get("leafUuid")) not in self.main.known
        if is_of_other:
            self.counts.left_out["summary of another session"] += 1
        elif isinstance(title, str) and title:
            self.main.titles[kind] = title

    def _transcript(self, record: dict[str, Any]) -> Transcript:
        if self._is_agent or record.get("isSidechain") is not True:
            return self.main
        uuid, parent = own_id(record.get("uuid")), own_id(record.get("parentUuid"))
        agent = own_id(record.get("agentId"))
        name = f"agent-{agent}" if agent else self._agent_of.get(parent) or f"agent-{uuid}"
        self._agent_of[uuid] = name
        return self.agents.setdefault(name, Transcript(Context(self._zone, self.counts)))

    def sessions(self, key: str, leaf_titles: Mapping[str, str] | None = None) -> list[SessionRecord]:
        """Return the session with this key, and those of its subagents in the same file."""
        titles = [title for uuid, title in (leaf_titles or {}).items() if uuid in self.main.known]
        found = [build(self.main, key, self.counts, titles[0] if titles else "")]
        for name, transcript in self.agents.items():
            session = build(transcript, f"{key}/{name}", self.counts)
            call = self.main.calls.get(hash_of(transcript.prompt)) if len(transcript.prompt) < 1000 else ""
            found.append(replace(session, parent_key=key, parent_call_id=call or ""))
        return found


def build(transcript: Transcript, key: str, counts: ProblemCounts, title: str = "") -> SessionRecord:
    """Return a conversation as a session."""
    path = active_path(transcript.nodes)
    entries, places = _entries(transcript, path, counts)
    summaries = _fold(transcript, entries, places, path, counts)
    times = [entry.occurred_at for entry in entries if entry.occurred_at]
    title = next((transcript.titles[kind] for kind in TITLES if kind in transcript.titles), title)
    return SessionRecord(
        key=key,
        entries=entries,
        summaries=summaries,
        title=title_of(title or transcript.prompt),
        created_at=min(times, default=None),
        updated_at=max(times, default=None),
        is_by_id=True,
        forked_from=f"claude:{transcript.forked_from}" if transcript.forked_from else "",
        extra=without_binary(dict(transcript.context.environment)),
    )


def _entries(
    transcript: Transcript, path: Collection[str], counts: ProblemCounts
) -> tuple[list[EntryRecord], list[int]]:
    """Return the entries, and the place of each one's record."""
    entries: list[EntryRecord] = []
    places: list[int] = []
    thinking: list[str] = []
    transcript.context.last_usage = ""
    used: Counter[str] = Counter()
    for place, item in transcript.items:
        found = item.entries() if isinstance(item, Answer) else [item]
        if isinstance(item, Answer) and not found:
            thinking += item.thinking
        elif isinstance(item, Answer) and thinking:
            found[0] = _with_thinking(found[0], thinking, is_before=True)
            thinking = []
        is_rewound = transcript.nodes[place].uuid not in path
        for entry in found:
            used[entry.source_id] += 1
            if used[entry.source_id] == 1:
                entries.append(replace(entry, is_rewound=True) if is_rewound else entry)
                places.append(place)
    if thinking:
        last = next((i for i in reversed(range(len(entries))) if entries[i].role == "assistant"), None)
        if last is None:
            counts.left_out["thinking without an answer"] += len(thinking)
        else:
            entries[last] = _with_thinking(entries[last], thinking, is_before=False)
    return entries, places


def _with_thinking(entry: EntryRecord, thinking: Iterable[str], *, is_before: bool) -> EntryRecord:
    own = entry.extra.get("thinking", [])
    return replace(entry, extra=entry.extra | {"thinking": [*thinking, *own] if is_before else [*own, *thinking]})


def _fold(
    transcript: Transcript,
    entries: list[EntryRecord],
    places: list[int],
    path: Collection[str],
    counts: ProblemCounts,
) -> list[SummaryRecord]:
    """Link entries to the summaries that replace them, and return the summaries."""
    summaries: list[SummaryRecord] = []
    start, waiting = 0, list[int]()  # entries that no summary replaces yet
    for compaction in transcript.compactions:
        if compaction.text is None:
            counts.add("has a compaction without a summary", "imported", "noted")
            continue
        if transcript.nodes[compaction.place].uuid not in path:
            counts.left_out["summary on a branch that was left"] += 1
            continue
        end = next((i for i in range(start, len(places)) if places[i] >= compaction.place), len(places))
        waiting, start = [*waiting, *range(start, end)], end
        waiting = [index for index in waiting if not entries[index].is_rewound]
        preserved = compaction.preserved
        folded = [i for i in waiting if transcript.nodes[places[i]].uuid not in preserved]
        waiting = [i for i in waiting if transcript.nodes[places[i]].uuid in preserved]
        for index in folded:
            entries[index] = replace(entries[index], summary_source_id=compaction.uuid)
        summaries = [_child_of(summary, compaction.uuid) for summary in summaries]
        ids = [entries[index].source_id for index in folded]
        summaries.append(_summary(compaction, compaction.text, ids))
    return summaries


def _child_of(summary: SummaryRecord, parent: str) -> SummaryRecord:
    """Mark a summary as part of a later one."""
    return summary if "parentId" in summary.extra else replace(summary, extra=summary.extra | {"parentId": parent})


def _summary(compaction: Compaction, text: str, ids: list[str]) -> SummaryRecord:
    tokens = compaction.metadata.get("preTokens")
    return SummaryRecord(
        source_id=compaction.uuid,
        content=text,
        entry_source_ids=ids,
        original_token_count=tokens if type(tokens) is int and 0 <= tokens < 2**31 else None,
        created_at=compaction.moment,
        extra={"compactMetadata": compaction.metadata} if compaction.metadata else {},
    )
