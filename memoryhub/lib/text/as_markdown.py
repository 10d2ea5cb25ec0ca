"""What the hub keeps, as Markdown that people paste elsewhere: pure text, no database.

What people and models said stands as it was written, since that is Markdown already. Where it would run on into what
follows (an open fence, an open comment) or reads like one of the headings made here, it stands in a fence instead;
what tools got and gave always does.
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

from memoryhub.lib.errors import MemoryHubError
from memoryhub.lib.layouts.records import EntryRecord, SessionRecord, ToolCall

MOST_ROWS = 10_000
MOST_CHARS = 20_000_000
TOO_MANY = {
    "entries": _(
        "Markdown is made of at most %(most)s entries, and these are %(count)s. "
        "Narrow them down, or export a file instead."
    ),
    "messages": _(
        "Markdown is made of at most %(most)s messages, and these are %(count)s. "
        "Narrow them down, or export a file instead."
    ),
    "rows": _(
        "Markdown is made of at most %(most)s rows, and these are %(count)s. "
        "Narrow them down, or export a file instead."
    ),
}
_SPECIAL = re.compile(r"([\\`*_{}\[\]<>#|~])")
_OWN_HEADING = re.compile(r"^ {0,3}#{1,6}\s+#\d", re.MULTILINE)
Answers = dict[tuple[int, int], tuple[int, int]]
_parser = MarkdownIt("commonmark").enable("table").disable("inline")  # which blocks there are is all that is asked


class TooMuchMarkdown(MemoryHubError):
    code = "too_much_markdown"


@dataclass(frozen=True)
class Passage:
    """One result or row: its title, where it leads, what to say about it, and its text."""

    title: str
    url: str
    about: str
    text: str


@dataclass(frozen=True)
class Part:
    """One message of a context: whose it is, where it comes from, and its text and tool calls."""

    role: str
    source: str
    text: str
    calls: Sequence[ToolCall] = ()


def check_amount(rows: int, what: str = "entries") -> None:
    """Raise TooMuchMarkdown for more than 10,000 rows. ``what`` they are: entries, messages or rows."""
    if rows > MOST_ROWS:
        raise TooMuchMarkdown(str(TOO_MANY[what]) % {"most": f"{MOST_ROWS:,}", "count": f"{rows:,}"})


def plain(text: str) -> str:
    """Return text as one line in which nothing is markup."""
    return _SPECIAL.sub(r"\\\1", " ".join(text.split()))


def code(text: str) -> str:
    """Return text as one line of inline code, whatever backticks it holds."""
    line = " ".join(text.split())
    longest = max((len(run) for run in re.findall("`+", line)), default=0)
    ticks = "`" * (longest + 1)
    padding = " " if line.startswith("`") or line.endswith("`") else ""
    return f"{ticks}{padding}{line}{padding}{ticks}"


def fenced(text: str, language: str = "") -> str:
    """Return text in a fence that is longer than any inside it."""
    fence = "`" * (max((len(run) for run in re.findall("`{3,}", text)), default=2) + 1)
    return f"{fence}{language}\n{text}{'' if text.endswith(chr(10)) else chr(10)}{fence}"


def said(text: str) -> str:
    """Return what somebody said as it stands, or in a fence where it would change how the rest is read."""
    text = text.strip("\n")
    if not text.strip() or (not _OWN_HEADING.search(text) and _ends_by_itself(text)):
        return text
    return fenced(text)


def _ends_by_itself(text: str) -> bool:
    """Tell whether a heading after a text is still a heading: no fence, comment or other HTML swallows it."""
    tokens = _parser.parse(f"{text}\n\n# end\n")
    last = tokens[-3:]
    is_heading = [token.type for token in last] == ["heading_open", "inline", "heading_close"] and last[0].level == 0
    return is_heading and all(token.type != "html_block" for token in tokens)


def transcript(record: SessionRecord, *, originals: bool = False, zone: tzinfo = UTC) -> str:
    """Return one epoch of a session as Markdown: what it is, then each turn with its position, speaker and time.

    A folded stretch is its summary, with ``originals`` followed by its turns. A tool result stands with its call.
    Times are in ``zone``. Raises TooMuchMarkdown beyond 10,000 entries or 20 million characters.
    """
    check_amount(len(record.entries))
    return joined([*_head(record), *_turns(record, originals=originals, zone=zone)])


def joined(blocks: Sequence[str]) -> str:
    """Return blocks as one text. Raises TooMuchMarkdown beyond 20 million characters."""
    text = _blocks(*blocks) + "\n"
    if len(text) > MOST_CHARS:
        words = gettext(
            "This would be %(count)s characters of Markdown; the most is %(most)s. Export a file instead."
        )
        raise TooMuchMarkdown(words % {"count": f"{len(text):,}", "most": f"{MOST_CHARS:,}"})
    return text


def _head(record: SessionRecord) -> Iterator[str]:
    yield f"# {plain(record.title or record.key) or code(record.key)}"
    count = len(record.entries)
    epoch = f", epoch {record.epoch + 1}" if record.epoch else ""
    yield f"Session {code(record.key)}{epoch}, {count:,} {'entry' if count == 1 else 'entries'}."
    if record.summary_text:
        yield f"## Summary of what came before\n\n{said(record.summary_text)}"


def _turns(record: SessionRecord, *, originals: bool, zone: tzinfo) -> Iterator[str]:
    summaries = {one.source_id: one for one in record.summaries}
    folds = [summaries.get(entry.summary_source_id) for entry in record.entries]
    shown = {place for place, fold in enumerate(folds) if originals or fold is None}
    answers = _answers(record.entries)
    beside = {result for result, call in answers.values() if call in shown}
    alone = shown - beside
    for place, fold in enumerate(folds):
        if fold and (place == 0 or fold is not folds[place - 1]):
            end = next((later for later in range(place, len(folds)) if folds[later] is not fold), len(folds))
            yield summary(fold.content, place, end - 1)
        if place in alone:
            yield _turn(record.entries, place, answers, zone)


def summary(text: str, first: int, last: int) -> str:
    """Return a summary under the heading that says which entries it stands for."""
    return f"## #{first} to #{last} · Folded into a summary\n\n{said(text)}"


def _answers(entries: Sequence[EntryRecord]) -> Answers:
    """Match calls, (position, number), with their results: (position of the result, of the call). Ids come twice."""
    waiting: dict[str, list[tuple[int, int]]] = {}
    found: Answers = {}
    for place, entry in enumerate(entries):
        calls = waiting.get(entry.tool_call_id) if entry.tool_call_id else None
        if calls:
            call = calls.pop(0)
            found[call] = (place, call[0])
        for number, made in enumerate(entry.tool_calls):
            waiting.setdefault(made["id"], []).append((place, number))
    return found


def _turn(entries: Sequence[EntryRecord], place: int, answers: Answers, zone: tzinfo) -> str:
    entry = entries[place]
    kind = f" · {plain(entry.kind.replace('_', ' '))}" if entry.kind not in ("message", "tool_call") else ""
    at = f" · {moment(entry.occurred_at, zone)}" if entry.occurred_at else ""
    name = f" {code(entry.name)}" if entry.name else ""
    heading = f"## #{place} · {plain(entry.role.capitalize())}{name}{kind}{at}"
    is_written = entry.kind in ("message", "summary") or bool(entry.tool_calls)
    is_prose = entry.role in ("user", "assistant") and is_written
    answered = partial(_answer, entries, place, answers)
    return _blocks(heading, _text(entry.content, is_prose=is_prose), *_calls(entry.tool_calls, answered))


def _text(text: str, *, is_prose: bool) -> str:
    return (said(text) if is_prose else fenced(text)) if text else ""


def _blocks(*blocks: str) -> str:
    return "\n\n".join(block for block in blocks if block)


def _answer(entries: Sequence[EntryRecord], place: int, answers: Answers, number: int) -> str:
    found = answers.get((place, number))
    if found is None:
        return "Result: none."
    return f"Result (#{found[0]}):\n\n{fenced(entries[found[0]].content)}"


def _calls(made: Sequence[ToolCall], answer: Callable[[int], str] = lambda _number: "") -> Iterator[str]:
    """Yield tool calls, each with its arguments in a fence, and what ``answer`` says for its number."""
    for number, call in enumerate(made):
        text, language = _pretty(call["function"]["arguments"])
        yield f"Tool call {code(call['function']['name'])}:\n\n{fenced(text, language)}"
        yield answer(number)


def _pretty(arguments: str) -> tuple[str, str]:
    try:
        return json.dumps(json.loads(arguments), ensure_ascii=False, indent=2), "json"
    except ValueError:
        return arguments, ""


def moment(at: datetime, zone: tzinfo) -> str:
    """Return a time to the second with its zone."""
    return f"{at.astimezone(zone):%Y-%m-%d %H:%M:%S %Z}"


def context(key: str, parts: Sequence[Part], *, tokens: int) -> str:
    """Return a context as Markdown: each message with its role and source, system messages in a fence."""
    check_amount(len(parts), "messages")
    head = f"# Context of {plain(key) or code(key)}\n\n{len(parts):,} messages, about {tokens:,} tokens."
    return joined([head, *(_part(number, part) for number, part in enumerate(parts, start=1))])


def _part(number: int, part: Part) -> str:
    is_prose = part.role in ("user", "assistant")
    source = f" · {plain(part.source)}" if part.source else ""
    heading = f"## {number} · {plain(part.role.capitalize())}{source}"
    return _blocks(heading, _text(part.text, is_prose=is_prose), *_calls(part.calls))


def passages(title: str, rows: Sequence[Passage]) -> str:
    """Return results as Markdown: a heading, then each with a link, what is known of it and its text as a quote."""
    check_amount(len(rows), "rows")
    return joined([f"# {plain(title)}", *(_passage(number, row) for number, row in enumerate(rows, start=1))])


def _passage(number: int, row: Passage) -> str:
    name = f"[{plain(row.title) or number}](<{row.url}>)" if row.url else plain(row.title)
    return _blocks(f"## {number} · {name}", plain(row.about), quoted(row.text) if row.text.strip() else "")


def quoted(text: str) -> str:
    """Return text as a quote, which nothing in it can leave."""
    return "\n".join(f"> {line}".rstrip() for line in text.strip("\n").split("\n"))


def listing(title: str, groups: Sequence[tuple[str, Sequence[tuple[str, str]]]]) -> str:
    """Return groups of facts as lists, each fact, (text, what to say about it), as one item."""
    check_amount(sum(len(rows) for _, rows in groups), "rows")
    blocks = [f"# {plain(title)}"]
    for name, rows in groups:
        items = [f"- {_item(text)}{f' ({plain(about)})' if about else ''}" for text, about in rows]
        blocks += [f"## {plain(name)}", "\n".join(items)] if items else []
    return joined(blocks)


def _item(text: str) -> str:
    """Return a fact as one item of a list: its further lines stand within it."""
    return "\n".join(f"  {line}" if line.strip() else "" for line in text.strip().split("\n")).strip()
