"""Convert the messages of a session in Hermes's database to entries."""

from __future__ import annotations

from dataclasses import replace
from datetime import tzinfo
from typing import Any

from memoryhub.lib.files.sqlite_source import Row
from memoryhub.lib.layouts.agent_entries import EntryList, decoded, short_text, text_of, time_of
from memoryhub.lib.layouts.jsonl import with_hash, without_binary
from memoryhub.lib.layouts.message_parts import tool_call
from memoryhub.lib.layouts.problem_counts import ProblemCounts
from memoryhub.lib.layouts.records import EntryKind, EntryRecord, SummaryRecord, ToolCall
from memoryhub.lib.validation import BadJSON, brief, decode_json

REASONING = ("reasoning", "reasoning_content", "reasoning_details", "codex_reasoning_items")
FURTHER = (
    "finish_reason",
    "effect_disposition",
    "platform_message_id",
    "observed",
    "display_kind",
    "display_metadata",
)
MESSAGE = (
    "id",
    "role",
    "content",
    "tool_call_id",
    "tool_calls",
    "tool_name",
    "timestamp",
    "token_count",
    "_compressed_summary",
    "active",
    "compacted",
    *REASONING,
    *FURTHER,
)
ENCODED = "\\u0000json:"  # begins content that is a JSON value, after a NUL in the database
COMPACTION = "[CONTEXT COMPACTION"  # begins the summaries of versions without the column _compressed_summary
MAX_BATCH_SECONDS = 1.0  # between a summary and the copies of messages that were stored with it
SAID = ("role", "content", "tool_call_id", "tool_calls")
REVIEW = "Review the conversation above and"  # begins the program's own requests
MAX_COUNT = 2**31


def read_rows(session_id: str, rows: list[Row], counts: ProblemCounts, zone: tzinfo) -> EntryList:
    """Convert the rows of a session, in their order."""
    found = EntryList("reasoning")
    copies = _copies(rows)
    live = {copies[row["id"]] for row in rows if row["id"] in copies and not row["compacted"]}
    folded = {f"{session_id}:{row['id']}" for row in rows if row["compacted"] and row["id"] not in live}
    for row in rows:
        if row["id"] in copies:
            continue
        counts.at = str(row["id"])
        reasoning = [{name: row[name]} for name in REASONING if row[name] not in (None, "")]
        entry = _entry(session_id, row, counts, zone)
        if _is_summary(row):
            _add_summary(found, folded, entry)
        elif entry.role == "assistant" and not entry.content and not entry.tool_calls:
            found.add_reasoning(reasoning)
        else:
            found.add(entry, reasoning)
    found.finish()
    counts.at = ""
    found.entries = [with_hash(entry) for entry in found.entries]
    return found


def _is_summary(row: Row) -> bool:
    return row["_compressed_summary"] == 1 or str(row["content"]).startswith(COMPACTION)


def _copies(rows: list[Row]) -> dict[Any, Any]:
    """Return the ids of rows that a compression stored again, with the id of the first row that each one repeats."""
    times = [row["timestamp"] for row in rows if _is_summary(row) and isinstance(row["timestamp"], float)]
    known: dict[tuple[Any, ...], list[Any]] = {}  # ids by what was said, and by that and its time
    found: dict[Any, Any] = {}
    repeated: set[Any] = set()
    for row in rows:
        said, time = tuple(row[name] for name in SAID), row["timestamp"]
        is_batch = isinstance(time, float) and any(abs(time - other) < MAX_BATCH_SECONDS for other in times)
        others = known.get(said if is_batch else (said, time), [])
        other = next((one for one in others if row["compacted"] or one not in repeated), None)
        if other is not None:
            found[row["id"]] = other
            repeated.add(other)
        elif row["compacted"]:
            known.setdefault(said, []).append(row["id"])
            known.setdefault((said, time), []).append(row["id"])
    return found


def _entry(session_id: str, row: Row, counts: ProblemCounts, zone: tzinfo) -> EntryRecord:
    role = row["role"]
    content = content_of(row["content"])
    calls = _calls(row["tool_calls"], counts)
    occurred_at, time_text = time_of(counts, zone, row["timestamp"])
    tokens = row["token_count"]
    kind: EntryKind = "tool_result" if role == "tool" else "tool_call" if calls else "message"
    is_injected = row["display_kind"] == "hidden" or (role == "user" and content.startswith(REVIEW))
    if role not in ("user", "assistant", "tool"):
        counts.add(f"a message of the role {brief(role)}", "imported as context", "noted")
        role, is_injected = "system", True
    return EntryRecord(
        kind="context" if is_injected and kind == "message" else kind,
        role=role,
        content=content,
        source_hash="",
        name=short_text(row["tool_name"]),
        tool_call_id=short_text(row["tool_call_id"]),
        tool_calls=calls,
        occurred_at=occurred_at,
        occurred_at_text=time_text,
        token_count=tokens if type(tokens) is int and 0 <= tokens < MAX_COUNT else None,
        source_id=f"{session_id}:{row['id']}",
        is_injected=is_injected,
        is_rewound=row["active"] == 0 and not row["compacted"],
        extra=without_binary({name: row[name] for name in FURTHER if row[name] not in (None, 0, "")}),
    )


def content_of(value: Any) -> str:
    """Return the text of a message's content: a text, or JSON of its parts."""
    if value is None:
        return ""
    text = str(value)
    is_encoded = text.startswith(ENCODED)
    if is_encoded or text.startswith('[{"'):
        try:
            parts = decode_json(text.removeprefix(ENCODED)).value
        except BadJSON:
            return text
        if is_encoded or (isinstance(parts, list) and all(isinstance(one, dict) and "type" in one for one in parts)):
            return text_of(parts)
    return text


def _calls(text: Any, counts: ProblemCounts) -> list[ToolCall]:
    if not text:
        return []
    value = decoded(text, "the tool calls of a message", counts)
    found: list[ToolCall] = []
    for call in value if isinstance(value, list) else ():
        function = call.get("function") if isinstance(call, dict) else None
        if isinstance(function, dict):
            found.append(tool_call(call.get("id"), function.get("name"), function.get("arguments")))
        else:
            counts.add("a tool call of an unknown format", "skipped", "rejected")
    return found


def _add_summary(found: EntryList, compacted: set[str], entry: EntryRecord) -> None:
    """Fold the rows that a compression replaced; without any, the summary stands for an earlier session."""
    kept = {one.source_id for one in found.entries if one.source_id not in compacted}
    folds_any = any(one.source_id in compacted and not one.summary_source_id for one in found.entries)
    if not folds_any or entry.is_rewound:
        found.add(replace(entry, kind="summary", role="system", is_injected=False))
        return
    summary = SummaryRecord(
        source_id=entry.source_id,
        content=entry.content,
        entry_source_ids=[],
        token_count=entry.token_count,
        created_at=entry.occurred_at,
        extra=entry.extra,
    )
    found.fold(summary, kept)
