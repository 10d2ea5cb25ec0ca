"""MCP tools that correct what is in the memory."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any, Literal

from mcp_types import CallToolResult
from pydantic import Field

from knowledge_app.services.rows.key_values import MAX_CHARS
from memoryhub.agents.api_tokens import Caller
from memoryhub.agents.operations import corrections, memory
from memoryhub.mcp import results as shapes
from memoryhub.mcp.arguments import STORABLE, Name, Reason, ToolAnswer
from memoryhub.mcp.calls import HubContext, answer

MAX_LINE = 20_000
Kind = Annotated[
    Literal["memory", "fact", "knowledge", "observation", "finding", "insight", "lesson", "key_value", "history"],
    Field(description="The hit's kind, from memory_recall or memory_search."),
]
Id = Annotated[int, Field(ge=1, lt=2**63, description="The hit's id.")]


async def memory_correct(
    context: HubContext,
    kind: Kind,
    id: Id,  # noqa: A002
    text: Annotated[str, Field(min_length=1, max_length=MAX_CHARS, description="The complete new text."), STORABLE],
    reason: Reason = "",
) -> Annotated[CallToolResult, shapes.Correction]:
    """Correct, fix or update a memory that is wrong, outdated or a mistake, by its kind and id: the user changed
    their mind, or something is different now. The new text replaces the old one, so nothing contradicts it later.

    What you added yourself changes at once, and people can undo it. Anything else, or what a person verified, becomes
    a proposal that a person accepts or rejects. What a person pinned can't be changed.
    """

    def write(caller: Caller, now: datetime) -> ToolAnswer:
        return _said(corrections.correct(caller, kind, id, text, reason=reason, now=now), "Corrected")

    return await answer(context, write)


async def memory_withdraw(
    context: HubContext,
    kind: Kind,
    id: Id,  # noqa: A002
    reason: Reason = "",
) -> Annotated[CallToolResult, shapes.Correction]:
    """Forget something: withdraw or delete a memory that is no longer true or that the user wants you to forget, by
    its kind and id. People can restore it.

    Works like memory_correct: at once for what you added yourself, otherwise as a proposal.
    """

    def write(caller: Caller, now: datetime) -> ToolAnswer:
        return _said(corrections.withdraw(caller, kind, id, reason=reason, now=now), "Withdrawn")

    return await answer(context, write)


async def memory_line_replace(
    context: HubContext,
    old: Annotated[str, Field(min_length=1, max_length=MAX_LINE, description="The whole line, as it is."), STORABLE],
    new: Annotated[str, Field(max_length=MAX_LINE, description="The new line; empty: remove the line."), STORABLE],
    name: Name = "MEMORY.md",
    base: Annotated[int | None, Field(ge=1, le=2**31 - 1, description="The revision that you read.")] = None,
    reason: Reason = "",
) -> Annotated[CallToolResult, shapes.AddedFact]:
    """Change, replace or remove one line of a memory document, without sending the rest of its text.

    The line must occur exactly once. With base, nothing is changed if the document has changed since. Tokens without
    the scope edit propose the change.
    """

    def write(caller: Caller, now: datetime) -> ToolAnswer:
        written = memory.replace_line(caller, name, old, new, base=base, reason=reason, now=now)
        made = shapes.AddedFact(document=written["name"], status=written["status"], revision=written["revision"])
        texts = {"written": "Replaced.", "unchanged": "Nothing to change.", "held": "Waiting for review."}
        return texts[made.status], made

    return await answer(context, write)


def _said(values: Mapping[str, Any], verb: str) -> ToolAnswer:
    made = shapes.Correction(**values)
    proposal = f"proposal {made.proposal}" if made.proposal else f"run {made.run}"
    texts = {
        "changed": f"{verb} {made.kind} {made.id}. People can undo this.",
        "unchanged": f"{made.kind} {made.id} says this already.",
        "held": f"The new text of {made.kind} {made.id} is flagged: {proposal} is waiting for a person. Until then, "
        "the text before stays in use.",
        "proposed": f"{made.kind} {made.id} isn't yours: {proposal} is waiting for a person.",
    }
    return texts[made.status], made
