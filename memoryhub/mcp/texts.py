"""Texts of tool results, for models. Their structured values say no more than they do."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from memoryhub.agents.api_tokens import Caller
from memoryhub.mcp import results as shapes

MAX_TEXT = 2_000  # characters of a recalled row's text, and of a fact's origin


def as_match(caller: Caller, row: Mapping[str, Any], text: str) -> dict[str, Any]:
    """Return a hit with its text on one line, and its workspace only if it isn't the caller's own."""
    is_own = row.get("workspace") == caller.workspace.slug
    return {**row, "text": on_one_line(text), "workspace": None if is_own else row.get("workspace")}


def match_line(row: Mapping[str, Any]) -> str:
    """Return a line for a hit: its kind and id, workspace, session, place there and time, and its text."""
    workspace = f"workspace {row['workspace']}" if row.get("workspace") else ""
    session = f"{_place(row)}session {row['session']}" if row.get("session") else ""
    label = [f"{row['kind']} {row['id']}", workspace, session, time_text(row.get("occurred_at"))]
    return f"- [{', '.join(part for part in label if part)}] {row['text']}"


def match_text(rows: Sequence[Mapping[str, Any]], notes: Iterable[str] = ()) -> str:
    count = f"{counted(len(rows), 'hit')}, best first:" if rows else "Nothing found."
    return "\n".join([*notes, count, *map(match_line, rows)])


def counted(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def on_one_line(text: str) -> str:
    """Return a text on one line, cut at MAX_TEXT characters."""
    return " ".join(text[: 2 * MAX_TEXT].split())[:MAX_TEXT]


def why_text(found: Mapping[str, Any]) -> tuple[str, shapes.Why]:
    """Return the explanation of a fact as a text and as values."""
    fact = found["fact"]
    lines = [f"Fact {fact['id']} of {fact['document']}: {fact['text']}"]
    lines.append(f"How it came into the memory: {found['kind']}. How certain that is: {found['certainty']}.")
    accepted = found["proposal"]
    if accepted:
        lines.append(f"Proposed by {accepted['proposed_by'] or 'unknown'}, accepted by {accepted['accepted_by']}.")
    origins = []
    for one in found["origins"]:
        message, history = one["message"] or {}, one["history"] or {}
        text = on_one_line(str(message.get("content") or history.get("content") or ""))
        session, position = message.get("session"), message.get("position")
        origins.append(shapes.Origin(kind=one["kind"], session=session, text=text))
        place = f", message {position} of the session {session}" if session else ""
        lines.append(
            f"- [{one['kind']}{place}, {time_text(message.get('at') or history.get('at')) or 'no time'}] {text}"
        )
    revisions = []
    for one in found["revisions"]:
        proposer = f" (proposed by {one['proposed_by']})" if one["proposed_by"] else ""
        revisions.append(f"{one['action']} in revision {one['revision']} by {one['author']}{proposer}")
        lines.append(f"- {time_text(one['created_at'])}: {revisions[-1]}")
    shown = shapes.Why(
        fact=shapes.ExplainedFact(**fact),
        kind=found["kind"],
        certainty=found["certainty"],
        proposal=shapes.AcceptedProposal(**accepted) if accepted else None,
        origins=origins,
        revisions=revisions,
    )
    return "\n".join(lines), shown


def joined_lines(texts: Iterable[str], next_cursor: str | None, nothing: str) -> str:
    """Return lines with a hint at the next page, or ``nothing``."""
    more = [f"(More results: call again with cursor={next_cursor})"] if next_cursor else []
    return "\n".join([*texts, *more]) or nothing


def _place(row: Mapping[str, Any]) -> str:
    return f"message {row['position']} of the " if row.get("position") is not None else ""


def time_text(value: Any) -> str:
    """Return a time in UTC, or its ISO text, to the minute."""
    moment = datetime.fromisoformat(value) if isinstance(value, str) and value else value
    return f"{moment:%Y-%m-%d %H:%M} UTC" if isinstance(moment, datetime) else ""
