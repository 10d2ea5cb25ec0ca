"""Sessions as the agents' own files (formats.md sections 1, 3 and 5), in parts.

A record that came from the same program is given back field by field as it was. One of another program, or of the
hub, gets the fields that the target has.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime, tzinfo
from typing import Any

from memoryhub.lib.json_numbers import dump_json, respelled
from memoryhub.lib.layouts.records import UNKNOWN_RECORDS, EntryRecord, SessionRecord, SummaryRecord, ToolCall
from memoryhub.lib.layouts.times import naive_time, read_time
from memoryhub.lib.validation import parse_stored

LINES = ("nanobot", "nanobot-current")  # layouts whose files are JSON lines
LAYOUTS = {"nanobot": "jsonl", "grip": "json", "agterm": "json"}  # and the ending of a file


def session_parts(
    record: SessionRecord, layout: str, *, zone: tzinfo = UTC, is_native: bool, written: Counter[str] | None = None
) -> Iterator[str]:
    """Yield a session as the parts of one file's text. Its entries are read once, when they are needed.

    ``is_native``: its entries came from this layout. ``zone``: in which nanobot's naive times are written.
    ``nanobot-current`` is nanobot 0.3, which has a place for the summary of what went before. ``written`` counts the
    entries as they are written. Raises KeyError for an unknown layout.
    """
    counts = Counter[str]() if written is None else written
    if layout in LINES:
        return _nanobot(record, layout, zone, counts, is_native=is_native)
    return {"grip": _grip, "agterm": _agterm}[layout](record, counts, is_native=is_native)


def _nanobot(
    record: SessionRecord, layout: str, zone: tzinfo, written: Counter[str], *, is_native: bool
) -> Iterator[str]:
    """Yield the lines of one of nanobot's files."""
    yield _line(_metadata(record, zone, has_summary=layout == "nanobot-current", is_native=is_native))
    for entry in _in_place(record, record.entries, is_native=is_native):
        if not isinstance(entry, EntryRecord):
            yield _line(entry)
            continue
        message = _message(entry, is_native=is_native)
        if "timestamp" not in message and entry.occurred_at and not (is_native and _is_from_file(entry)):
            message["timestamp"] = naive_time(entry.occurred_at, zone)
        written["entries"] += 1
        yield _line(message)


def _metadata(record: SessionRecord, zone: tzinfo, *, has_summary: bool, is_native: bool) -> Any:
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
    if not is_native:
        return head
    pointer = record.pointer + sum(at < record.pointer for at, _value in _unknown_records(record))
    head |= {name: pointer for name in ("last_archived", "last_consolidated") if name in head}
    written = ("metadata", "checkpoint", "last_archived", UNKNOWN_RECORDS, *_outdated(record, zone))
    head |= {name: value for name, value in record.extra.items() if name not in written}
    return respelled(head, record.extra)


def _line(value: Any) -> str:
    return dump_json(value) + "\n"


def _in_place(record: SessionRecord, entries: Iterable[EntryRecord], *, is_native: bool) -> Iterator[Any]:
    """Yield entries, and between them the records of the session's file that aren't entries."""
    unknown = _unknown_records(record) if is_native else []
    for place, entry in enumerate(entries):
        while unknown and unknown[0][0] <= place:
            yield unknown.pop(0)[1]
        yield entry
    for _at, value in unknown:
        yield value


def _outdated(record: SessionRecord, zone: tzinfo) -> list[str]:
    """Return the names of times in a session's extra fields that are no longer those of the session."""
    moments = {"created_at": record.created_at, "updated_at": record.updated_at}
    texts = {name: read_time(record.extra.get(name), zone) for name in moments}
    return [name for name, moment in texts.items() if moment is not None and moment != moments[name]]


def _unknown_records(record: SessionRecord) -> list[tuple[int, Any]]:
    """Return the records of the session's file that aren't messages, each with the number of entries before it."""
    return [(at, value) for at, value in unknown_records(record.extra) if type(at) is int]


def unknown_records(extra: Mapping[str, Any]) -> Iterator[tuple[Any, Any]]:
    """Yield ``(place, value)`` of the records that were not imported; see ``records.unknown_record``."""
    kept = extra.get(UNKNOWN_RECORDS)
    for found in kept if isinstance(kept, list) else []:
        if isinstance(found, list) and len(found) in (2, 3):
            at, value, *spellings = found
            is_spelled = bool(spellings) and isinstance(spellings[0], dict)
            yield at, respelled(value, spellings[0]) if is_spelled else value


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


