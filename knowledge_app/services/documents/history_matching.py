"""Match the entries of a history file with the stored ones, so that none is stored twice."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from difflib import SequenceMatcher
from itertools import groupby

from memoryhub.lib.text.list_alignment import align

ORDERED = ("same", "grown", "pruned", "shorter")
SIMILAR = 0.75  # ratio from which an entry without a time counts as an edited one
COMPARED_CHARS = 2_000
COMPARED_ENTRIES = 50


@dataclass(frozen=True)
class LogEntry:
    """What identifies an entry. ``is_from_file``: False for entries that the hub wrote itself."""

    text_hash: str
    occurred_at: datetime | None
    is_from_file: bool = True

    @property
    def minute(self) -> datetime | None:
        """Return the time as HISTORY.md writes it, without seconds."""
        return self.occurred_at and self.occurred_at.replace(second=0, microsecond=0)


@dataclass(frozen=True)
class HistoryMatch:
    """``same``: stored index by file index. ``edited``: likewise, for entries whose text or time changed."""

    same: dict[int, int]
    edited: dict[int, int]
    new: list[int]


def match_history(
    stored: Sequence[LogEntry],
    file: Sequence[LogEntry],
    *,
    stored_texts: Callable[[Collection[int]], dict[int, str]],
    file_text: Callable[[int], str],
) -> HistoryMatch:
    """Match a file's entries with the stored ones, both in order. Matching an imported file again finds all of it.

    If the file continues or repeats the stored order, entries are matched by position, so that a repeated entry
    without a time is still new. Otherwise they are matched by text and minute; an unmatched entry between matched
    neighbours is an edited one if its time or most of its text is that of an unmatched stored entry there.
    """
    same = _by_identity(stored, file, range(len(stored)))
    edited: dict[int, int] = {}
    if len(same) < len(file):
        ordered = _by_order(stored, file)
        if ordered is None:
            edited = _edited(stored, file, same, stored_texts, file_text)
        else:
            same = ordered
    return HistoryMatch(same, edited, [i for i in range(len(file)) if i not in same and i not in edited])


def _by_identity(stored: Sequence[LogEntry], file: Sequence[LogEntry], candidates: Sequence[int]) -> dict[int, int]:
    """Match entries with the same text and minute, then those of which one has no time."""
    unused: defaultdict[str, defaultdict[datetime | None, list[int]]] = defaultdict(lambda: defaultdict(list))
    for index in reversed(candidates):  # popped in order
        unused[stored[index].text_hash][stored[index].minute].append(index)
    same: dict[int, int] = {}
    rounds: list[Callable[[LogEntry], Collection[datetime | None]]] = [
        lambda entry: [entry.minute],
        lambda entry: [] if entry.minute is None else [None],
        lambda entry: list(unused[entry.text_hash]) if entry.minute is None else [],
    ]
    for minutes in rounds:
        for place, entry in enumerate(file):
            if place not in same:
                indexes = next((rows for minute in minutes(entry) if (rows := unused[entry.text_hash][minute])), None)
                same |= {place: indexes.pop()} if indexes else {}
    return same


def _by_order(stored: Sequence[LogEntry], file: Sequence[LogEntry]) -> dict[int, int] | None:
    """Match a file that continues, trims or repeats the stored order; None if it doesn't."""
    from_files = [index for index, entry in enumerate(stored) if entry.is_from_file]
    hashes = [stored[index].text_hash for index in from_files]
    alignment = align(hashes, [entry.text_hash for entry in file], unique_hashes=False)
    if alignment.verdict not in ORDERED:
        return None
    same = {place: from_files[alignment.offset + place] for place in range(alignment.append_from)}
    if any(_differ(file[place].minute, stored[index].minute) for place, index in same.items()):
        return None
    used = set(same.values())
    unused = [index for index, entry in enumerate(stored) if index not in used and entry.minute]
    rest = [place for place in range(alignment.append_from, len(file)) if file[place].minute]
    found = _by_identity(stored, [file[place] for place in rest], unused)
    return same | {rest[place]: index for place, index in found.items()}


def _differ(first: datetime | None, second: datetime | None) -> bool:
    return first is not None and second is not None and first != second


def _edited(
    stored: Sequence[LogEntry],
    file: Sequence[LogEntry],
    same: dict[int, int],
    stored_texts: Callable[[Collection[int]], dict[int, str]],
    file_text: Callable[[int], str],
) -> dict[int, int]:
    used = set(same.values())
    edited: dict[int, int] = {}
    for places in _blocks(len(file), same):
        start, end = same.get(places[0] - 1, -1), same.get(places[-1] + 1, len(stored))
        unused = [index for index in range(start + 1, end) if index not in used]
        pairs = _same_minutes(stored, file, places, unused)
        used |= set(pairs.values())
        edited |= pairs
        untimed = [place for place in places if place not in pairs][:COMPARED_ENTRIES]
        left = [index for index in unused if index not in used][-COMPARED_ENTRIES:]
        texts = stored_texts(left) if untimed and left else {}
        for place in untimed:
            best = max(
                (index for index in texts if not _differ(file[place].minute, stored[index].minute)),
                key=lambda index: _ratio(file_text(place), texts[index]),
                default=None,
            )
            if best is not None and _ratio(file_text(place), texts[best]) >= SIMILAR:
                edited[place] = best
                used.add(best)
                del texts[best]
    return edited


def _blocks(size: int, same: dict[int, int]) -> Iterator[list[int]]:
    """Yield each run of unmatched places."""
    for is_unmatched, places in groupby(range(size), key=lambda place: place not in same):
        if is_unmatched:
            yield list(places)


def _same_minutes(
    stored: Sequence[LogEntry], file: Sequence[LogEntry], places: Sequence[int], unused: Sequence[int]
) -> dict[int, int]:
    """Pair entries of the same minute in order, if both sides have equally many."""
    by_minute: defaultdict[datetime, tuple[list[int], list[int]]] = defaultdict(lambda: ([], []))
    for place in places:
        if minute := file[place].minute:
            by_minute[minute][0].append(place)
    for index in unused:
        if minute := stored[index].minute:
            by_minute[minute][1].append(index)
    return {
        place: index
        for ours, theirs in by_minute.values()
        if len(ours) == len(theirs)
        for place, index in zip(ours, theirs, strict=True)
    }


def _ratio(first: str, second: str) -> float:
    matcher = SequenceMatcher(None, first[:COMPARED_CHARS], second[:COMPARED_CHARS], autojunk=False)
    return matcher.ratio() if matcher.quick_ratio() >= SIMILAR else 0.0
