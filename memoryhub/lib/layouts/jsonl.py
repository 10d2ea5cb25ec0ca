"""Read files of JSON lines that a program appends to while it runs, and what is common to their records."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from memoryhub.lib.files.safe_folder import MAX_LINE_BYTES, Stream
from memoryhub.lib.layouts.documents import EXCERPT_BYTES
from memoryhub.lib.layouts.entries import rejection_reason
from memoryhub.lib.layouts.problem_counts import ProblemCounts
from memoryhub.lib.layouts.records import REPAIRED, EntryRecord, Problem
from memoryhub.lib.validation import BadJSON, Decoded, canonical_json, decode_json

MAX_LISTED = 20  # invalid lines of a file that are reported one by one
MIN_BASE64 = 256  # characters; shorter strings stay, unless their type is given
TITLE_CHARS = 80
MAX_JOINED, MAX_STARTS = 20, 20  # records in a line, and ways in which records begin
Starts = dict[tuple[str, ...], bytes]  # how a file's records begin, by their first two keys
_START = re.compile(rb'\{\s*"[^"\\]{1,40}"')
_BASE64 = re.compile(r"[A-Za-z0-9+/_\-\s]+={0,2}\s*")
_DATA_URL = re.compile(r"data:([\w.+-]+)/[^,]{0,200};base64,")


def json_lines(stream: Stream, path: str, problems: list[Problem]) -> Iterator[tuple[int, Any]]:
    """Yield ``(number, value)`` of each line that is JSON; add a problem for each one that isn't.

    An invalid last line without its newline is only noted: the program may be writing it. A line can have several
    records, if the program was killed while it wrote one and then went on.
    """
    repairs = ProblemCounts(path)
    bad: list[Problem] = []
    starts: Starts = {}
    last = 0
    for number, raw in stream.lines():
        if raw is None:
            bad.append(Problem(path, number, f"the line is longer than {MAX_LINE_BYTES // 2**20} MB", "", "rejected"))
            last = number
        elif raw.strip():
            records = _joined_records(raw, starts)
            last = number if len(records) == 1 else 0
            for record in records:
                if isinstance(record, Decoded):
                    for repair in record.repairs:
                        repairs.add(repair, REPAIRED, "repaired")
                    yield number, record.value
                else:
                    bad.append(Problem(path, number, record[1], "", "rejected", record[0][:EXCERPT_BYTES]))
    problems += _line_problems(path, bad, last if stream.is_cut else 0)
    problems += repairs.problems()


def _joined_records(line: bytes, starts: Starts) -> list[Decoded | tuple[bytes, str]]:
    """Return the records of a line in order; for a part that isn't JSON, its bytes and the reason.

    ``starts``: that of a valid line is added.
    """
    found = _decoded(line)
    if isinstance(found, Decoded):
        if len(starts) < MAX_STARTS and (match := _START.match(line)):
            starts.setdefault(_first_keys(found.value), match[0])
        return [found]
    after: list[Decoded | tuple[bytes, str]] = []
    while not isinstance(found, Decoded) and len(after) < MAX_JOINED and (place := _last_record(line, starts)):
        after.insert(0, _decoded(line[place:]))
        line = line[:place]
        found = _decoded(line)
    return [found, *after]


def _last_record(line: bytes, starts: Starts) -> int:
    """Return where the last record of a line begins, 0 if it has none besides the first."""
    places = {match.start() for start in set(starts.values()) for match in re.finditer(re.escape(start), line)}
    ends_with_record = (place for place in sorted(places)[::-1][:MAX_JOINED] if _is_record(line[place:], starts))
    return next(ends_with_record, 0)


def _is_record(raw: bytes, starts: Starts) -> bool:
    """Tell whether bytes are a record, not the last part of one that is incomplete."""
    found = _decoded(raw)
    return isinstance(found, Decoded) and _first_keys(found.value) in starts


def _first_keys(record: dict[str, Any]) -> tuple[str, ...]:
    return tuple(record)[:2]


def _decoded(raw: bytes) -> Decoded | tuple[bytes, str]:
    try:
        return decode_json(raw.decode("utf-8"))
    except (UnicodeDecodeError, BadJSON) as error:
        return raw, rejection_reason(error)


def _line_problems(path: str, bad: list[Problem], last: int) -> Iterator[Problem]:
    if bad and bad[-1].line == last and bad[-1].raw:
        what = f"the last line is incomplete; the program may be writing it ({bad[-1].what})"
        yield replace(bad.pop(), what=what, action="skipped until the next import", outcome="noted")
    for problem in bad[:MAX_LISTED]:
        yield replace(problem, action="skipped")
    if len(bad) > MAX_LISTED:
        yield Problem(path, None, f"{len(bad) - MAX_LISTED:,} more lines can't be read", "skipped", "rejected")


def with_hash(entry: EntryRecord) -> EntryRecord:
    """Return an entry with the hash of all that it shows, so that a record that came again with more is noticed."""
    shown = [entry.kind, entry.role, entry.content, entry.name, entry.tool_call_id, entry.tool_calls, entry.extra]
    return replace(entry, source_hash=hashlib.sha256(canonical_json(shown).encode()).hexdigest())


def title_of(text: str) -> str:
    """Return the start of a first message, as a session's title."""
    line = " ".join(text[: 4 * TITLE_CHARS].split())
    return line if len(line) <= TITLE_CHARS else f"{line[: TITLE_CHARS - 1]}…"


def without_binary(value: Any, kind: str = "") -> Any:
    """Return a JSON value with base64 data replaced by text such as ``[image, 12,345 bytes]``.

    ``kind``: the media type of the object that contains the value, if it has one.
    """
    if isinstance(value, str):
        match = _DATA_URL.match(value)
        return placeholder(match[1], value[match.end() :]) if match else value
    if isinstance(value, list):
        return [without_binary(item) for item in value]
    if not isinstance(value, dict):
        return value
    kinds = [value.get(name) for name in ("mimeType", "media_type", "mime", "mime_type")]
    media = next((item for item in kinds if isinstance(item, str)), kind)
    return {
        name: placeholder(media, item)
        if name in ("data", "base64") and _is_base64(item, media)
        else without_binary(item, media)
        for name, item in value.items()
    }


def placeholder(media_type: str, data: str) -> str:
    """Return the text that stands for base64 data."""
    kind = "image" if media_type.startswith("image") else "audio" if media_type.startswith("audio") else "file"
    return f"[{kind}, {max(len(data.rstrip().rstrip('=')) * 3 // 4, 0):,} bytes]"


def _is_base64(value: Any, media_type: str) -> bool:
    return (
        isinstance(value, str)
        and bool(media_type or len(value) >= MIN_BASE64)
        and _BASE64.fullmatch(value) is not None
    )
