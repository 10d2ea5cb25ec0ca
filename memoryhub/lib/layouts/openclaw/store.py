"""Read the sessions in OpenClaw's SQLite store, ``agents/<id>/agent/openclaw-agent.sqlite``."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from datetime import tzinfo
from functools import partial
from typing import Any

from memoryhub.lib.files.safe_folder import UnreadableFile
from memoryhub.lib.files.sqlite_source import Row, Store
from memoryhub.lib.layouts.agent_entries import decoded, short_text
from memoryhub.lib.layouts.jsonl import title_of
from memoryhub.lib.layouts.openclaw.events import Event, Transcript, read_events
from memoryhub.lib.layouts.problem_counts import ProblemCounts
from memoryhub.lib.layouts.records import Problem, SessionRecord
from memoryhub.lib.layouts.store_files import StoredSession
from memoryhub.lib.layouts.times import read_epoch
from memoryhub.lib.layouts.zstd import NoZstd, decompress

NEWEST_SCHEMA = 23  # of schema_meta, that this reader was tested with
MAX_EVENT_BYTES = 8 * 2**20
NODE = (
    "session_key",
    "current_session_id",
    "label",
    "display_name",
    "parent_session_key",
    "spawned_by",
    "fork_source_session_key",
    "archived_at",
    "category",
)
WINDOW = (
    "session_id",
    "session_key",
    "previous_session_id",
    "reason",
    "created_at",
    "updated_at",
    "started_at",
    "ended_at",
    "status",
    "chat_type",
    "channel",
    "account_id",
    "model_provider",
    "model",
    "parent_session_key",
    "spawned_by",
    "display_name",
)
EVENT = ("seq", "event_json", "event_zstd", "created_at")


def sessions(store: Store, path: str, problems: list[Problem], zone: tzinfo) -> Iterator[StoredSession]:
    """Yield the sessions of a store, in which each window of a conversation is one."""
    if "transcript_events" not in store.tables:
        raise UnreadableFile("has no table transcript_events, so it isn't OpenClaw's store, or a newer one")
    problems += _store_problems(store, path)
    nodes = {row["session_key"]: row for row in store.rows("session_nodes", NODE)}
    states = store.state("transcript_events", "session_id", ("seq", "created_at", "event_utf8_bytes"))
    branches = store.state("session_transcript_active_events", "session_id", ("active_position", "event_seq"))
    windows = [row for row in store.rows("session_windows", WINDOW) if isinstance(row["session_id"], str)]
    listed = {row["session_id"] for row in windows}
    windows += [_window(name) for name in states if isinstance(name, str) and name not in listed]
    epochs: Counter[Any] = Counter()
    for window in in_order(windows):
        name, key = window["session_id"], window["session_key"]
        if name in states:
            node = nodes.get(key, dict.fromkeys(NODE))
            yield StoredSession(
                name,
                f"{states[name]}/{branches.get(name)}/{window}/{node}",
                partial(_records, store, window, node, epochs[key], zone),
                read_epoch(window["updated_at"])[0],
            )
            epochs[key] += 1


def _window(session_id: str) -> Row:
    return dict.fromkeys(WINDOW) | {"session_id": session_id}


def in_order(windows: list[Row]) -> list[Row]:
    """Return the windows with each one after the one that it continues, oldest first."""
    oldest = sorted(windows, key=lambda row: (read_number(row["created_at"]), str(row["session_id"])))
    followers: defaultdict[Any, list[Row]] = defaultdict(list)
    known = {row["session_id"] for row in oldest}
    for row in oldest:
        followers[row["previous_session_id"] if row["previous_session_id"] in known else None].append(row)
    found: dict[Any, Row] = {}
    waiting = [*reversed(followers[None])]
    while waiting:
        row = waiting.pop()
        if row["session_id"] not in found:
            found[row["session_id"]] = row
            waiting += reversed(followers[row["session_id"]])
    return [*found.values(), *(row for row in oldest if row["session_id"] not in found)]


def read_number(value: Any) -> float:
    return value if isinstance(value, int | float) and not isinstance(value, bool) else 0


def _records(
    store: Store, window: Row, node: Row, epoch: int, zone: tzinfo, counts: ProblemCounts
) -> list[SessionRecord]:
    name = window["session_id"]
    active = {
        row["event_seq"]
        for row in store.rows("session_transcript_active_events", ("event_seq",), where={"session_id": name})
    }
    events = [
        Event(row["seq"], value, row["seq"] in active if active else None)
        for row in store.rows(
            "transcript_events", EVENT, where={"session_id": name}, order="seq", blobs=("event_zstd",)
        )
        if isinstance(value := _event(row, counts), dict) and isinstance(row["seq"], int)
    ]
    return session_records(read_events(name, events, counts, zone), window, node, epoch)


def _event(row: Row, counts: ProblemCounts) -> Any:
    counts.at = str(row["seq"])
    text = row["event_json"]
    if text is None and isinstance(row["event_zstd"], bytes):
        try:
            text = decompress(row["event_zstd"], MAX_EVENT_BYTES)
        except NoZstd:
            counts.add("a compressed record, which needs Python 3.14 or backports.zstd", "not read", "rejected")
            return None
        except ValueError as error:
            counts.add(f"a compressed record {error}", "not read", "rejected")
            return None
    if isinstance(text, str | bytes) and len(text) > MAX_EVENT_BYTES:
        counts.add("a record is longer than 8 MB", "skipped", "rejected")
        return None
    value = decoded(text, "a record", counts)
    if value is not None and not isinstance(value, dict):
        counts.add("a record is not an object", "skipped", "rejected")
    return value


def session_records(transcript: Transcript, window: Row, node: Row, epoch: int = 0) -> list[SessionRecord]:
    """Return a window of a conversation as a session, and again for each reset in it; none if nothing was said.

    ``epoch``: the number of windows before it.
    """
    name = str(window["session_id"])
    key = window["session_key"] if isinstance(window["session_key"], str) else f"session:{name}"
    said = (
        entry for part in transcript.parts for entry in part.entries if entry.role == "user" and not entry.is_injected
    )
    given = node["label"] or node["display_name"] or window["display_name"] or transcript.name
    title = title_of(short_text(given or next((entry.content for entry in said), ""), 1000))
    kept = {
        key: value for key, value in window.items() if value is not None and key not in ("session_key", "updated_at")
    }
    kept |= {
        name: transcript.header[name] for name in ("version", "cwd", "parentSession") if name in transcript.header
    }
    parent = node["parent_session_key"] or node["spawned_by"] or window["parent_session_key"] or window["spawned_by"]
    parts = [part for part in transcript.parts if part.entries or part.summaries]
    return [
        SessionRecord(
            key=key,
            entries=part.entries,
            summaries=part.summaries,
            title=title,
            created_at=read_epoch(window["started_at"])[0] or read_epoch(window["created_at"])[0],
            updated_at=read_epoch(window["updated_at"])[0],
            epoch=epoch + place,
            is_by_id=True,
            parent_key=parent if isinstance(parent, str) and parent != key else "",
            forked_from=short_text(node["fork_source_session_key"]),
            extra=kept,
        )
        for place, part in enumerate(parts)
    ]


def _store_problems(store: Store, path: str) -> Iterator[Problem]:
    versions = [row["schema_version"] for row in store.rows("schema_meta", ("schema_version",))]
    newest = max((version for version in versions if isinstance(version, int)), default=0)
    if newest > NEWEST_SCHEMA:
        what = f"has the schema {newest}; MemoryHub knows {NEWEST_SCHEMA}"
        yield Problem(path, None, what, "what it knows is read", "noted")
    moved = len(store.rows("session_transcript_cold_archives", ("session_id",)))
    archived = len(store.rows("session_transcript_archives", ("session_id",)))
    for count, what in ((moved, "moved to an archive"), (archived, "deleted or reset")):
        if count:
            words = "session that was" if count == 1 else "sessions that were"
            yield Problem(path, None, f"has {count:,} {words} {what} by OpenClaw", "not read", "ignored")
