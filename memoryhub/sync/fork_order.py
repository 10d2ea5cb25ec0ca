"""Import the original of a fork before the fork, which repeats its entries."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from memoryhub.lib.layouts.records import FileRead, SessionRecord
from sessions_app.models import Session, Workspace


def originals_first(workspace: Workspace, reads: Iterable[FileRead]) -> Iterator[FileRead]:
    """Yield files in order, but those with forks of sessions that aren't known yet after the others."""
    seen: set[str] = set()
    forks: list[FileRead] = []
    for read in reads:
        if _missing_originals(workspace, read, seen):
            forks.append(read)
            continue
        seen.update(_keys(read))
        yield read
    while forks:
        read = next((each for each in forks if not _missing_originals(workspace, each, seen)), forks[0])
        forks.remove(read)
        seen.update(_keys(read))
        yield read


def _keys(read: FileRead) -> set[str]:
    return {item.key for item in read.items if isinstance(item, SessionRecord)}


def _missing_originals(workspace: Workspace, read: FileRead, seen: set[str]) -> bool:
    originals = {item.forked_from for item in read.items if isinstance(item, SessionRecord) and item.forked_from}
    unknown = originals - seen - _keys(read)
    if unknown and workspace.pk:
        known = Session.objects.filter(workspace=workspace, key__in=unknown)
        unknown -= set(known.values_list("key", flat=True))
    return bool(unknown)
