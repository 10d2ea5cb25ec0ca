"""One page of a transcript: turns, tool calls with results, summaries."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from datetime import date

from django.urls import reverse
from django.utils import timezone
from django.utils.safestring import SafeString
from django.utils.translation import gettext

from memoryhub.lib.layouts.records import ToolCall
from memoryhub.lib.masked_text import masked
from memoryhub.lib.text.markdown import render_markdown
from memoryhub.lib.tokens import count_tokens
from memoryhub.lib.validation import parse_stored
from sessions_app.models import Entry, Session, Summary
from sessions_app.services.compressing.summary_without_model import looks_like_error

PAGE_ENTRIES = 100
OPEN_RESULT_CHARS = 1_500  # a longer call and result starts collapsed
BRIEF_CHARS = 160


@dataclass(frozen=True)
class Result:
    pk: int
    position: int
    url: str
    content: str


@dataclass(frozen=True)
class Call:
    """One tool call, its result if there is one, and the session of the subagent that it started."""

    name: str
    brief: str
    arguments: str
    token_count: int
    open: bool
    state: str
    result: Result | None
    subagent: str = ""
    subagent_url: str = ""


@dataclass(frozen=True)
class Turn:
    """``text``: the entry's content as shown. ``html``: the same as rendered Markdown, of messages."""

    entry: Entry
    url: str
    text: str
    html: SafeString | None
    calls: list[Call] = field(default_factory=list)
    is_consolidated: bool = False


@dataclass
class TurnGroup:
    """Consecutive turns of one day with the same summary (or none).

    ``hidden``: why they are folded: "injected" by the program, "rewound", or "earlier" versions of later ones.
    """

    summary: Summary | None
    turns: list[Turn]
    hidden: str = ""
    day: date | None = None
    follows_pointer: bool = False  # the pointer is just before its first turn


@dataclass(frozen=True)
class Transcript:
    """A page of one epoch. ``start`` and ``end`` are positions, end exclusive; ``length`` is the epoch's."""

    stretches: list[TurnGroup]
    epoch: int
    start: int
    end: int
    length: int

    @property
    def place(self) -> str:
        last = max(self.start, self.end - 1)
        words = gettext("#%(first)s to #%(last)s of %(count)s")
        return words % {"first": f"{self.start:,}", "last": f"{last:,}", "count": f"{self.length:,}"}

    @property
    def previous(self) -> int | None:
        return max(0, self.start - PAGE_ENTRIES) if self.start else None

    @property
    def next(self) -> int | None:
        return self.end if self.end < self.length else None


def read_transcript(
    session: Session, *, epoch: int, start: int | None, show: Callable[[str], str] = masked
) -> Transcript:
    """Return up to 100 entries of an epoch from a position (default: the last page).

    ``show`` returns a stored text as the page shows it, by default with its secrets masked. Up to six queries:
    length, page, tool results beyond its end, summaries, subagents of its calls, later versions of rewound entries.
    """
    entries = Entry.objects.filter(session=session, epoch=epoch)
    last = entries.order_by("-position").values_list("position", flat=True).first()
    length = 0 if last is None else last + 1
    start = max(0, length - PAGE_ENTRIES) if start is None else max(0, min(start, length - 1))
    page = list(entries.filter(position__gte=start, position__lt=start + PAGE_ENTRIES).order_by("position"))
    results = _results(session, epoch, page)
    summaries = {summary.pk: summary for summary in _summaries_of(page)}
    slug = session.workspace.slug
    turns = _turns(session, page, results, slug, show, _subagents(session, page))
    groups = _groups(turns, summaries, session, _replaced(session, page))
    return Transcript(groups, epoch, start, start + len(page), length)


def read_turns(entries: Sequence[Entry]) -> list[Turn]:
    """Return consecutive entries of a session as turns with their calls' results, secrets masked. One query."""
    if not entries:
        return []
    session = entries[0].session
    results = _results(session, entries[0].epoch, entries)
    return _turns(session, entries, results, session.workspace.slug, masked, {})


def _summaries_of(page: Iterable[Entry]) -> Iterable[Summary]:
    return Summary.objects.filter(pk__in={entry.summary_id for entry in page if entry.summary_id})


def _subagents(session: Session, page: Iterable[Entry]) -> dict[str, Session]:
    """Return the sessions that the page's tool calls started, by the call's id."""
    calls = [call["id"] for entry in page for call in entry.tool_calls if call["id"]]
    started = Session.objects.filter(parent=session, parent_call_id__in=calls) if calls else Session.objects.none()
    return {subagent.parent_call_id: subagent for subagent in started.order_by("-pk")}


def _replaced(session: Session, page: Iterable[Entry]) -> set[str]:
    """Return the ids of the page's rewound records of which the conversation has another version."""
    ids = {entry.source_id for entry in page if entry.is_rewound and entry.source_id}
    if not ids:
        return set()
    current = Entry.objects.filter(session=session, source_id__in=ids, is_rewound=False)
    return set(current.values_list("source_id", flat=True))


