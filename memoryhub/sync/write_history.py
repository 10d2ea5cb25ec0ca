"""Write history records in the agents' own formats (formats.md sections 1 to 3)."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime, tzinfo
from typing import Any

from memoryhub.lib.json_numbers import dump_json, respelled
from memoryhub.lib.layouts.documents import one_entry
from memoryhub.lib.layouts.grip import ARCHIVE, escape_times
from memoryhub.lib.layouts.records import HistoryRecord, text_hash
from memoryhub.lib.layouts.write import unknown_records

_NANOBOT_PREFIX = re.compile(r"\[\d{4}-\d\d-\d\d(?:[ T]\d\d:\d\d(?::\d\d(?:\.\d+)?)?)?\]")
_GRIP_PREFIX = re.compile(r"\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC\]")
_JOURNAL_TIME = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d")


def nanobot_log(entries: Iterable[HistoryRecord], zone: tzinfo) -> Iterator[str]:
    """Yield HISTORY.md as nanobot 0.1 appends to it: an entry, a blank line. Times are in ``zone``, in minutes."""
    for entry in entries:
        prefix = entry.occurred_at_text
        if not _NANOBOT_PREFIX.fullmatch(prefix):
            prefix = f"[{_minute(entry.occurred_at, zone)}]" if entry.occurred_at else prefix
        yield one_entry(prefix, entry.content) + "\n\n"


def nanobot_journal(
    entries: Iterable[HistoryRecord], zone: tzinfo, last: list[int], extra: Mapping[str, Any]
) -> Iterator[str]:
    """Yield nanobot 0.3's history.jsonl. ``last`` receives the cursor of the last entry.

    An entry keeps its cursor if that is greater than the previous one; otherwise it gets the next. An unknown time is
    null. ``extra``: of the file (see ``HistoryLog``); its unknown records follow the entries that they followed.
    """
    cursor = 0
    unknown: defaultdict[Any, list[Any]] = defaultdict(list)
    for place, value in unknown_records(extra):
        unknown[place].append(value)
    yield from _lines(unknown.pop("", []))
    for entry in entries:
        own = entry.extra.get("cursor")
        cursor = own if type(own) is int and own > cursor else cursor + 1
        time: str | None = entry.occurred_at_text
        if not _JOURNAL_TIME.fullmatch(entry.occurred_at_text):
            time = _minute(entry.occurred_at, zone) if entry.occurred_at else None
        row: dict[str, Any] = {"cursor": cursor, "timestamp": time, "content": entry.content}
        if entry.session_key:
            row["session_key"] = entry.session_key
        row |= {name: value for name, value in entry.extra.items() if name != "cursor" and not row.get(name)}
        last[:] = [cursor]
        yield from _lines([respelled(row, entry.extra)])
        if unknown:
            yield from _lines(unknown.pop(text_hash(entry.content), []))
    for values in unknown.values():
        yield from _lines(values)


def _lines(values: Iterable[Any]) -> Iterator[str]:
    return (dump_json(value) + "\n" for value in values)


def grip_log(entries: Iterable[HistoryRecord], fallback: datetime) -> Iterator[tuple[str, str]]:
    """Yield ``(file name, entry)`` of Grip's log; entries from an archive stay in it.

    Grip identifies an entry by its time. An entry without one gets that of the previous entry, or ``fallback``.
    """
    before = _second(fallback)
    for entry in entries:
        prefix = entry.occurred_at_text
        if not _GRIP_PREFIX.fullmatch(prefix):
            prefix = _second(entry.occurred_at) if entry.occurred_at else before
        before = prefix
        name = entry.file.rpartition("/")[2]
        is_archive = entry.is_archived and ARCHIVE.fullmatch(name)
        yield name if is_archive else "HISTORY.md", f"{prefix} {escape_times(entry.content)}\n"


def _minute(moment: datetime, zone: tzinfo) -> str:
    return f"{moment.astimezone(zone):%Y-%m-%d %H:%M}"


def _second(moment: datetime) -> str:
    return f"[{moment.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC]"
