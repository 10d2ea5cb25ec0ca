"""Convert sessions, contexts and rows to Markdown.

Text by users and models is already Markdown and is copied as it is, or fenced if it would affect what follows (an
open fence or comment) or contains a heading like the ones generated here. Tool arguments and results are always
fenced.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict, deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo
from functools import partial
from itertools import chain
from typing import NamedTuple

from markdown_it import MarkdownIt

from memoryhub.lib.layouts.records import EntryRecord, SessionRecord, ToolCall
from memoryhub.lib.validation import parse_stored

UNREADABLE = object()
READ_AT_ONCE = 200  # entries
_MARKUP = re.compile(r"([\\`*_{}\[\]<>#|~])")
_OWN_HEADING = re.compile(r"^ {0,3}#{1,6}\s+#\d", re.MULTILINE)
ToolResults = dict[tuple[int, int], int]  # entry of the result by entry and number of the call
_parser = MarkdownIt("commonmark").enable("table").disable("inline")  # only blocks matter here


@dataclass(frozen=True)
class Passage:
    """A search result or row. ``about``: a line of metadata."""

    title: str
    url: str
    about: str
    text: str


@dataclass(frozen=True)
class Message:
    """A message of a context. ``source``: where its text comes from."""

    role: str
    source: str
    text: str
    calls: Sequence[ToolCall] = ()


class Shape(NamedTuple):
    """What decides where an entry is shown. ``answers``: the id of the tool call whose result it is."""

    is_said: bool
    summary_id: str
    answers: str
    calls: tuple[str, ...]


@dataclass(frozen=True)
class Entries:
    """Entries to convert: the shapes of all in order, and a function that reads those with the given numbers."""

    shapes: Iterable[Shape]
    read: Callable[[Collection[int]], Mapping[int, EntryRecord]]


@dataclass(frozen=True)
class _Outline:
    """``folds``: summary and last entry of each run of compressed entries, by its first. ``shown``: with headings."""

    count: int
    folds: dict[int, tuple[str, int]]
    shown: set[int]
    results: ToolResults


def inline_text(text: str) -> str:
    """Return text as one line with Markdown characters escaped."""
    return _MARKUP.sub(r"\\\1", " ".join(text.split()))


def code(text: str) -> str:
    """Return text as one line of inline code, delimited by more backticks than it contains."""
    line = " ".join(text.split())
    longest = max((len(run) for run in re.findall("`+", line)), default=0)
    ticks = "`" * (longest + 1)
    padding = " " if line.startswith("`") or line.endswith("`") else ""
    return f"{ticks}{padding}{line}{padding}{ticks}"


def fenced(text: str, language: str = "") -> str:
    """Return text as a fenced code block whose fence is longer than any inside it."""
    fence = "`" * (max((len(run) for run in re.findall("`{3,}", text)), default=2) + 1)
    return f"{fence}{language}\n{text}{'' if text.endswith(chr(10)) else chr(10)}{fence}"


def prose(text: str) -> str:
    """Return Markdown by a user or model unchanged, or fenced if it would affect the rest of the document."""
    text = text.strip("\n")
    if not text.strip() or (not _OWN_HEADING.search(text) and _is_self_contained(text)):
        return text
    return fenced(text)


def _is_self_contained(text: str) -> bool:
    """Return whether a heading after the text is still a heading, not part of a fence, comment or other HTML."""
    tokens = _parser.parse(f"{text}\n\n# end\n")
    last = tokens[-3:]
    is_heading = [token.type for token in last] == ["heading_open", "inline", "heading_close"] and last[0].level == 0
    return is_heading and all(token.type != "html_block" for token in tokens)


def transcript(
    record: SessionRecord, *, originals: bool = False, zone: tzinfo = UTC, entries: Entries | None = None
) -> Iterator[str]:
    """Return one epoch of a session as parts of Markdown, each turn with its position, role and time in ``zone``.

    Compressed entries are replaced by their summary, followed by the entries if ``originals``. Injected and rewound
    entries are left out. Tool results are shown with their calls. ``entries``: replace those of the record; their
    shapes are read at once, the entries a few hundred at a time.
    """
    entries = entries or Entries(
        map(_shape, record.entries), lambda numbers: {at: record.entries[at] for at in numbers}
    )
    summaries = {one.source_id: one.content for one in record.summaries}
    outline = _outline(entries.shapes, summaries, originals=originals)
    return join_blocks(chain(_head(record, outline.count), _turns(outline, summaries, entries.read, zone)))


def join_blocks(blocks: Iterable[str]) -> Iterator[str]:
    """Yield blocks, without the empty ones, as the parts of one document."""
    separator = ""
    for block in filter(None, blocks):
        yield separator + block
        separator = "\n\n"
    yield "\n"


def _head(record: SessionRecord, count: int) -> Iterator[str]:
    yield f"# {inline_text(record.title or record.key) or code(record.key)}"
    epoch = f", epoch {record.epoch + 1}" if record.epoch else ""
    yield f"Session {code(record.key)}{epoch}, {count:,} {'entry' if count == 1 else 'entries'}."
    if record.summary_text:
        yield f"## Summary of what came before\n\n{prose(record.summary_text)}"


def _shape(entry: EntryRecord) -> Shape:
    is_said = not (entry.is_injected or entry.is_rewound)
    return Shape(is_said, entry.summary_source_id, entry.tool_call_id, tuple(call["id"] for call in entry.tool_calls))


def _outline(shapes: Iterable[Shape], summaries: Collection[str], *, originals: bool) -> _Outline:
    """Match tool calls with their results. Calls may share an id: the earliest unanswered one matches."""
    folds: dict[int, tuple[str, int]] = {}
    shown: set[int] = set()
    results: ToolResults = {}
    unanswered: dict[str, deque[tuple[int, int]]] = defaultdict(deque)
    count = first = 0
    before = ""
    for index, shape in enumerate(shapes):
        folded = shape.summary_id if shape.summary_id in summaries else ""
        if folded:
            first = first if folded == before else index
            folds[first] = (folded, index)
        if shape.is_said and (originals or not folded):
            shown.add(index)
        if shape.answers and unanswered.get(shape.answers):
            results[unanswered[shape.answers].popleft()] = index
        for number, call in enumerate(shape.calls):
            unanswered[call].append((index, number))
        count, before = index + 1, folded
    with_call = {result for (call, _), result in results.items() if call in shown}
    return _Outline(count, folds, shown - with_call, results)


def _turns(
    outline: _Outline,
    summaries: Mapping[str, str],
    read: Callable[[Collection[int]], Mapping[int, EntryRecord]],
    zone: tzinfo,
) -> Iterator[str]:
    for start in range(0, outline.count, READ_AT_ONCE):
        numbers = range(start, min(start + READ_AT_ONCE, outline.count))
        entries = read(outline.shown.intersection(numbers))
        places = ((index, number) for index, entry in entries.items() for number in range(len(entry.tool_calls)))
        answers = read({outline.results[place] for place in places if place in outline.results})
        for index in numbers:
            if index in outline.folds:
                source_id, last = outline.folds[index]
                yield summary(summaries[source_id], index, last)
            if index in entries:
                result_of = partial(_tool_result, answers, outline.results, index)
                yield _turn(entries[index], index, result_of, zone)


def summary(text: str, first: int, last: int) -> str:
    """Return a summary under a heading with the positions of the entries that it replaces."""
    return f"## #{first} to #{last} · Folded into a summary\n\n{prose(text)}"


def _turn(entry: EntryRecord, index: int, result_of: Callable[[int], str], zone: tzinfo) -> str:
    kind = f" · {inline_text(entry.kind.replace('_', ' '))}" if entry.kind not in ("message", "tool_call") else ""
    at = f" · {format_time(entry.occurred_at, zone)}" if entry.occurred_at else ""
    name = f" {code(entry.name)}" if entry.name else ""
    heading = f"## #{index} · {inline_text(entry.role.capitalize())}{name}{kind}{at}"
    is_prose = entry.role in ("user", "assistant") and (
        entry.kind in ("message", "summary") or bool(entry.tool_calls)
    )
    return _blocks(heading, _text(entry.content, is_prose=is_prose), *_calls(entry.tool_calls, result_of))


def _text(text: str, *, is_prose: bool) -> str:
    return (prose(text) if is_prose else fenced(text)) if text else ""


def _blocks(*blocks: str) -> str:
    return "\n\n".join(block for block in blocks if block)


def _tool_result(answers: Mapping[int, EntryRecord], results: ToolResults, index: int, number: int) -> str:
    result = results.get((index, number))
    if result is None or result not in answers:
        return "Result: none."
    return f"Result (#{result}):\n\n{fenced(answers[result].content)}"


def _calls(calls: Sequence[ToolCall], result_of: Callable[[int], str] = lambda _number: "") -> Iterator[str]:
    """Yield each tool call with its fenced arguments, followed by ``result_of`` its number."""
    for number, call in enumerate(calls):
        text, language = _pretty(call["function"]["arguments"])
        yield f"Tool call {code(call['function']['name'])}:\n\n{fenced(text, language)}"
        yield result_of(number)


def _pretty(arguments: str) -> tuple[str, str]:
    value = parse_stored(arguments, UNREADABLE)
    return (arguments, "") if value is UNREADABLE else (json.dumps(value, ensure_ascii=False, indent=2), "json")


def format_time(at: datetime, zone: tzinfo) -> str:
    """Return a time with seconds and time zone."""
    return f"{at.astimezone(zone):%Y-%m-%d %H:%M:%S %Z}"


def context(key: str, messages: Sequence[Message], *, tokens: int) -> str:
    """Return a context as Markdown, each message with its role and source; memory and system messages are fenced."""
    head = f"# Context of {inline_text(key) or code(key)}\n\n{len(messages):,} messages, about {tokens:,} tokens."
    shown = (_message(number, message) for number, message in enumerate(messages, start=1))
    return "".join(join_blocks([head, *shown]))


def _message(number: int, message: Message) -> str:
    is_prose = message.role in ("user", "assistant")
    source = f" · {inline_text(message.source)}" if message.source else ""
    heading = f"## {number} · {inline_text(message.role.capitalize())}{source}"
    return _blocks(heading, _text(message.text, is_prose=is_prose), *_calls(message.calls))


def passages(title: str, rows: Sequence[Passage]) -> str:
    """Return search results as Markdown, each with a linked heading, its metadata and its text as a blockquote."""
    found = (_passage(number, row) for number, row in enumerate(rows, start=1))
    return "".join(join_blocks([f"# {inline_text(title)}", *found]))


def _passage(number: int, row: Passage) -> str:
    name = f"[{inline_text(row.title) or number}](<{row.url}>)" if row.url else inline_text(row.title)
    return _blocks(f"## {number} · {name}", inline_text(row.about), blockquote(row.text) if row.text.strip() else "")


def blockquote(text: str) -> str:
    """Return text as a blockquote, with every line marked so that nothing in it ends the quote."""
    return "\n".join(f"> {line}".rstrip() for line in text.strip("\n").split("\n"))


def grouped_list(title: str, groups: Iterable[tuple[str, Iterable[tuple[str, str]]]]) -> Iterator[str]:
    """Yield groups of (text, metadata) pairs as headings with bullet lists, without empty groups, in parts."""
    yield f"# {inline_text(title)}"
    for name, rows in groups:
        start = f"\n\n## {inline_text(name)}\n\n"
        for text, about in rows:
            yield f"{start}- {_item(text)}{f' ({inline_text(about)})' if about else ''}"
            start = "\n"
    yield "\n"


def _item(text: str) -> str:
    """Return text as one list item, with its further lines indented."""
    return "\n".join(f"  {line}" if line.strip() else "" for line in text.strip().split("\n")).strip()
