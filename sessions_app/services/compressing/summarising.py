"""Write summaries with a model (one or more requests) or by rule, and check the replies."""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from memoryhub.lib.errors import Invalid
from memoryhub.lib.llm import Reply
from memoryhub.lib.text.reply_faults import check_reply, keep_reply
from memoryhub.lib.tokens import count_tokens, counter_for
from sessions_app.models import Entry, Summary
from sessions_app.services.compressing.compression import Plan
from sessions_app.services.compressing.summary_without_model import summarise_entries, summarise_summaries
from sessions_app.services.prompts import FOLD_INSTRUCTIONS, FOLD_LIMITS, FOLD_REQUEST

PART_TOKENS = 12_000  # quoted per request
MIN_PART_TOKENS = 500
MAX_QUOTED = 6_000  # characters quoted of one entry
MOST = 3  # times its target that a summary may have
LEAST_BOUND = 400  # tokens that a summary may always have
SHORT = 100  # characters of a reply that is only a preface
ROOM = 4  # times the target that a reply may take, for models that think aloud
Ask = Callable[[list[dict[str, str]], int], Reply]
_REFUSALS = re.compile(
    r"^\W*(i'?m sorry|i am sorry|sorry,|i can'?t|i cannot|as an ai|i'?m unable|unfortunately,? i"
    r"|error:|error \d|traceback|<!doctype|<html)",
    re.IGNORECASE,
)
_PREFACE = re.compile(r"^\W*(sure|certainly|of course|okay|ok|here is|here's|below is)\b", re.IGNORECASE)
_PLACEHOLDERS = re.compile(
    r"^\W*(summary|the summary|insert|todo|tbd|n/?a|none|null|your summary)[\s\w]{0,20}\W*$", re.IGNORECASE
)


@dataclass(frozen=True)
class Request:
    """A request to the model: messages, target size in tokens, and its delimiter."""

    messages: list[dict[str, str]]
    target_tokens: int
    mark: str


def by_rule(plan: Plan) -> str:
    """Return the heuristic summary of a plan."""
    counter = counter_for(plan.session.workspace.model)
    if plan.is_of_summaries:
        return summarise_summaries(plan.summaries, target_tokens=plan.target_tokens, counter=counter)
    return summarise_entries(plan.entries, target_tokens=plan.target_tokens, counter=counter)


def requests_for(plan: Plan, part_tokens: int = PART_TOKENS, *, prompt: str = "") -> list[Request]:
    """Return the requests whose replies, joined in order, are a plan's summary.

    Each quotes up to ``part_tokens`` (estimated) and has its share of the target size. The conversation is enclosed
    in random delimiters, so that nothing in it can end the quotation. ``prompt`` replaces the instructions, by
    default those of the workspace or of the hub; the rules on length and quotation stay.
    """
    instructions = prompt.strip() or plan.session.workspace.summary_prompt.strip() or FOLD_INSTRUCTIONS
    parts = list(_parts([quoted(row) for row in plan.entries or plan.summaries], part_tokens))
    sizes = [count_tokens(part) for part in parts]
    whole = sum(sizes) or 1
    return [
        _request(part, instructions, max(40, plan.target_tokens * size // whole))
        for part, size in zip(parts, sizes, strict=True)
    ]


def _request(text: str, instructions: str, target: int) -> Request:
    mark = f"=== {secrets.token_hex(8)} ==="
    rules = f"{instructions}\n\n{FOLD_LIMITS.format(target=target, limit=target * 2, mark=mark)}"
    asked = FOLD_REQUEST.format(text=text, mark=mark)
    return Request([{"role": "system", "content": rules}, {"role": "user", "content": asked}], target, mark)


def _parts(texts: Iterable[str], part_tokens: int) -> Iterable[str]:
    part: list[str] = []
    size = 0
    for text in texts:
        tokens = count_tokens(text)
        if part and size + tokens > part_tokens:
            yield "\n\n".join(part)
            part, size = [], 0
        part.append(text)
        size += tokens
    if part:
        yield "\n\n".join(part)


def quoted(row: Entry | Summary) -> str:
    """Quote an entry or summary: author, tools used (a list in old nanobot messages), content, tool calls."""
    if isinstance(row, Summary):
        return f"[summary of entries {row.first_position} to {row.last_position}]\n{row.content}"
    who = f"{row.role} {row.name}".strip() if row.kind == Entry.Kind.MESSAGE else f"{row.kind} {row.name}".strip()
    used = row.extra.get("tools_used")
    names = ", ".join(str(name) for name in used) if isinstance(used, list) else ""
    tools = f" [tools: {_clipped(names)}]" if names else ""
    lines = [f"[{who}]{tools} {_clipped(row.content)}".rstrip()]
    lines += [
        f"  calls {call['function']['name']} {_clipped(call['function']['arguments'])}" for call in row.tool_calls
    ]
    return "\n".join(lines)


def _clipped(text: str) -> str:
    """Cut the middle out of a long text; output is most informative at both ends."""
    if len(text) <= MAX_QUOTED:
        return text
    half = MAX_QUOTED // 2
    return f"{text[:half]}\n[… {len(text) - 2 * half:,} characters left out …]\n{text[-half:]}"


def by_model(plan: Plan, requests: Sequence[Request], ask: Ask, progress: Callable[[int], None]) -> str:
    """Return the model's checked summary of a plan; ``progress`` receives the number of replies so far.

    Raises Invalid and what ``ask`` raises.
    """
    texts: list[str] = []
    for request in requests:
        progress(len(texts))
        reply = ask(request.messages, max(1024, request.target_tokens * ROOM))
        with keep_reply(reply.text):
            judge(reply.text, request)
        texts.append(reply.text)
    text = "\n\n".join(texts)
    tokens = counter_for(plan.session.workspace.model).count(text)
    if tokens > max(plan.target_tokens * MOST, LEAST_BOUND):
        raise Invalid(
            f"The summary has {tokens:,} tokens; {plan.target_tokens:,} were requested.", code="bad_summary"
        )
    return text


def judge(text: str, request: Request) -> None:
    """Raise Invalid for a reply that refuses, repeats the request, or is empty."""
    check_reply(text, request.messages[0]["content"], request.messages[1]["content"])
    if _REFUSALS.match(text):
        raise Invalid(f"The model refused or returned an error: {text[:120]!r}", code="bad_summary")
    if request.mark in text or text[:200] in request.messages[0]["content"]:
        raise Invalid("The reply repeats the request.", code="bad_summary")
    if _PLACEHOLDERS.match(text) or sum(letter.isalnum() for letter in text) < 8:
        raise Invalid(f"The reply has no summary: {text[:120]!r}", code="bad_summary")
    if len(text) < SHORT and _PREFACE.match(text):
        raise Invalid(f"The reply announces a summary but has none: {text!r}", code="bad_summary")
    asked = request.messages[1]["content"]
    if len(text) > 400 and text[:300] in asked:
        raise Invalid("The reply repeats the conversation instead of summarising it.", code="bad_summary")
