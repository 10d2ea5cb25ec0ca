"""Sessions as the agents' own files (formats.md sections 1, 3 and 5): the way back from records.

A record that came from the same program is given back field by field as it was. One of another program, or of the
hub, gets the fields that the target has.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, tzinfo
from typing import Any

from memoryhub.lib.layouts.records import UNKNOWN_RECORDS, EntryRecord, SessionRecord, SummaryRecord, ToolCall
from memoryhub.lib.layouts.times import naive_time, read_time
from memoryhub.lib.validation import parse_stored

LINES = ("nanobot", "nanobot-current")  # layouts whose files are JSON lines
LAYOUTS = {"nanobot": "jsonl", "grip": "json", "agterm": "json"}  # and the ending of a file


def write_session(record: SessionRecord, layout: str, *, zone: tzinfo = UTC, is_native: bool) -> str:
    """Return a session as the text of one file. ``is_native``: its entries came from this layout.

    ``zone``: in which nanobot's naive times are written. ``nanobot-current`` is nanobot 0.3, which has a place for
    the summary of what went before. Raises KeyError for an unknown layout.
    """
    if layout in LINES:
        return "".join(session_lines(record, layout, zone=zone, is_native=is_native))
    if layout == "grip":
        return _grip(record, is_native=is_native)
    if layout == "agterm":
        return _agterm(record)
    raise KeyError(layout)


def session_lines(record: SessionRecord, layout: str, *, zone: tzinfo = UTC, is_native: bool) -> Iterator[str]:
    """Yield a session as the lines of one of nanobot's files. Its entries are read once."""
    has_summary = layout == "nanobot-current"
    known = record.extra.get("metadata", {}) if is_native else {}
    if isinstance(known, dict):
        known = known | _further_metadata(known, record, zone, has_summary=has_summary)
    head: dict[str, Any] = {
        "_type": "metadata",
        "key": record.key,
        "created_at": naive_time(record.created_at, zone),
        "updated_at": naive_time(record.updated_at, zone),
        "metadata": known,
        **({"last_archived": record.pointer} if is_native and "last_archived" in record.extra else {}),
        "last_consolidated": record.pointer,
    }
    unknown = _unknown_records(record) if is_native else []
    if is_native:
        pointer = record.pointer + sum(at < record.pointer for at, _value in unknown)
        head |= {name: pointer for name in ("last_archived", "last_consolidated") if name in head}
        written = ("metadata", "checkpoint", "last_archived", UNKNOWN_RECORDS)
        head |= {
            name: value for name, value in record.extra.items() if name not in (*written, *_outdated(record, zone))
        }
    yield _line(head)
    for place, entry in enumerate(record.entries):
        while unknown and unknown[0][0] <= place:
            yield _line(unknown.pop(0)[1])
        message = _message(entry, is_native=is_native)
        if "timestamp" not in message and entry.occurred_at and not (is_native and _is_from_file(entry)):
            message["timestamp"] = naive_time(entry.occurred_at, zone)
        yield _line(message)
    for _at, value in unknown:
        yield _line(value)


def _line(value: Mapping[str, Any]) -> str:
    return json.dumps(value, ensure_ascii=False) + "\n"


def _outdated(record: SessionRecord, zone: tzinfo) -> list[str]:
    """Return the names of times in a session's extra fields that are no longer those of the session."""
    moments = {"created_at": record.created_at, "updated_at": record.updated_at}
    texts = {name: read_time(record.extra.get(name), zone) for name in moments}
    return [name for name, moment in texts.items() if moment is not None and moment != moments[name]]


def _unknown_records(record: SessionRecord) -> list[tuple[int, dict[str, Any]]]:
    """Return the records of the session's file that aren't messages, each with the number of entries before it."""
    kept = record.extra.get(UNKNOWN_RECORDS)
    pairs = [pair for pair in kept if isinstance(pair, list) and len(pair) == 2] if isinstance(kept, list) else []
    return [(at, value) for at, value in pairs if type(at) is int and isinstance(value, dict)]


def _further_metadata(
    known: Mapping[str, Any], record: SessionRecord, zone: tzinfo, *, has_summary: bool
) -> dict[str, Any]:
    """Return what the hub knows of a session and its metadata does not say."""
    values: dict[str, Any] = {}
    if record.title and known.get("title") != record.title:
        values["title"] = record.title
    if has_summary and record.summary_text and "_last_summary" not in known:
        values["_last_summary"] = {"text": record.summary_text, "last_active": naive_time(record.updated_at, zone)}
    return values


def grip_entries(record: SessionRecord) -> list[EntryRecord]:
    """Return the entries that Grip's file would still have: neither consolidated nor summarised in the hub."""
    return [entry for entry in record.entries[record.pointer :] if not entry.summary_source_id]


