"""Build a session from the lines of one of Codex's rollouts."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from datetime import tzinfo
from typing import Any

from memoryhub.lib.files.safe_folder import Stream
from memoryhub.lib.layouts.codex.items import (
    CALLS,
    LEFT_OUT,
    MESSAGES,
    RESULTS,
    ItemTime,
    event_items,
    item_entry,
    item_hash,
    reasoning_texts,
)
from memoryhub.lib.layouts.entries import INVALID_TIME
from memoryhub.lib.layouts.jsonl import json_lines, title_of, without_binary
from memoryhub.lib.layouts.message_parts import hash_of, own_id, parts_text
from memoryhub.lib.layouts.problem_counts import ProblemCounts
from memoryhub.lib.layouts.records import REPAIRED, EntryRecord, Problem, SessionRecord, SummaryRecord
from memoryhub.lib.layouts.times import read_moment

ITEM_TYPES = (*MESSAGES, *CALLS, *RESULTS, *LEFT_OUT, "reasoning")
BOOKKEEPING = {
    "turn_context", "world_state", "token_usage_record", "dynamic_tools_updated", "inter_agent_communication",
    "inter_agent_communication_metadata", "security_risk_score", "realtime_item", "state",
}  # fmt: skip
MIN_ID_CHARS = 20  # shorter ids of some providers repeat in other sessions
NO_SUMMARY = "has a compaction whose summary is encrypted; the messages stay in the context"
REPEATED = "has records that repeat an earlier one; the first is used"


def read_rollout(
    stream: Stream, path: str, zone: tzinfo, *, base: Rollout | None = None, before: int | None = None
) -> Rollout:
    """Read the lines of a rollout.

    ``base``: the beginning of the conversation, if the rollout only refers to it. ``before``: read only the lines
    with a lower ordinal.
    """
    rollout = Rollout(path, zone, base)
    counts, last = rollout.counts, None
    for number, record in json_lines(stream, path, rollout.problems):
        counts.at = number
        ordinal = record.get("ordinal") if isinstance(record, dict) else None
        if ordinal is not None and record == last:
            counts.add(REPEATED, "imported", "noted")
        elif before is None or (type(ordinal) is int and ordinal < before):
            rollout.add(record)
        last = record
    counts.at = ""
    rollout.finish()
    return rollout


class Rollout:
    """The conversation in a rollout. ``meta``: of the session, from the first line."""

    def __init__(self, path: str, zone: tzinfo, base: Rollout | None = None) -> None:
        self.path = path
        self.problems: list[Problem] = []
        self.counts = ProblemCounts(path)
        self.meta: dict[str, Any] = {}
        self.entries: list[EntryRecord] = [*base.entries] if base else []
        self.summaries: list[SummaryRecord] = [*base.summaries] if base else []
        self.count = 0
        self._zone = zone
        self._open: list[int] = [*base._open] if base else []  # indexes of entries in the context
        self._reasoning: list[str] = []
        self._chain: str = base._chain if base else ""
        self._ids: dict[str, str] = {**base._ids} if base else {}  # id of an item: its hash
        self._events: list[tuple[dict[str, Any], ItemTime]] | None = []  # None: the file has items
        self._token_usage: Any = None
        self._title = ""

    def add(self, record: Any) -> None:
        """Add a line: ``{type, payload}``, or an item as such in files of 2025."""
        self.count += 1
        if not isinstance(record, dict):
            self.counts.add_unknown("no object")
            return
        payload, kind = record.get("payload"), record.get("type")
        if not isinstance(payload, dict):
            payload = record
            is_meta = kind is None and "id" in record
            kind = "session_meta" if is_meta else "response_item" if kind in ITEM_TYPES else kind
        time = self._time(record)
        match kind:
            case "session_meta":
                self._add_meta(payload)
            case "response_item":
                self._add_item(payload, time)
            case "event_msg":
                self._add_event(payload, time)
            case "compacted":
                self._add_compaction(payload, time)
            case _:
                name = "state" if record.get("record_type") == "state" else str(kind)  # of 2025
                self._skip(name, is_known=name in BOOKKEEPING)

    def _skip(self, kind: str, *, is_known: bool) -> None:
        if is_known:
            self.counts.left_out[kind] += 1
        else:
            self.counts.add_unknown(kind)

    def _time(self, record: dict[str, Any]) -> ItemTime:
        text = record.get("timestamp")
        moment = read_moment(text, self._zone)
        if text is not None and moment is None:
            self.counts.add(INVALID_TIME, REPAIRED, "repaired")
        return ItemTime(moment, text if isinstance(text, str) else "")

    def _add_meta(self, payload: dict[str, Any]) -> None:
        """Use the first line. A fork repeats those of the sessions before it; ids are derived from the first one."""
        if not self.meta:
            dropped = [name for name in ("base_instructions", "instructions") if payload.get(name)]
            self.counts.left_out.update(dropped)
            self.meta = {key: value for key, value in payload.items() if key not in dropped}
        else:
            self.counts.left_out["session_meta of another session"] += 1
        if not self.entries:
            fork = own_id(payload.get("forked_from_id"))
            self._chain = hash_of(fork or own_id(payload.get("id")))

    def _add_item(self, item: dict[str, Any], time: ItemTime) -> None:
        kind = item.get("type")
        if kind == "reasoning":
            self._reasoning += reasoning_texts(item)
            if item.get("encrypted_content"):
                self.counts.left_out["encrypted reasoning"] += 1
            return
        if kind not in ITEM_TYPES or kind in LEFT_OUT:
            self._skip(str(kind), is_known=kind in LEFT_OUT)
            return
        if kind in MESSAGES:
            self._events = None
        if (name := self._new_id(item)) and (entry := item_entry(item, name, time)):
            self._append(entry)

    def _new_id(self, item: dict[str, Any]) -> str:
        """Return the item's own id, or one that also depends on all items before it; "" if it repeats an earlier one.

        So a fork that repeats the items of its session from the beginning has the same ids.
        """
        name, content = own_id(item.get("id")), item_hash(item)
        if len(name) < MIN_ID_CHARS or self._ids.get(name, content) != content:
            self._chain = name = hash_of([self._chain, content])[:40]
        elif name in self._ids:
            self.counts.add(REPEATED, "imported", "noted")
            return ""
        self._ids[name] = content
        return name

    def _append(self, entry: EntryRecord) -> None:
        if self._reasoning and entry.role == "assistant":
            entry = replace(entry, extra=entry.extra | {"reasoning": self._reasoning})
            self._reasoning = []
        self._open.append(len(self.entries))
        self.entries.append(entry)

    def _add_event(self, event: dict[str, Any], time: ItemTime) -> None:
        """Use what an event adds to the items; most events repeat them."""
        kind = event.get("type")
        if kind == "thread_rolled_back":
            self._roll_back(event.get("num_turns"))
        elif kind == "thread_name_updated":
            self._title = own_id(event.get("thread_name")) or self._title
        elif kind == "token_count":
            info = event.get("info")
            usage = info.get("total_token_usage") if isinstance(info, dict) else None
            self._token_usage = usage or self._token_usage
        elif self._events is not None and (items := event_items(event)):
            self._events += [(item, time) for item in items]
        else:
            self.counts.left_out[f"event_msg/{kind}"] += 1

    def _roll_back(self, turns: Any) -> None:
        """Mark the entries of the last turns; a turn begins with the user's message."""
        if type(turns) is not int or turns < 1:
            return
        cut = len(self._open)
        for place in reversed(range(cut)):
            if self._is_prompt(self.entries[self._open[place]]):
                cut, turns = place, turns - 1
                if not turns:
                    break
        for index in self._open[cut:]:
            self.entries[index] = replace(self.entries[index], is_rewound=True)
        del self._open[cut:]

    @staticmethod
    def _is_prompt(entry: EntryRecord) -> bool:
        return entry.role == "user" and not entry.is_injected

    def _add_compaction(self, payload: dict[str, Any], time: ItemTime) -> None:
        """Fold the entries before a compaction, except those that the program's new history repeats."""
        text, history = payload.get("message"), payload.get("replacement_history")
        history = [item for item in history if isinstance(item, dict)] if isinstance(history, list) else []
        text = text if isinstance(text, str) and text else _last_text(history)
        if not text:
            self.counts.add(NO_SUMMARY, "imported", "noted")
            return
        kept = {own_id(item.get("id")) or item_hash(item) for item in history}
        name = hash_of([self._chain, self._ids and next(reversed(self._ids)), text])[:40]
        self._chain = name
        folded = [index for index in self._open if not self._is_kept(self.entries[index], kept)]
        self._open = [index for index in self._open if self._is_kept(self.entries[index], kept)]
        for index in folded:
            self.entries[index] = replace(self.entries[index], summary_source_id=name)
        if self.summaries:
            last = self.summaries[-1]
            self.summaries[-1] = replace(last, extra=last.extra | {"parentId": name})
        ids = [self.entries[index].source_id for index in folded]
        self.summaries.append(SummaryRecord(name, text, ids, created_at=time.moment))

    def _is_kept(self, entry: EntryRecord, kept: Iterable[str]) -> bool:
        return entry.source_id in kept or (entry.role == "user" and self._ids.get(entry.source_id, "") in kept)

    def finish(self) -> None:
        """Use the events of a file without items, and attach reasoning that no answer followed."""
        if not self.entries and self._events:
            for item, time in self._events:
                self._add_item(item, time)
        last = next((i for i in reversed(range(len(self.entries))) if self.entries[i].role == "assistant"), None)
        if self._reasoning and last is not None:
            entry = self.entries[last]
            kept = [*entry.extra.get("reasoning", []), *self._reasoning]
            self.entries[last] = replace(entry, extra=entry.extra | {"reasoning": kept})
        elif self._reasoning:
            self.counts.left_out["reasoning without an answer"] += len(self._reasoning)
        self._events = None

    def session(self, key: str, title: str = "") -> SessionRecord:
        """Return the conversation. ``title``: that the person gave it."""
        times = [entry.occurred_at for entry in self.entries if entry.occurred_at]
        prompt = next((entry.content for entry in self.entries if self._is_prompt(entry)), "")
        forked_from = own_id(self.meta.get("forked_from_id"))
        parent = parent_thread(self.meta)
        usage = {"token_usage": self._token_usage} if self._token_usage else {}
        return SessionRecord(
            key=key,
            entries=self.entries,
            summaries=self.summaries,
            title=title_of(title or self._title or prompt),
            created_at=read_moment(self.meta.get("timestamp"), self._zone) or min(times, default=None),
            updated_at=max(times, default=None),
            is_by_id=True,
            forked_from=f"codex:{forked_from}" if forked_from else "",
            parent_key=f"codex:{parent}" if parent else "",
            extra=dict(without_binary(self.meta | usage)),
        )


def parent_thread(meta: dict[str, Any]) -> str:
    """Return the id of the session that started a subagent."""
    source = meta.get("source")
    subagent = source.get("subagent") if isinstance(source, dict) else None
    spawn = subagent.get("thread_spawn") if isinstance(subagent, dict) else None
    return own_id(spawn.get("parent_thread_id")) if isinstance(spawn, dict) else ""


def _last_text(history: list[dict[str, Any]]) -> str:
    """Return the summary at the end of a new history, "" if it is encrypted."""
    last = history[-1] if history else {}
    return parts_text(last.get("content")) if last.get("type") == "message" and last.get("role") == "user" else ""
