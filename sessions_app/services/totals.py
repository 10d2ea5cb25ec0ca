"""The totals that pages read instead of scanning entries."""

from __future__ import annotations

from datetime import UTC
from typing import Any

from django.db.models import BigIntegerField, Case, Count, F, Q, QuerySet, Sum, Value, When
from django.db.models.functions import Coalesce, TruncDate

from memoryhub.lib.tokens import count_tokens
from sessions_app.models import DailyTotal, Entry, Session, Summary, Workspace


def recount_session(session: Session) -> None:
    """Set a session's totals and its days from its entries. Call inside the transaction that changed them."""
    days = _days_of(session)
    DailyTotal.objects.filter(session=session).delete()
    DailyTotal.objects.bulk_create(
        [
            DailyTotal(
                workspace_id=session.workspace_id,
                session=session,
                day=row["day"],
                kind=row["kind"],
                entry_count=row["entries"],
                token_count=row["tokens"],
                active_token_count=row["active_tokens"],
            )
            for row in days
        ]
    )
    session.entry_count = sum(row["entries"] for row in days)
    session.total_tokens = sum(row["tokens"] for row in days)
    session.active_entry_count = sum(row["active_entries"] for row in days)
    session.active_tokens = sum(row["active_tokens"] for row in days)
    session.summary_tokens = count_summary_tokens(session)
    session.save(
        update_fields=[
            "entry_count",
            "total_tokens",
            "active_entry_count",
            "active_tokens",
            "summary_tokens",
        ]
    )


def count_summary_tokens(session: Session) -> int:
    """Return the tokens of what stands for the folded entries in the context: summary text and top summaries."""
    summaries = Summary.objects.filter(session=session, epoch=session.epoch, parent=None)
    tokens: int = summaries.aggregate(tokens=Coalesce(Sum("token_count"), 0))["tokens"]
    return tokens + count_tokens(session.summary_text)


def recount_workspace_days(workspace: Workspace) -> None:
    """Set a workspace's days from those of its sessions."""
    rows = (
        DailyTotal.objects.filter(workspace=workspace, session__isnull=False)
        .values("day", "kind")
        .annotate(
            entries=Sum("entry_count"),
            tokens=Sum("token_count"),
            active=Sum("active_token_count"),
        )
        .order_by("day", "kind")
    )
    totals = [
        DailyTotal(
            workspace=workspace,
            day=row["day"],
            kind=row["kind"],
            entry_count=row["entries"],
            token_count=row["tokens"],
            active_token_count=row["active"],
        )
        for row in rows
    ]
    DailyTotal.objects.filter(workspace=workspace, session__isnull=True).delete()
    DailyTotal.objects.bulk_create(totals)


def _days_of(session: Session) -> list[dict[str, Any]]:
    is_active = Q(epoch=session.epoch, position__gte=session.last_consolidated, summary__isnull=True)
    entries = Entry.objects.filter(session=session)
    days: QuerySet[Any, Any] = (
        entries.values("kind", day=Coalesce(TruncDate("occurred_at", tzinfo=UTC), Value(session.updated_at.date())))
        .annotate(
            entries=Count("id"),
            tokens=Sum("token_count"),
            active_entries=Count("id", filter=is_active),
            active_tokens=Coalesce(
                Sum(Case(When(is_active, then=F("token_count")), default=Value(0), output_field=BigIntegerField())),
                0,
                output_field=BigIntegerField(),
            ),
        )
        .order_by("day", "kind")
    )
    return list(days)
