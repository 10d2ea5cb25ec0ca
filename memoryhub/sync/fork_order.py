"""Import the original of a fork before the fork, which repeats its entries."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from memoryhub.lib.layouts.records import FileRead, SessionRecord
from sessions_app.models import Session, Workspace

MAX_WAITING = 50  # forks kept in memory


def originals_first(workspace: Workspace, reads: Iterable[FileRead]) -> Iterator[FileRead]:
    """Yield files in order, but those with forks of sessions that aren't known yet after their originals.

    Forks whose originals don't come follow at the end, or earlier if there are more than MAX_WAITING.
    """
    known: set[str] = set()
    waiting: list[FileRead] = []
    for read in reads:
        known |= _stored(workspace, _originals(read) - known)
        waiting.append(read)
        if len(waiting) > MAX_WAITING:
            known |= _originals(waiting[0])
        yield from _ready(waiting, known)
    while waiting:
        known |= _originals(waiting[0])
        yield from _ready(waiting, known)


def _ready(waiting: list[FileRead], known: set[str]) -> Iterator[FileRead]:
    """Remove and yield the files whose originals are known, and add their sessions to ``known``."""
    place = 0
    while place < len(waiting):
        if _originals(waiting[place]) <= known:
            read = waiting.pop(place)
            known |= {item.key for item in _sessions(read)}
            yield read
            place = 0
        else:
            place += 1


def _sessions(read: FileRead) -> list[SessionRecord]:
    return [item for item in read.items if isinstance(item, SessionRecord)]


def _originals(read: FileRead) -> set[str]:
    """Return the keys of the sessions in other files of which a file has forks."""
    sessions = _sessions(read)
    return {one.forked_from for one in sessions if one.forked_from} - {one.key for one in sessions}


def _stored(workspace: Workspace, keys: set[str]) -> set[str]:
    if not keys or workspace.pk is None:
        return set()
    return set(Session.objects.filter(workspace=workspace, key__in=keys).values_list("key", flat=True))
