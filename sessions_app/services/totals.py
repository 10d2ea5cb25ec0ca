"""Totals of sessions and days, so that pages don't scan entries."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime
from typing import Any

from django.db import IntegrityError, connection, transaction
from django.db.models import BigIntegerField, Case, Count, F, Q, QuerySet, Sum, Value, When
from django.db.models.functions import Coalesce, TruncDate

from memoryhub.lib.database.add_to_rows import add_to_rows
from memoryhub.lib.database.prepared import update_row
from memoryhub.lib.tokens import count_tokens
from sessions_app.models import DailyTotal, Entry, Session, Summary
from sessions_app.querysets import IN_CONVERSATION

PARTS = 16  # rows for the totals of a workspace's day and kind on PostgreSQL
AMOUNTS = ("entry_count", "token_count", "active_token_count")
SESSION_TOTALS = ("entry_count", "total_tokens", "active_entry_count", "active_tokens")


def add_entries(session: Session, entries: Sequence[Entry], *, now: datetime) -> None:
    """Add new entries of the current epoch to the totals of the session and workspace. Constant time.

    Call inside the transaction that wrote them, with the session locked.
    """
    tokens = sum(entry.token_count for entry in entries)
    session.next_position += len(entries)
    session.entry_count += len(entries)
    active = [entry for entry in entries if not entry.is_injected]
    session.active_entry_count += len(active)
    session.total_tokens += tokens
    session.active_tokens += sum(entry.token_count for entry in active)
    session.updated_at = now
    update_row(session, ["next_position", "updated_at", *SESSION_TOTALS])
    days: defaultdict[tuple[date, str], list[int]] = defaultdict(lambda: [0, 0, 0])
    for entry in entries:
        day = (entry.occurred_at or now).astimezone(UTC).date()
        active_tokens = 0 if entry.is_injected else entry.token_count
        for place, amount in enumerate((1, entry.token_count, active_tokens)):
            days[day, entry.kind][place] += amount
    _add_to_session(session, days)
    _add_to_workspace(session, days)


def _add_to_session(session: Session, days: Mapping[tuple[date, str], Sequence[int]]) -> None:
    rows = [row | {"session_id": session.pk} for row in _rows(session, days)]
    unique, condition = ("session_id", "day", "kind"), "session_id IS NOT NULL"
    add_to_rows(DailyTotal, rows, unique=unique, condition=condition, sums=AMOUNTS)


def _add_to_workspace(session: Session, days: Mapping[tuple[date, str], Sequence[int]]) -> None:
    rows = [row | {"part": _part_of(session)} for row in _rows(session, days)]
    unique, condition = ("workspace_id", "day", "kind", "part"), "session_id IS NULL"
    add_to_rows(DailyTotal, rows, unique=unique, condition=condition, sums=AMOUNTS)


def _rows(session: Session, days: Mapping[tuple[date, str], Sequence[int]]) -> list[dict[str, Any]]:
    return [
        {"workspace_id": session.workspace_id, "day": day, "kind": kind} | dict(zip(AMOUNTS, amounts, strict=True))
        for (day, kind), amounts in sorted(days.items())
    ]


def _part_of(session: Session) -> int:
    """Return which of the workspace's rows counts a session. SQLite has one writer, so one row is enough."""
    return session.pk % PARTS if connection.vendor == "postgresql" else 0


def recount_session(session: Session) -> None:
    """Recompute a session's totals from its entries and adjust the workspace's.

    Call inside the transaction that changed the entries, with the session locked.
    """
    before = DailyTotal.objects.filter(session=session).values_list("day", "kind", *AMOUNTS)
    old = {(day, kind): amounts for day, kind, *amounts in before}
    days = _days_of(session)
    new = {(row["day"], row["kind"]): [row["entries"], row["tokens"], row["active_tokens"]] for row in days}
    DailyTotal.objects.filter(session=session).delete()
    _add_to_session(session, new)
    nothing = [0, 0, 0]
    changes = {
        place: [n - o for n, o in zip(new.get(place, nothing), old.get(place, nothing), strict=True)]
        for place in sorted(old.keys() | new.keys())
    }
    _change_workspace(session, {place: change for place, change in changes.items() if any(change)})
    session.entry_count = sum(row["entries"] for row in days)
    session.total_tokens = sum(row["tokens"] for row in days)
    session.active_entry_count = sum(row["active_entries"] for row in days)
    session.active_tokens = sum(row["active_tokens"] for row in days)
    session.summary_tokens = count_summary_tokens(session)
    session.save(update_fields=[*SESSION_TOTALS, "summary_tokens"])


def forget_days(session: Session) -> None:
    """Remove a session's daily totals, also from the workspace's, before it is deleted."""
    for row in DailyTotal.objects.filter(session=session).order_by("day", "kind"):
        change = [-getattr(row, name) for name in AMOUNTS]
        _move_day(session, row.day, row.kind, change)
    DailyTotal.objects.filter(session=session).delete()


def _change_workspace(session: Session, changes: Mapping[tuple[date, str], Sequence[int]]) -> None:
    """Add to daily totals of a session's workspace, in their order, so that others don't wait in a circle."""
    if all(min(change) >= 0 and change[2] <= change[1] for change in changes.values()):  # valid as rows of their own
        _add_to_workspace(session, changes)
        return
    for (day, kind), change in changes.items():
        _move_day(session, day, kind, change)


def _move_day(session: Session, day: date, kind: str, change: Sequence[int]) -> None:
    """Add to a daily total of a session's workspace; create it if missing, delete it if it becomes zero."""
    place = {"workspace_id": session.workspace_id, "session": None, "day": day, "kind": kind}
    place["part"] = _part_of(session)
    row = DailyTotal.objects.filter(**place)
    moved = {name: F(name) + amount for name, amount in zip(AMOUNTS, change, strict=True)}
    if row.update(**moved):
        if change[0] < 0:
            row.filter(entry_count=0).delete()
        return
    amounts = dict(zip(AMOUNTS, change, strict=True))
    try:
        with transaction.atomic():
            DailyTotal.objects.create(**place, **amounts)
    except IntegrityError:  # created concurrently by another session
        row.update(**moved)


def count_summary_tokens(session: Session) -> int:
    """Return the tokens of summaries in the context: the session's summary text and top-level summaries."""
    summaries = Summary.objects.filter(session=session, epoch=session.epoch, parent=None)
    tokens: int = summaries.aggregate(tokens=Coalesce(Sum("token_count"), 0))["tokens"]
    return tokens + count_tokens(session.summary_text)


def _days_of(session: Session) -> list[dict[str, Any]]:
    place = Q(epoch=session.epoch, position__gte=session.last_consolidated)
    is_active = IN_CONVERSATION & place & Q(summary__isnull=True)
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
