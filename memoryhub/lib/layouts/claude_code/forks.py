"""Find out which of Claude Code's transcripts are forks of others.

A fork is a new file that repeats the records of another one with their ids, either from the first record or from a
compaction, and goes on. The program doesn't write which file they come from.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from memoryhub.lib.files.safe_folder import MAX_LINES_FILE_BYTES, Folder, Stream, UnreadableFile
from memoryhub.lib.layouts.message_parts import own_id
from memoryhub.lib.layouts.times import read_moment
from memoryhub.lib.validation import BadJSON, decode_json

HEAD_LINES = 50
TREE_TYPES = ("user", "assistant", "system", "attachment")
_UUID = re.compile(rb'"uuid": ?"([^"\\]{1,64})"')


@dataclass(frozen=True)
class Head:
    """What the first lines of a transcript say.

    ``first_id``, ``first_time``: of the first record of the conversation. ``opened_at``: of the first line before it
    that has a time. ``titles``: of sessions, by the id of their last record.
    """

    is_transcript: bool = False
    first_id: str = ""
    first_time: datetime | None = None
    opened_at: datetime | None = None
    is_after_compaction: bool = False
    cwd: str = ""
    titles: dict[str, str] = field(default_factory=dict)

    @property
    def started(self) -> datetime | None:
        return self.opened_at or self.first_time

    @property
    def may_be_fork(self) -> bool:
        is_later = self.opened_at is None or self.first_time is None or self.opened_at > self.first_time
        return bool(self.first_id) and (is_later or self.is_after_compaction)


def head(folder: Folder, path: str) -> Head:
    """Return what the first lines of a file say; an empty Head if it can't be read."""
    try:
        return folder.read(path, _read_head, limit=MAX_LINES_FILE_BYTES, even_if_unchanged=True, no_wait=True)[0]
    except UnreadableFile:
        return Head()


def _read_head(stream: Stream) -> Head:
    is_transcript, opened_at, titles = False, None, dict[str, str]()
    for raw in stream.head().split(b"\n")[:HEAD_LINES]:
        try:
            record = decode_json(raw.decode("utf-8", "replace")).value
        except BadJSON:
            continue
        if not isinstance(record, dict) or not isinstance(record.get("type"), str):
            continue
        is_transcript = is_transcript or "sessionId" in record or "leafUuid" in record
        if record["type"] == "summary" and own_id(record.get("leafUuid")) and isinstance(record.get("summary"), str):
            titles[record["leafUuid"]] = record["summary"]
        if record["type"] in TREE_TYPES and own_id(record.get("uuid")):
            return _head_of(record, opened_at, titles)
        opened_at = opened_at or _time(record)
    return Head(is_transcript, opened_at=opened_at, titles=titles)


def _head_of(record: dict[str, Any], opened_at: datetime | None, titles: dict[str, str]) -> Head:
    cwd = record.get("cwd")
    return Head(
        is_transcript=True,
        first_id=record["uuid"],
        first_time=read_moment(record.get("timestamp"), UTC),
        opened_at=opened_at,
        is_after_compaction=record.get("subtype") == "compact_boundary",
        cwd=cwd if isinstance(cwd, str) else "",
        titles=titles,
    )


def _time(record: dict[str, Any]) -> datetime | None:
    snapshot = record.get("snapshot")
    inner = snapshot.get("timestamp") if isinstance(snapshot, dict) else None
    return read_moment(record.get("timestamp") or inner, UTC)


class Family:
    """The transcripts of a project, and which of them others were forked from.

    Files are only compared if one that changed looks like a fork.
    """

    def __init__(self, folder: Folder, paths: list[str]) -> None:
        self._folder = folder
        self._paths = paths
        self._heads: dict[str, Head] = {}
        self._ids: dict[str, set[bytes]] = {}

    def head(self, path: str) -> Head:
        if path not in self._heads:
            self._heads[path] = head(self._folder, path)
        return self._heads[path]

    def in_order(self) -> list[str]:
        """Return the files so that each one comes after those that it can be a fork of."""
        changed = [path for path in self._paths if not self._folder.is_unchanged(path)]
        if not any(self.head(path).may_be_fork for path in changed):
            return self._paths
        return sorted(self._paths, key=self._age)

    def _age(self, path: str) -> tuple[bool, datetime, str]:
        found = self.head(path)
        is_copy = found.may_be_fork and found.opened_at is not None
        return is_copy, found.started or datetime.max.replace(tzinfo=UTC), path

    def titles(self) -> dict[str, str]:
        """Return titles by the id of the last record, from the files whose heads were read."""
        return {leaf: title for found in self._heads.values() for leaf, title in found.titles.items()}

    def parent(self, path: str) -> str:
        """Return the file that another one was forked from: of those before it, the one with most of its records."""
        own = self.head(path)
        if not own.may_be_fork:
            return ""
        ordered = sorted(self._paths, key=self._age)
        before = ordered[: ordered.index(path)]
        related = [other for other in before if self.head(other).first_id == own.first_id]
        if own.is_after_compaction or not related:
            related = [other for other in before if own.first_id.encode() in self._record_ids(other)]
        shared = [(len(self._record_ids(other) & self._record_ids(path)), other) for other in related]
        most = max((count for count, _ in shared), default=0)
        return next((other for count, other in shared if count == most), "")

    def _record_ids(self, path: str) -> set[bytes]:
        if path not in self._ids:
            try:
                self._ids[path] = self._folder.read(
                    path, _record_ids, limit=MAX_LINES_FILE_BYTES, even_if_unchanged=True, no_wait=True
                )[0]
            except UnreadableFile:
                self._ids[path] = set()
        return self._ids[path]


def _record_ids(stream: Stream) -> set[bytes]:
    found: set[bytes] = set()
    for _, line in stream.lines():
        found.update(_UUID.findall(line or b""))
    return found
