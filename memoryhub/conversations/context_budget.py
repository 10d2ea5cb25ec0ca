"""How a context uses its budget: tokens by source, what drops out next, what changed since an agent's last call."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from django.utils.translation import gettext

from memoryhub.conversations.context import KNOWLEDGE, STEPS, SUMMARY, SUMMARY_TEXT, Context, ContextPart
from memoryhub.lib.charts import Part, parts_of
from memoryhub.models import AccessedRow
from sessions_app.models import Entry, Session
from sessions_app.services.access_log import DOCUMENTS, ENTRIES, reads_by_agents

SOURCES = {"MEMORY.md": "memory", KNOWLEDGE: "knowledge", SUMMARY: "summary", SUMMARY_TEXT: "summary"}


@dataclass(frozen=True)
class NextDrop:
    """The entries that leave the context next: from position ``first`` to ``last``.

    ``after``: tokens of new entries that still fit before that; None if the next entry is enough.
    """

    first: int
    last: int
    tokens: int
    after: int | None


@dataclass(frozen=True)
class SinceLastCall:
    """What changed since an agent read the context. ``revisions``: name, number then and number now of documents."""

    at: datetime
    who: str
    added: int
    dropped: int
    revisions: Sequence[tuple[str, int | None, int | None]]

    @property
    def is_same(self) -> bool:
        return not (self.added or self.dropped or self.revisions)


def source_of(part: ContextPart) -> str:
    """Return the kind of a part: system, memory, knowledge, summary, messages or tools."""
    if part.entry is None:
        return SOURCES.get(part.source, "system")
    return "tools" if part.entry.tool_calls or part.entry.role == "tool" else "messages"


def budget_parts(context: Context) -> list[Part]:
    """Return the tokens of each source, and what is free, as parts of a bar."""
    labels = {
        "system": gettext("system files"),
        "memory": gettext("MEMORY.md"),
        "knowledge": gettext("knowledge"),
        "summary": gettext("summaries"),
        "messages": gettext("messages"),
        "tools": gettext("tool calls and results"),
        "free": gettext("free"),
    }
    tokens = dict.fromkeys(labels, 0)
    for part in context.parts:
        tokens[source_of(part)] += part.tokens
    tokens["free"] = max(0, context.budget - context.tokens)
    return parts_of([(key, label, tokens[key]) for key, label in labels.items()])


def next_drop(context: Context, session: Session, max_messages: int) -> NextDrop | None:
    """Return what leaves the context next; None without limits or entries.

    Over the limit of entries, each new one drops the oldest. Over the budget, entries leave in steps of a quarter.
    """
    kept = [(part.entry.position, part.tokens) for part in context.parts if part.entry]
    if not kept:
        return None
    if 0 < max_messages <= len(kept):
        return NextDrop(kept[0][0], kept[0][0], kept[0][1], None)
    if not context.budget:
        return None
    fixed = sum(part.tokens for part in context.parts if part.entry is None)
    room = context.budget - fixed
    step = max(1, room // STEPS)
    cut = -(-max(0, session.active_tokens - room) // step) * step  # tokens that have left
    before = session.active_tokens - sum(tokens for _, tokens in kept)
    leaving = []
    for position, tokens in kept:
        if before >= cut + step:
            break
        leaving.append((position, tokens))
        before += tokens
    first, last = leaving[0][0] if leaving else kept[0][0], leaving[-1][0] if leaving else kept[0][0]
    return NextDrop(first, last, sum(tokens for _, tokens in leaving), room + cut - session.active_tokens)


def since_last_call(context: Context, session: Session) -> SinceLastCall | None:
    """Compare the context with the last one that an agent read, by the access log; None without one. Two queries."""
    calls = AccessedRow.objects.filter(table=ENTRIES, parent=session.pk, epoch=session.epoch)
    reads = reads_by_agents().filter(
        workspace=session.workspace_id, action="context.read", pk__in=calls.values("access")
    )
    record = reads.order_by("-id").first()
    if record is None:
        return None
    rows = list(AccessedRow.objects.filter(access=record))
    seen = [(row.first, row.last) for row in rows if row.table == ENTRIES and row.parent == session.pk]
    then = {position for first, last in seen for position in range(first, last + 1)}
    now = {part.entry.position for part in context.parts if part.entry}
    return SinceLastCall(record.at, record.actor_name, len(now - then), len(then - now), _revisions(context, rows))


def _revisions(context: Context, rows: Sequence[AccessedRow]) -> list[tuple[str, int | None, int | None]]:
    then = {row.parent: row.first for row in rows if row.table == DOCUMENTS}
    shown = {
        part.revision.document_id: (part.source, part.revision.number) for part in context.parts if part.revision
    }
    changes: list[tuple[str, int | None, int | None]] = [
        (name, then.get(pk), number) for pk, (name, number) in shown.items() if then.get(pk) != number
    ]
    gone = then.keys() - shown.keys()
    return changes + [(gettext("document %(number)s") % {"number": pk}, then[pk], None) for pk in gone]


def count_entries(context: Context) -> int:
    """Return the number of entries in a context."""
    return sum(part.entry is not None for part in context.parts)


def call_lines(entry: Entry) -> list[tuple[str, str]]:
    """Return the name and the arguments of an entry's tool calls."""
    return [(call["function"]["name"], call["function"]["arguments"]) for call in entry.tool_calls]