def _grip(record: SessionRecord, written: Counter[str], *, is_native: bool) -> Iterator[str]:
    """Yield Grip's file. It has only the messages that are neither consolidated nor summarised in the hub."""
    yield f'{{"key":{dump_json(record.key)},"messages":['
    between = ""
    for entry in _from_pointer(record, is_native=is_native):
        if isinstance(entry, EntryRecord) and entry.summary_source_id:
            continue
        written["entries"] += isinstance(entry, EntryRecord)
        message = _grip_message(entry, is_native=is_native) if isinstance(entry, EntryRecord) else entry
        yield between + dump_json(message, separators=(",", ":"))
        between = ","
    rest: dict[str, Any] = {
        "summary": "\n\n".join([text for text in (record.summary_text, *_summary_texts(record)) if text]) or None,
        "created_at": record.created_at.timestamp() if record.created_at else None,
        "updated_at": record.updated_at.timestamp() if record.updated_at else None,
    }
    if is_native:
        rest |= {
            name: value for name, value in record.extra.items() if name not in ("key", "messages", UNKNOWN_RECORDS)
        }
        rest = respelled(rest, record.extra)
    yield "]," + dump_json(rest, separators=(",", ":"))[1:]


def _from_pointer(record: SessionRecord, *, is_native: bool) -> Iterator[Any]:
    """Yield the entries that aren't consolidated, with unknown records between them."""
    entries = 0
    for entry in _in_place(record, record.entries, is_native=is_native):
        if entries >= record.pointer:
            yield entry
        entries += isinstance(entry, EntryRecord)


def _grip_message(entry: EntryRecord, *, is_native: bool) -> dict[str, Any]:
    message = _message(entry, is_native=is_native)
    if entry.tool_calls and not (is_native and "tool_calls" in entry.extra):
        message["tool_calls"] = [_grip_call(call) for call in entry.tool_calls]
    message.pop("timestamp", None) if not is_native else None
    return message


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
        found: dict[str, Any] = respelled(
            {name: whole[name] for name in entry.source_fields if name in whole}, entry.extra
        )
        return found
    values.pop("timestamp", None)
    return values


def _is_from_file(entry: EntryRecord) -> bool:
    return bool(entry.occurred_at_text) or entry.occurred_at is None


def _agterm(record: SessionRecord, written: Counter[str], *, is_native: bool) -> Iterator[str]:
    """Yield AgTerm's export, with an indent of two."""
    yield f'{{\n  "sessionId": {dump_json(record.key)},\n  "entries": ['
    members: dict[str, list[str]] = {}
    tokens, between = 0, "\n"
    places = itertools.count()
    for entry in _in_place(record, record.entries, is_native=is_native):
        value = entry
        if isinstance(entry, EntryRecord):
            place = next(places)
            name = entry.source_id or f"entry-{place}"
            members.setdefault(entry.summary_source_id, []).append(name)
            tokens += entry.token_count or 0
            value = _agterm_entry(entry, name)
            written["entries"] += 1
        yield between + _indented(dump_json(value, indent=2), 4)
        between = ",\n"
    rest = {
        "summaries": [_agterm_summary(summary, members) for summary in record.summaries],
        "totalTokens": tokens,
    }
    rest |= {
        name: value for name, value in record.extra.items() if name not in ("sessionId", "entries", UNKNOWN_RECORDS)
    }
    end = "]" if between == "\n" else "\n  ]"
    yield f"{end},{dump_json(respelled(rest, record.extra), indent=2)[1:]}\n"


def _indented(text: str, spaces: int) -> str:
    """Return JSON with each line indented; its strings have no line breaks."""
    return " " * spaces + text.replace("\n", "\n" + " " * spaces)


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
        found: dict[str, Any] = respelled(whole, entry.extra)
        return found
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
    values = {
        "id": summary.source_id,
        "content": summary.content,
        "originalEntryIds": summary.entry_source_ids or members.get(summary.source_id, []),
        "tokenCount": tokens,
        "originalTokenCount": original,
        "compressionRatio": round(original / tokens, 2) if tokens else 0,
        "createdAt": _zulu(summary.created_at),
        "timeRange": {"start": _zulu(summary.starts_at), "end": _zulu(summary.ends_at)},
    }
    found: dict[str, Any] = respelled(values | summary.extra, summary.extra)
    return found


def _zulu(moment: datetime | None) -> str | None:
    """Return a time as JavaScript writes it: UTC, milliseconds, Z."""
    if moment is None:
        return None
    return moment.astimezone(UTC).replace(tzinfo=None).isoformat(timespec="milliseconds") + "Z"
