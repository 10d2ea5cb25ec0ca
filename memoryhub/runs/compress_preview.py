"""What a compression would do, for its page: estimates from the text that the page shows."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from django.utils.translation import get_language

from memoryhub.lib.layouts.records import ToolCall
from memoryhub.lib.text_caches import text_cache
from memoryhub.lib.tokens import counter_for
from sessions_app.models import AuditRecord, Session
from sessions_app.services.compressing.compression import active_entries, plan_compression
from sessions_app.services.compressing.summarising import PART_TOKENS, by_rule

_FIGURE = re.compile(r"\d+(?:[.,:/-]\d+)*")


class _Row(NamedTuple):
    """The columns of an entry that a plan and a rule-based summary need."""

    position: int
    kind: str
    role: str
    name: str
    content: str
    token_count: int
    tool_call_id: str
    tool_calls: list[ToolCall]


@dataclass(frozen=True)
class CompressionPreview:
    """What would be summarised. ``reason``: why nothing would be; the rest is 0 then.

    ``text``: the rule-based summary; ``lost_figures``: numbers of the entries that it doesn't have. ``before`` and
    ``after``: tokens of the context; ``summary_tokens``: of the text, or the target of a model. ``requests``: to the
    model, estimated.
    """

    reason: str = ""
    is_of_summaries: bool = False
    count: int = 0
    kept: int = 0
    first: int = 0
    last: int = 0
    original_tokens: int = 0
    summary_tokens: int = 0
    before: int = 0
    text: str = ""
    lost_figures: int = 0
    requests: int = 0

    @property
    def after(self) -> int:
        return self.before - self.original_tokens + self.summary_tokens


def preview_compression(session: Session, *, keep: int, by_model: bool) -> CompressionPreview:
    """Plan a compression and write its rule-based summary, from only the columns that both need.

    Kept in this process until the workspace changes, because a plan for thousands of entries takes a while.
    """
    latest = AuditRecord.objects.filter(workspace=session.workspace_id).order_by("-id").values_list("pk").first()
    state = (latest, session.epoch, session.next_position, session.active_tokens, session.summary_tokens)
    return _preview(session.pk, keep, by_model, state, get_language())


@text_cache(64)
def _preview(  # the language is that of a reason
    pk: int,
    keep: int,
    by_model: bool,  # noqa: FBT001
    _state: object,
    _language: str | None,
) -> CompressionPreview:
    session = Session.objects.select_related("workspace").get(pk=pk)
    plan = plan_compression(session, keep=keep, read=_rows)
    if plan.reason:
        return CompressionPreview(plan.reason)
    rows: Sequence[Any] = plan.entries or plan.summaries
    text = by_rule(plan)
    return CompressionPreview(
        is_of_summaries=plan.is_of_summaries,
        count=len(rows),
        kept=plan.kept,
        first=plan.first_position,
        last=plan.last_position,
        original_tokens=plan.original_tokens,
        summary_tokens=plan.target_tokens if by_model else counter_for(session.workspace.model).count(text),
        before=session.active_tokens + session.summary_tokens,
        text=text,
        lost_figures=0 if by_model else count_lost_figures((row.content for row in rows), text),
        requests=-(-plan.original_tokens // PART_TOKENS) if by_model else 0,
    )


def _rows(session: Session, most: int) -> list[Any]:
    return [_Row(*row) for row in active_entries(session).order_by("position").values_list(*_Row._fields)[:most]]


def count_lost_figures(texts: Iterable[str], summary: str) -> int:
    """Return how many different numbers, dates and amounts of some texts a summary doesn't have."""
    figures: set[str] = set()
    for text in texts:
        figures.update(_FIGURE.findall(text))
    return len(figures.difference(_FIGURE.findall(summary)))