def _results(session: Session, epoch: int, page: Sequence[Entry]) -> list[Entry]:
    """Return the page's tool results, and later ones that answer its calls."""
    here = [entry for entry in page if entry.tool_call_id]
    wanted = {call["id"] for entry in page for call in entry.tool_calls} - {entry.tool_call_id for entry in here}
    end = page[-1].position if page else 0
    beyond = Entry.objects.filter(
        session=session, epoch=epoch, tool_call_id__in=wanted, position__gt=end, position__lte=end + PAGE_ENTRIES
    )
    return [*here, *beyond.order_by("position")]


def _turns(
    session: Session,
    page: Sequence[Entry],
    results: Sequence[Entry],
    slug: str,
    show: Callable[[str], str],
    subagents: Mapping[str, Session],
) -> list[Turn]:
    waiting = list(results)
    used: set[int] = set()
    turns: list[Turn] = []
    is_current = bool(page) and page[0].epoch == session.epoch
    for entry in page:
        if entry.pk in used:
            continue
        calls = []
        for call in entry.tool_calls:
            result = _answer(call, entry, waiting, used)
            if result:
                used.add(result.pk)
            calls.append(_call(call, result, slug, show, subagents.get(call["id"])))
        consolidated = is_current and entry.position < session.last_consolidated
        text = show(entry.content)
        turns.append(Turn(entry, _url(slug, entry.pk), text, _html(entry, text), calls, consolidated))
    return turns


def _answer(call: ToolCall, entry: Entry, waiting: Sequence[Entry], used: set[int]) -> Entry | None:
    """Return the first unused result after a call; agents may reuse ids."""
    return next(
        (
            result
            for result in waiting
            if result.tool_call_id == call["id"]
            and result.position > entry.position
            and result.is_rewound == entry.is_rewound
            and result.pk not in used
        ),
        None,
    )


def _call(
    call: ToolCall, entry: Entry | None, slug: str, show: Callable[[str], str], subagent: Session | None
) -> Call:
    arguments = call["function"]["arguments"]
    content = entry.content if entry else ""
    return Call(
        name=call["function"]["name"],
        brief=show(_brief(arguments)),
        arguments=show(_pretty(arguments)),
        token_count=count_tokens(arguments) + (entry.token_count if entry else 0),
        open=bool(entry) and len(content) + len(arguments) <= OPEN_RESULT_CHARS // 4,
        state="error" if entry and (looks_like_error(content) or entry.extra.get("is_error") is True) else "",
        result=Result(entry.pk, entry.position, _url(slug, entry.pk), show(content)) if entry else None,
        subagent=str(subagent) if subagent else "",
        subagent_url=reverse("sessions:detail", args=[slug, subagent.pk]) if subagent else "",
    )


def _brief(arguments: str) -> str:
    values = parse_stored(arguments, None)
    if isinstance(values, dict) and values:
        arguments = " · ".join(str(value) for value in values.values())
    line = " ".join(arguments.split())
    return line if len(line) <= BRIEF_CHARS else f"{line[:BRIEF_CHARS]}…"


def _pretty(arguments: str) -> str:
    values = parse_stored(arguments, None)
    return arguments if values is None else json.dumps(values, ensure_ascii=False, indent=2)


def _html(entry: Entry, text: str) -> SafeString | None:
    """Render messages as Markdown; tool calls, output and context stay verbatim."""
    is_prose = entry.role in ("user", "assistant") and (entry.kind == Entry.Kind.MESSAGE or entry.tool_calls)
    return render_markdown(text) if is_prose and text else None


def _url(slug: str, pk: int) -> str:
    return reverse("sessions:entry", args=[slug, pk])


def _groups(
    turns: Sequence[Turn], summaries: dict[int, Summary], session: Session, replaced: Set[str]
) -> list[TurnGroup]:
    """Split turns where the day, the summary, the side of the pointer or the reason for hiding them changes.

    If the pointer separates a tool call from its result (shown with the call), its line comes before the next turn.
    """
    stretches: list[TurnGroup] = []
    before: Turn | None = None
    day: date | None = None
    for turn in turns:
        entry = turn.entry
        summary = summaries.get(entry.summary_id) if entry.summary_id else None
        crosses = before.is_consolidated if before else entry.position == session.last_consolidated > 0
        at_pointer = crosses and not turn.is_consolidated and entry.epoch == session.epoch
        new_day = timezone.localdate(entry.occurred_at) if entry.occurred_at else day
        is_new_day = new_day != day and summary is None  # a summary can span days
        hidden = "" if summary else _hidden(entry, replaced)
        last = stretches[-1] if stretches else None
        if last is None or (last.summary, last.hidden) != (summary, hidden) or at_pointer or is_new_day:
            stretches.append(TurnGroup(summary, [], hidden, new_day if new_day != day else None, at_pointer))
        stretches[-1].turns.append(turn)
        before, day = turn, new_day
    return stretches


def _hidden(entry: Entry, replaced: Set[str]) -> str:
    if entry.is_injected:
        return "injected"
    if entry.is_rewound:
        return "earlier" if entry.source_id in replaced else "rewound"
    return ""