def _grip(record: SessionRecord, *, is_native: bool) -> str:
    messages = []
    for entry in grip_entries(record):
        message = _message(entry, is_native=is_native)
        if entry.tool_calls and not (is_native and "tool_calls" in entry.extra):
            message["tool_calls"] = [_grip_call(call) for call in entry.tool_calls]
        message.pop("timestamp", None) if not is_native else None
        messages.append(message)
    value: dict[str, Any] = {
        "key": record.key,
        "messages": messages,
        "summary": "\n\n".join([text for text in (record.summary_text, *_summary_texts(record)) if text]) or None,
        "created_at": record.created_at.timestamp() if record.created_at else None,
        "updated_at": record.updated_at.timestamp() if record.updated_at else None,
    }
    value |= record.extra if is_native else {}
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _summary_texts(record: SessionRecord) -> list[str]:
    """Return the summaries that stand for entries in the context, without those merged into another."""
    return [summary.content for summary in record.summaries if "parentId" not in summary.extra]


def _grip_call(call: ToolCall) -> dict[str, Any]:
    text = call["function"]["arguments"]
    return {"id": call["id"], "function_name": call["function"]["name"], "arguments": parse_stored(text, text)}


def _message(entry: EntryRecord, *, is_native: bool) -> dict[str, Any]:
    """Return a chat message. A native one has its own fields in their own order."""
    values: dict[str, Any] = {"role": entry.role, "content": entry.content}
    optional = {
        "tool_calls": entry.tool_calls,
        "tool_call_id": entry.tool_call_id,
        "name": entry.name,
        "timestamp": entry.occurred_at_text,
    }
    values |= {name: value for name, value in optional.items() if value}
    if is_native and entry.source_fields:
        whole = values | optional | entry.extra
        return {name: whole[name] for name in entry.source_fields if name in whole}
    values.pop("timestamp", None)
    return values


def _is_from_file(entry: EntryRecord) -> bool:
    return bool(entry.occurred_at_text) or entry.occurred_at is None


def _agterm(record: SessionRecord) -> str:
    ids = [entry.source_id or f"entry-{place}" for place, entry in enumerate(record.entries)]
    members: dict[str, list[str]] = {}
    for name, entry in zip(ids, record.entries, strict=True):
        members.setdefault(entry.summary_source_id, []).append(name)
    value = {
        "sessionId": record.key,
        "entries": [_agterm_entry(entry, name) for name, entry in zip(ids, record.entries, strict=True)],
        "summaries": [_agterm_summary(summary, members) for summary in record.summaries],
        "totalTokens": sum(entry.token_count or 0 for entry in record.entries),
    }
    return json.dumps(value | record.extra, ensure_ascii=False, indent=2) + "\n"


def _agterm_entry(entry: EntryRecord, name: str) -> dict[str, Any]:
    values: dict[str, Any] = {
        "id": name,
        "type": entry.kind,
        "role": entry.role if entry.role in ("user", "assistant") else "system",
        "content": entry.content or _calls_text(entry),
        "timestamp": _agterm_time(entry),
        "tokenCount": entry.token_count,
        "compressed": bool(entry.summary_source_id),
    }
    if entry.summary_source_id:
        values["summaryId"] = entry.summary_source_id
    if "type" in entry.source_fields:
        kept = {field: item for field, item in entry.extra.items() if field not in ("compressed", *values)}
        names = [field for field in entry.source_fields if field in values or field in entry.extra]
        whole = {field: entry.extra.get(field, values.get(field)) for field in names} | kept
        whole |= {field: values[field] for field in ("compressed", "summaryId") if field in values}
        return whole
    metadata = {"name": entry.name, "tool_calls": entry.tool_calls, "tool_call_id": entry.tool_call_id}
    if any(metadata.values()):
        values["metadata"] = {name: value for name, value in metadata.items() if value}
    return values


def _agterm_time(entry: EntryRecord) -> str | None:
    """Return the time as AgTerm's own entry has it; of another program's, which may lack its zone, in UTC."""
    is_own = "type" in entry.source_fields or entry.occurred_at is None
    return (entry.occurred_at_text if is_own else "") or _zulu(entry.occurred_at)


def _calls_text(entry: EntryRecord) -> str:
    return "\n".join(f"{call['function']['name']} {call['function']['arguments']}" for call in entry.tool_calls)


def _agterm_summary(summary: SummaryRecord, members: Mapping[str, list[str]]) -> dict[str, Any]:
    original, tokens = summary.original_token_count or 0, summary.token_count or 0
    return {
        "id": summary.source_id,
        "content": summary.content,
        "originalEntryIds": summary.entry_source_ids or members.get(summary.source_id, []),
        "tokenCount": tokens,
        "originalTokenCount": original,
        "compressionRatio": round(original / tokens, 2) if tokens else 0,
        "createdAt": _zulu(summary.created_at),
        "timeRange": {"start": _zulu(summary.starts_at), "end": _zulu(summary.ends_at)},
    } | summary.extra


def _zulu(moment: datetime | None) -> str | None:
    """Return a time as JavaScript writes it: UTC, milliseconds, Z."""
    if moment is None:
        return None
    return moment.astimezone(UTC).replace(tzinfo=None).isoformat(timespec="milliseconds") + "Z"
