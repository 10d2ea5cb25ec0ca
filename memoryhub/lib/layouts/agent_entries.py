"""Collect the entries of an agent's session, with the reasoning and the summaries that belong to them."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from datetime import datetime, tzinfo
from typing import Any

from memoryhub.lib.layouts.entries import INVALID_TIME, MAX_ID_LENGTH
from memoryhub.lib.layouts.message_parts import part_text
from memoryhub.lib.layouts.problem_counts import ProblemCounts
from memoryhub.lib.layouts.records import REPAIRED, EntryRecord, SummaryRecord
from memoryhub.lib.layouts.times import read_moment
from memoryhub.lib.validation import BadJSON, clean_text, decode_json, json_text


class EntryList:
    """The entries of a session in order.

    ``reasoning_key``: the field of an entry's ``extra`` for private reasoning. Reasoning without an answer is kept
    with the next answer of the same turn, or else with the one before.
    """

    def __init__(self, reasoning_key: str) -> None:
        self.entries: list[EntryRecord] = []
        self.summaries: list[SummaryRecord] = []
        self._key = reasoning_key
        self._pending: list[Any] = []

    def add(self, entry: EntryRecord, reasoning: list[Any] | None = None) -> None:
        if entry.role == "assistant":
            entry = self._with_reasoning(entry, [*self._pending, *(reasoning or [])])
            self._pending = []
        elif entry.role == "user" and not entry.is_injected:
            self.finish()
        self.entries.append(entry)

    def add_reasoning(self, reasoning: list[Any]) -> None:
        """Keep reasoning that came without an answer."""
        self._pending += reasoning

    def finish(self) -> None:
        """Attach reasoning that no answer followed to the last entry that isn't the user's."""
        for index in reversed(range(len(self.entries))):
            if self._pending and self.entries[index].role in ("assistant", "tool"):
                self.entries[index] = self._with_reasoning(self.entries[index], self._pending)
                self._pending = []

    def _with_reasoning(self, entry: EntryRecord, reasoning: list[Any]) -> EntryRecord:
        if not reasoning:
            return entry
        kept = [*entry.extra.get(self._key, []), *reasoning]
        return replace(entry, extra=entry.extra | {self._key: kept})

    def fold(self, summary: SummaryRecord, kept: Collection[str] = ()) -> None:
        """Add a summary that replaces all entries before it, except those with the ids ``kept``.

        An earlier summary becomes part of it.
        """
        folded: list[str] = []
        for index, entry in enumerate(self.entries):
            if not (entry.summary_source_id or entry.is_rewound or entry.source_id in kept):
                self.entries[index] = replace(entry, summary_source_id=summary.source_id)
                folded.append(entry.source_id)
        self.summaries = [
            item if "parentId" in item.extra else replace(item, extra=item.extra | {"parentId": summary.source_id})
            for item in self.summaries
        ]
        self.summaries.append(replace(summary, entry_source_ids=folded))


def parts_of(content: Any) -> list[Any]:
    """Return the parts of a message's content, which can be a text or a list."""
    if isinstance(content, list):
        return content
    return [] if content is None else [{"type": "text", "text": content} if isinstance(content, str) else content]


def text_of(content: Any) -> str:
    return "\n".join(text for part in parts_of(content) if (text := part_text(part)))


def short_text(value: Any, limit: int = MAX_ID_LENGTH) -> str:
    """Return an id or name as text of limited length; "" for None."""
    if isinstance(value, str):
        return value[:limit]
    return "" if value is None else json_text(value)[:limit]


def time_of(counts: ProblemCounts, zone: tzinfo, *values: Any) -> tuple[datetime | None, str]:
    """Return the first of several times that is valid, and the text of an invalid one.

    A time is ISO 8601, or seconds or milliseconds since 1970.
    """
    given = [value for value in values if value is not None]
    for value in given:
        moment = read_moment(value, zone)
        if moment:
            return moment, value if isinstance(value, str) else ""
    if given:
        counts.add(INVALID_TIME, REPAIRED, "repaired")
        return None, short_text(given[0], 200)
    return None, ""


def decoded(text: Any, what: str, counts: ProblemCounts) -> Any:
    """Return the value of JSON text that a store contains; None, with a problem, if it isn't JSON."""
    if isinstance(text, bytes):
        text = text.decode("utf-8", "backslashreplace")
    if not isinstance(text, str):
        counts.add(f"{what} is not JSON text", "skipped", "rejected")
        return None
    try:
        found = decode_json(text)
    except BadJSON:
        counts.add(f"{what} is not JSON", "skipped", "rejected", clean_text(text[:2000]).encode())
        return None
    for repair in found.repairs:
        counts.add(repair, REPAIRED, "repaired")
    return found.value
