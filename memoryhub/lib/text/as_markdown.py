"""Convert sessions, contexts and rows to Markdown.

Text by users and models is already Markdown and is copied as it is, or fenced if it would affect what follows (an
open fence or comment) or contains a heading like the ones generated here. Tool arguments and results are always
fenced.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo
from functools import partial

from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from markdown_it import MarkdownIt

from memoryhub.lib.errors import LimitExceeded
from memoryhub.lib.layouts.records import EntryRecord, SessionRecord, ToolCall
from memoryhub.lib.validation import parse_stored

MAX_ROWS = 10_000
UNREADABLE = object()
MAX_CHARS = 20_000_000
TOO_MANY = {
    "entries": _(
        "Too many entries for Markdown: %(count)s of at most %(most)s. Use a narrower filter or export a file."
    ),
    "messages": _(
        "Too many messages for Markdown: %(count)s of at most %(most)s. Use a narrower filter or export a file."
    ),
    "rows": _("Too many rows for Markdown: %(count)s of at most %(most)s. Use a narrower filter or export a file."),
}
_MARKUP = re.compile(r"([\\`*_{}\[\]<>#|~])")
_OWN_HEADING = re.compile(r"^ {0,3}#{1,6}\s+#\d", re.MULTILINE)
ToolResults = dict[tuple[int, int], tuple[int, int]]  # (entry, number) of a call: entries of its result and itself
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


def check_amount(rows: int, what: str = "entries") -> None:
    """Raise LimitExceeded for more than 10,000 rows. ``what``: entries, messages or rows, for the message."""
    if rows > MAX_ROWS:
        raise LimitExceeded(
            str(TOO_MANY[what]) % {"most": f"{MAX_ROWS:,}", "count": f"{rows:,}"}, code="too_much_markdown"
        )


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


def transcript(record: SessionRecord, *, originals: bool = False, zone: tzinfo = UTC) -> str:
    """Return one epoch of a session as Markdown, each turn with its position, role and time in ``zone``.

    Compressed entries are replaced by their summary, followed by the entries if ``originals``. Injected and rewound
    entries are left out. Tool results are shown with their calls. Raises LimitExceeded for more than 10,000 entries
    or 20 million characters.
    """
    check_amount(len(record.entries))
    return join_blocks([*_head(record), *_turns(record, originals=originals, zone=zone)])


def join_blocks(blocks: Sequence[str]) -> str:
    """Return blocks as one document. Raises LimitExceeded for more than 20 million characters."""
    text = _blocks(*blocks) + "\n"
    if len(text) > MAX_CHARS:
        message = gettext(
            "Too much text for Markdown: %(count)s of at most %(most)s characters. Export a file instead."
        )
        raise LimitExceeded(message % {"count": f"{len(text):,}", "most": f"{MAX_CHARS:,}"}, code="too_much_markdown")
    return text


def _head(record: SessionRecord) -> Iterator[str]:
    yield f"# {inline_text(record.title or record.key) or code(record.key)}"
    count = len(record.entries)
    epoch = f", epoch {record.epoch + 1}" if record.epoch else ""
    yield f"Session {code(record.key)}{epoch}, {count:,} {'entry' if count == 1 else 'entries'}."
    if record.summary_text:
        yield f"## Summary of what came before\n\n{prose(record.summary_text)}"


def _turns(record: SessionRecord, *, originals: bool, zone: tzinfo) -> Iterator[str]:
    summaries = {one.source_id: one for one in record.summaries}
    by_entry = [summaries.get(entry.summary_source_id) for entry in record.entries]
    said = {at for at, entry in enumerate(record.entries) if not (entry.is_injected or entry.is_rewound)}
    shown = {index for index in said if originals or by_entry[index] is None}
    results = _tool_results(record.entries)
    shown_with_call = {result for result, call in results.values() if call in shown}
    for index, replacement in enumerate(by_entry):
        if replacement and (index == 0 or replacement is not by_entry[index - 1]):
            rest = range(index, len(by_entry))
            end = next((later for later in rest if by_entry[later] is not replacement), len(by_entry))
            yield summary(replacement.content, index, end - 1)
        if index in shown - shown_with_call:
            yield _turn(record.entries, index, results, zone)


def summary(text: str, first: int, last: int) -> str:
    """Return a summary under a heading with the positions of the entries that it replaces."""
    return f"## #{first} to #{last} · Folded into a summary\n\n{prose(text)}"


def _tool_results(entries: Sequence[EntryRecord]) -> ToolResults:
    """Match tool calls with their results. Calls may share an id: the earliest unanswered one matches."""
    unanswered: dict[str, list[tuple[int, int]]] = {}
    results: ToolResults = {}
    for index, entry in enumerate(entries):
        calls = unanswered.get(entry.tool_call_id) if entry.tool_call_id else None
        if calls:
            call = calls.pop(0)
            results[call] = (index, call[0])
        for number, tool_call in enumerate(entry.tool_calls):
            unanswered.setdefault(tool_call["id"], []).append((index, number))
    return results


def _turn(entries: Sequence[EntryRecord], index: int, results: ToolResults, zone: tzinfo) -> str:
    entry = entries[index]
    kind = f" · {inline_text(entry.kind.replace('_', ' '))}" if entry.kind not in ("message", "tool_call") else ""
    at = f" · {format_time(entry.occurred_at, zone)}" if entry.occurred_at else ""
    name = f" {code(entry.name)}" if entry.name else ""
    heading = f"## #{index} · {inline_text(entry.role.capitalize())}{name}{kind}{at}"
    is_prose = entry.role in ("user", "assistant") and (
        entry.kind in ("message", "summary") or bool(entry.tool_calls)
    )
    result_of = partial(_tool_result, entries, index, results)
    return _blocks(heading, _text(entry.content, is_prose=is_prose), *_calls(entry.tool_calls, result_of))


def _text(text: str, *, is_prose: bool) -> str:
    return (prose(text) if is_prose else fenced(text)) if text else ""


def _blocks(*blocks: str) -> str:
    return "\n\n".join(block for block in blocks if block)


def _tool_result(entries: Sequence[EntryRecord], index: int, results: ToolResults, number: int) -> str:
    result = results.get((index, number))
    if result is None:
        return "Result: none."
    return f"Result (#{result[0]}):\n\n{fenced(entries[result[0]].content)}"


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
    check_amount(len(messages), "messages")
    head = f"# Context of {inline_text(key) or code(key)}\n\n{len(messages):,} messages, about {tokens:,} tokens."
    return join_blocks([head, *(_message(number, message) for number, message in enumerate(messages, start=1))])


def _message(number: int, message: Message) -> str:
    is_prose = message.role in ("user", "assistant")
    source = f" · {inline_text(message.source)}" if message.source else ""
    heading = f"## {number} · {inline_text(message.role.capitalize())}{source}"
    return _blocks(heading, _text(message.text, is_prose=is_prose), *_calls(message.calls))


def passages(title: str, rows: Sequence[Passage]) -> str:
    """Return search results as Markdown, each with a linked heading, its metadata and its text as a blockquote."""
    check_amount(len(rows), "rows")
    return join_blocks(
        [f"# {inline_text(title)}", *(_passage(number, row) for number, row in enumerate(rows, start=1))]
    )


def _passage(number: int, row: Passage) -> str:
    name = f"[{inline_text(row.title) or number}](<{row.url}>)" if row.url else inline_text(row.title)
    return _blocks(f"## {number} · {name}", inline_text(row.about), blockquote(row.text) if row.text.strip() else "")


def blockquote(text: str) -> str:
    """Return text as a blockquote, with every line marked so that nothing in it ends the quote."""
    return "\n".join(f"> {line}".rstrip() for line in text.strip("\n").split("\n"))


def grouped_list(title: str, groups: Sequence[tuple[str, Sequence[tuple[str, str]]]]) -> str:
    """Return groups of (text, metadata) pairs as headings with bullet lists."""
    check_amount(sum(len(rows) for _, rows in groups), "rows")
    blocks = [f"# {inline_text(title)}"]
    for name, rows in groups:
        items = [f"- {_item(text)}{f' ({inline_text(about)})' if about else ''}" for text, about in rows]
        blocks += [f"## {inline_text(name)}", "\n".join(items)] if items else []
    return join_blocks(blocks)


def _item(text: str) -> str:
    """Return text as one list item, with its further lines indented."""
    return "\n".join(f"  {line}" if line.strip() else "" for line in text.strip().split("\n")).strip()
