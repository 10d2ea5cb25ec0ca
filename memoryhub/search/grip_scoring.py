"""Grip's own searches of MEMORY.md and HISTORY.md, with exactly its results (formats.md section 3). Pure.

Words weigh by term frequency times inverse document frequency, a line is a document. Scores are computed step by step
as Grip does, so that lines which score alike to the last bit stay in the order of the file.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

DEFAULT_DECAY = 0.001  # of a history line's score, per hour
LEAST_CHARS = 3  # of a word; Grip's stop words of one and two letters fall with them
_COMMON = """
about all also and any been but can could did does each every for from had has have her here him his how its just may
not our out should some than that the their them then there these they this those too very was were what when where
which who will with would you your she
"""
STOP_WORDS = frozenset(_COMMON.split())
HEADING = "# Conversation History Log\n\nSearchable summary of past conversations.\n"  # of a HISTORY.md never rotated
_WORD = re.compile(r"[a-z0-9_]+")
_STAMP = re.compile(r"\[(\d{4}-\d{2}-\d{2} \d{2}:\d{2}:\d{2}) UTC\]")


@dataclass(frozen=True)
class Hit:
    """A matching line: its index among those searched, its text, and its score (None: it just contains the query)."""

    index: int
    line: str
    score: float | None


@dataclass(frozen=True)
class _Counted:
    """A line with words of the query: its place, how often it has each, and how many words it has in all."""

    place: int
    counts: dict[str, int]
    word_count: int


def tokens_of(text: str) -> list[str]:
    """Return the words that Grip searches by, in order, repeats included: ASCII, of three characters and more."""
    return [word for word in _WORD.findall(text.lower()) if len(word) >= LEAST_CHARS and word not in STOP_WORDS]


def memory_lines(text: str) -> list[tuple[int, str]]:
    """Return what Grip searches of MEMORY.md: lines without the space round them, and their numbers from 1.

    A number counts ends of line only, as facts do; Grip also cuts at rarer separators, so two may share one.
    """
    pieces = ((number, piece) for number, line in enumerate(text.split("\n"), 1) for piece in line.splitlines())
    return [(number, piece.strip()) for number, piece in pieces if piece.strip()]


def history_lines(text: str) -> list[str]:
    """Return the lines of HISTORY.md that Grip searches: all that aren't blank, unchanged."""
    return [line for line in text.splitlines() if line.strip()]


def history_text(content: str, *, occurred_at: datetime | None, written: str) -> str:
    """Return a history entry as Grip writes it: ``[YYYY-MM-DD HH:MM:SS UTC] content``.

    ``written``: its time as a file had it; with brackets it stands as it was. Lines of a log end with ``\\n``, which
    isn't part of this.
    """
    if written.startswith("["):
        prefix = f"{written} "
    elif occurred_at is not None:
        prefix = f"[{occurred_at.astimezone(UTC).replace(tzinfo=None).isoformat(' ', 'seconds')} UTC] "
    else:
        prefix = f"[{written}] " if written else ""
    return prefix + content.rstrip()


def log_opening(byte_count: int, archived: str) -> str:
    """Return the text of a HISTORY.md before its first entry, recognised by its size in bytes.

    That is Grip's heading, or, once older lines went into an archive, the end of the entry that this cut in two.
    ``archived``: the last archived entry as ``history_text``, "" where there is none. "" where the bytes fit neither.
    """
    if not archived:
        return HEADING if byte_count == len(HEADING) else ""
    raw = f"{archived}\n".encode()
    start = len(raw) - byte_count
    return raw[start:].decode() if 0 < start < len(raw) and raw[start - 1 : start] == b"\n" else ""


def search_lines(
    lines: Sequence[str],
    query: str,
    *,
    limit: int,
    category: str = "",
    decay: float = 0.0,
    now: datetime | None = None,
    first_without_words: bool = False,
) -> list[Hit]:
    """Return the lines that Grip finds, at most ``limit``, best first, equals in order.

    A query of at most one word finds the lines that contain the whole of it, in any case, in order. ``category``:
    only lines that begin with ``- [category]`` count. ``decay``: per hour, a line's score is taken times
    ``1 / (1 + hours * decay)`` for its age at ``now``, where it begins with a time. ``first_without_words``: a query
    without any word finds the first lines, as in MEMORY.md. Raises ValueError for a decay without ``now``.
    """
    places = [place for place, line in enumerate(lines) if not category or line.startswith(f"- [{category}]")]
    words = tokens_of(query)
    if len(words) > 1:
        return _rank(lines, places, words, decay=decay, now=now)[: max(0, limit)]
    if words or not first_without_words:
        sought = query.lower()
        places = [place for place in places if sought in lines[place].lower()]
    return [Hit(place, lines[place], None) for place in places[: max(0, limit)]]


def _rank(
    lines: Sequence[str], places: Sequence[int], words: Sequence[str], *, decay: float, now: datetime | None
) -> list[Hit]:
    if decay > 0 and now is None:
        raise ValueError("a decay needs the time now")
    found = _count(lines, places, words)
    frequency = Counter(word for line in found for word in line.counts)
    rarity = {word: math.log((len(places) + 1) / (frequency[word] + 1)) + 1.0 for word in words}
    hits = []
    for counted in found:
        score = 0.0
        for word in words:  # added one by one: newer Pythons' sum() rounds otherwise
            if word in counted.counts:
                score += counted.counts[word] / counted.word_count * rarity[word]
        line = lines[counted.place]
        score *= _freshness(line, now, decay) if now is not None and decay > 0 else 1.0
        if score > 0:
            hits.append((score, Hit(counted.place, line, score)))
    return [hit for _, hit in sorted(hits, key=lambda pair: pair[0], reverse=True)]


def _count(lines: Sequence[str], places: Sequence[int], words: Sequence[str]) -> list[_Counted]:
    """Count the words of the lines that have any of the query's; most lines don't even hold the letters."""
    wanted = set(words)
    found = []
    for place in places:
        lowered = lines[place].lower()
        if any(word in lowered for word in wanted):
            tokens = tokens_of(lowered)
            if counts := Counter(token for token in tokens if token in wanted):
                found.append(_Counted(place, counts, len(tokens)))
    return found


def _freshness(line: str, now: datetime, decay: float) -> float:
    """Return by how much age lowers a score. Negative for a line of the far future: Grip leaves such out."""
    stamp = _STAMP.match(line)
    if not stamp:
        return 1.0
    try:
        written_at = datetime.strptime(stamp.group(1), "%Y-%m-%d %H:%M:%S").replace(tzinfo=UTC)
    except ValueError:
        return 1.0
    slowing = 1.0 + (now - written_at).total_seconds() / 3600 * decay
    return 1.0 / slowing if slowing else -1.0  # Grip divides by nought here and stops
