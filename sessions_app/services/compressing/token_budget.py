"""A workspace's daily token budget."""

from __future__ import annotations

from datetime import datetime, timedelta

from memoryhub.lib.errors import LimitExceeded
from memoryhub.lib.llm import Reply, ToolReply
from memoryhub.lib.tokens import count_tokens
from sessions_app.models import Run, Workspace
from sessions_app.services.compressing.model_choice import cost_of
from sessions_app.services.runs import postpone_run, tokens_spent


def within_budget(run: Run, workspace: Workspace, messages: list[dict[str, str]], now: datetime) -> bool:
    """Tell whether today's budget covers a request; otherwise postpone the run until midnight UTC.

    Raises LimitExceeded for a run started by a command, and for a request larger than the daily budget.
    """
    budget = workspace.daily_token_budget
    if budget is None:
        return True
    needed = sum(count_tokens(message["content"]) for message in messages)
    spent = tokens_spent(workspace, now)
    if spent + needed <= budget:
        return True
    why = f"today's budget of {budget:,} tokens is used up ({spent:,} spent, {needed:,} needed)"
    if run.options.get("once") or needed > budget:
        raise LimitExceeded(f"Not sent: {why}. Raise it in the workspace's settings.", code="budget_spent")
    postpone_run(run, until=midnight_after(now), why=f"waits for tomorrow: {why}")
    return False


def budget_left(workspace: Workspace, now: datetime) -> int | None:
    """Return the tokens left today; None without a limit."""
    budget = workspace.daily_token_budget
    return None if budget is None else max(0, budget - tokens_spent(workspace, now))


def midnight_after(now: datetime) -> datetime:
    """Return the next midnight UTC."""
    return now.replace(hour=0, minute=0, second=0, microsecond=0) + timedelta(days=1)


def record_cost(run: Run, messages: list[dict[str, str]], reply: Reply | ToolReply, text: str) -> None:
    """Add a reply's tokens and cost to a run; tokens are estimated if the server reports none."""
    run.model = reply.model
    run.prompt_tokens += reply.prompt_tokens or sum(count_tokens(message["content"]) for message in messages)
    run.completion_tokens += reply.completion_tokens or count_tokens(text)
    run.cost = cost_of(reply.model, run.prompt_tokens, run.completion_tokens)
