"""Read a store of several sessions, such as an SQLite database, as one FileRead per session.

A session's path is that of its store, ``#``, and the session's id. Sessions that haven't changed since the last read
are skipped; nothing of an unchanged store is read.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypeVar

from memoryhub.lib.files.safe_folder import FileInfo, Folder, UnreadableFile
from memoryhub.lib.files.sqlite_source import Store, open_store, store_stamp
from memoryhub.lib.layouts.documents import unreadable_file
from memoryhub.lib.layouts.message_parts import MAX_OWN_ID
from memoryhub.lib.layouts.problem_counts import ProblemCounts
from memoryhub.lib.layouts.records import FileRead, Problem, SessionRecord
from memoryhub.lib.text_caches import keeps_texts
from memoryhub.lib.validation import brief, clean_text, visible_line

T = TypeVar("T")
CONVERTED = "read as UTF-8, with other bytes as \\xNN"
MAX_COMPUTED = 1_000  # stores; each import of an archive reads its own copy
_computed: dict[str, tuple[str, Any]] = {}  # stamps and values of ``from_store``, by absolute path
keeps_texts(_computed.clear)


@dataclass(frozen=True)
class StoredSession:
    """A session of a store. ``state``: a text that changes with the session.

    ``read`` returns its records, none if it has no messages, and adds problems to its argument.
    """

    id: str
    state: str
    read: Callable[[ProblemCounts], list[SessionRecord]]
    changed_at: datetime | None = None


def read_store(
    folder: Folder, path: str, sessions: Callable[[Store, list[Problem]], Iterator[StoredSession]]
) -> Iterator[FileRead]:
    """Yield each session, then the store itself: its stamp is recorded only when all its sessions are.

    ``sessions`` adds problems that concern the whole store to its second argument.
    """
    stamp = store_stamp(folder, path)
    if stamp and folder.is_unchanged(path, stamp):
        yield from _known_sessions(folder, path)
        yield FileRead(path, "session", None, is_skipped=True)
        return
    problems: list[Problem] = []
    try:
        with open_store(folder, path) as store:
            for session in sessions(store, problems):
                yield _read_session(folder, path, session, store)
            problems += _converted(path, store.converted)
            yield FileRead(path, "session", store.info, problems=problems, is_store=True)
    except UnreadableFile as error:
        yield from _known_sessions(folder, path)
        yield unreadable_file(path, "session", error)


def from_store(folder: Folder, path: str, compute: Callable[[Store], T], default: T) -> T:
    """Return a value computed from a store, or ``default`` if it can't be read.

    The store is opened again only after it has changed, since pages ask for lists of projects often.
    """
    place, stamp = str(folder.path / path), store_stamp(folder, path)
    known = _computed.get(place)
    if known is not None and stamp and known[0] == stamp:
        return known[1]  # type: ignore[no-any-return]
    try:
        with open_store(folder, path) as store:
            value = compute(store)
    except UnreadableFile:
        return default
    if len(_computed) >= MAX_COMPUTED:
        _computed.clear()
    _computed[place] = (stamp, value)
    return value


def _known_sessions(folder: Folder, path: str) -> Iterator[FileRead]:
    for known in folder.known_paths(f"{path}#"):
        yield FileRead(known, "session", None, is_skipped=True)


def has_usable_id(name: Any) -> bool:
    return isinstance(name, str) and 0 < len(name) <= MAX_OWN_ID


def unread_sessions(path: str, listed: Collection[Any], spoken: Collection[Any]) -> list[Problem]:
    """Return what to report about sessions that aren't read. ``spoken``: the ids of those that have messages."""
    counts = ProblemCounts(path)
    for name in spoken:
        if name not in listed:
            counts.add("messages of a session that isn't there", "skipped", "rejected")
        elif not has_usable_id(name):
            counts.add(f"a session has an unusable id: {brief(name)}", "skipped", "rejected")
    return counts.problems()


def session_path(path: str, session_id: str) -> str:
    return f"{path}#{visible_line(clean_text(session_id))}"


def _read_session(folder: Folder, path: str, session: StoredSession, store: Store) -> FileRead:
    place = session_path(path, session.id)
    stamp = hashlib.sha256(session.state.encode("utf-8", "backslashreplace")).hexdigest()
    if folder.is_unchanged(place, stamp):
        return FileRead(place, "session", None, is_skipped=True)
    counts, before = ProblemCounts(place), Counter(store.converted)
    records = session.read(counts)
    problems = counts.problems() + _converted(place, store.converted - before)
    store.converted = before
    changed_ns = int(session.changed_at.timestamp() * 1e9) if session.changed_at else 0
    info = FileInfo(0, changed_ns, stamp, stamp)
    return FileRead(place, "session", info, [*records], problems)


def _converted(path: str, converted: Counter[str]) -> list[Problem]:
    """Return what to report about values that aren't text where texts are expected."""
    counts = ProblemCounts(path)
    for column, count in sorted((+converted).items()):
        counts.add(f"{brief(column)} has bytes that aren't text", CONVERTED, "repaired", count=count)
    return counts.problems()
