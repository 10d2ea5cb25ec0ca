"""Heuristic summaries, for workspaces without a model (as AgTerm's fallback). Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from memoryhub.lib.tokens import TokenCounter
from sessions_app.models import Entry, Summary

HEADING = "[Previous conversation summary]"
ERROR_STARTS = ("error", "traceback", "exception", "failed")
MAX_QUOTE = 400  # characters
MIN_QUOTE = 24


def looks_like_error(text: str) -> bool:
    """Tell whether a tool's output looks like an error."""
    return text.lstrip().lower().startswith(ERROR_STARTS)


def summarise_entries(entries: Sequence[Entry], *, target_tokens: int, counter: TokenCounter) -> str:
    """Summarise entries by rule: number of user messages, the first and the last, tools used, errors.

    Quotes are shortened to fit the target, to no less than 24 characters each; the result can still be too long.
    """
    quote = MAX_QUOTE
    while True:
        text = _describe(entries, quote)
        if counter.count(text) <= target_tokens or quote <= MIN_QUOTE:
            return text
        quote = max(MIN_QUOTE, quote // 2)


def _describe(entries: Sequence[Entry], quote: int) -> str:
    asked = [entry.content for entry in entries if entry.role == "user"]
    lines = [HEADING, "", _count(len(asked), "user message")]
    if asked:
        lines.append(f'First: "{_cut(asked[0], quote)}"')
    if len(asked) > 1:
        lines.append(f'Last: "{_cut(asked[-1], quote)}"')
    tools = _tools(entries)
    if tools:
        lines += ["", f"Tools used: {', '.join(tools)}"]
    errors = sum(entry.kind == Entry.Kind.TOOL_RESULT and looks_like_error(entry.content) for entry in entries)
    if errors:
        lines += ["", f"{_count(errors, 'error')} encountered"]
    return "\n".join(lines)


def _tools(entries: Sequence[Entry]) -> list[str]:
    used: Counter[str] = Counter()
    for entry in entries:
        used.update(call["function"]["name"] for call in entry.tool_calls)
        if entry.kind == Entry.Kind.TOOL_CALL and not entry.tool_calls and entry.name:
            used[entry.name] += 1
    return [name for name, _ in used.most_common(20)]


def summarise_summaries(summaries: Sequence[Summary], *, target_tokens: int, counter: TokenCounter) -> str:
    """Merge the beginnings of summaries under one heading, each with an equal share of the target."""
    share = max(MIN_QUOTE, target_tokens * 4 // max(1, len(summaries)) - len(HEADING))
    while True:
        parts = [_cut(summary.content.removeprefix(HEADING), share) for summary in summaries]
        text = "\n\n".join([HEADING, *parts])
        if counter.count(text) <= target_tokens or share <= MIN_QUOTE:
            return text
        share = max(MIN_QUOTE, share // 2)


def _count(n: int, what: str) -> str:
    return f"{n} {what}{'' if n == 1 else 's'}"


def _cut(text: str, size: int) -> str:
    line = " ".join(text.split())
    return line if len(line) <= size else f"{line[: size - 1].rstrip()}…"
