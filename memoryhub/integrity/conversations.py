"""Invariants of sessions, entries, summaries and totals. Aggregate queries only, no loop over entries."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from django.db.models import (
    BigIntegerField,
    Case,
    Count,
    Exists,
    F,
    IntegerField,
    Max,
    Min,
    OuterRef,
    QuerySet,
    Subquery,
    Sum,
    Value,
    When,
)
from django.db.models.functions import Coalesce

from memoryhub.lib.tokens import count_tokens
from sessions_app.models import DailyTotal, Entry, Session, SourceFile, Summary
from sessions_app.querysets import IS_ACTIVE

Finding = tuple[str, str]


def check_positions() -> tuple[int, Iterable[Finding]]:
    """The positions of each epoch are 0 to n - 1."""
    epochs = Entry.objects.values("session_id", "epoch").annotate(
        n=Count("id"), first=Min("position"), last=Max("position")
    )
    gaps = epochs.exclude(first=0, last=F("n") - 1).order_by("session_id", "epoch")
    found = (
        (f"{row['n']} entries at positions {row['first']} to {row['last']}", _epoch(row["session_id"], row["epoch"]))
        for row in gaps
    )
    return Entry.objects.count(), found


def _epoch(session: int, epoch: int) -> str:
    return f"session {session}, epoch {epoch}"


def _of_current_epoch() -> QuerySet[Entry, Any]:
    return Entry.objects.filter(session=OuterRef("pk"), epoch=OuterRef("epoch")).order_by().values("session")


def check_pointers() -> tuple[int, Iterable[Finding]]:
    """A pointer is between 0 and the number of entries of its epoch."""
    counted = Subquery(_of_current_epoch().annotate(n=Count("id")).values("n"), output_field=IntegerField())
    beyond = Session.objects.annotate(n=Coalesce(counted, 0)).filter(last_consolidated__gt=F("n"))
    found = (
        (f"the pointer is {pointer}, with {n} entries", f"session {pk}")
        for pk, pointer, n in beyond.values_list("pk", "last_consolidated", "n")
    )
    return Session.objects.count(), found


def check_lengths() -> tuple[int, Iterable[Finding]]:
    """A session's next position is the number of entries of its current epoch."""
    counted = Subquery(_of_current_epoch().annotate(n=Count("id")).values("n"), output_field=IntegerField())
    wrong = Session.objects.annotate(n=Coalesce(counted, 0)).exclude(next_position=F("n"))
    found = (
        (f"the next position is {position}, with {n} entries", f"session {pk}")
        for pk, position, n in wrong.values_list("pk", "next_position", "n")
    )
    return Session.objects.count(), found


def check_totals() -> tuple[int, Iterable[Finding]]:
    """A session's totals are the sums of its entries and summaries."""
    return Session.objects.count(), _wrong_totals()


def _wrong_totals() -> Iterator[Finding]:
    sums: dict[int, dict[str, Any]] = {
        row["session_id"]: {**row}
        for row in Entry.objects.values("session_id").annotate(
            entry_count=Count("id"),
            active_entry_count=Count("id", filter=IS_ACTIVE),
            total_tokens=Sum("token_count"),
            active_tokens=Sum(
                Case(When(IS_ACTIVE, then=F("token_count")), default=Value(0), output_field=BigIntegerField())
            ),
        )
    }
    summaries = dict(
        Summary.objects.filter(parent=None, epoch=F("session__epoch"))
        .values("session_id")
        .annotate(tokens=Sum("token_count"))
        .values_list("session_id", "tokens")
    )
    names = ("entry_count", "active_entry_count", "total_tokens", "active_tokens")
    for session in Session.objects.only("summary_text", "summary_tokens", *names).iterator(chunk_size=500):
        row: dict[str, Any] = sums.get(session.pk, {})
        wrong = [name for name in names if getattr(session, name) != (row.get(name) or 0)]
        if session.summary_tokens != summaries.get(session.pk, 0) + count_tokens(session.summary_text):
            wrong.append("summary_tokens")
        if wrong:
            yield f"{', '.join(wrong)} differ from the entries", f"session {session.pk}"


def check_sources() -> tuple[int, Iterable[Finding]]:
    """The epoch that a file feeds is the session's current one, or has entries."""
    fed = SourceFile.objects.filter(session__isnull=False)
    entries = Entry.objects.filter(session=OuterRef("session"), epoch=OuterRef("epoch"))
    stray = fed.exclude(epoch=F("session__epoch")).exclude(Exists(entries))
    found = [
        ("it feeds an epoch that doesn't exist", f"file {pk}, {_epoch(session, epoch)}")
        for pk, session, epoch in stray.values_list("pk", "session_id", "epoch")
    ]
    return fed.count(), found


def check_days() -> tuple[int, Iterable[Finding]]:
    """A session's daily totals add up to its totals."""
    days = DailyTotal.objects.filter(session=OuterRef("pk")).order_by().values("session")

    def added(name: str) -> Coalesce:
        return Coalesce(
            Subquery(days.annotate(n=Sum(name)).values("n"), output_field=BigIntegerField()),
            Value(0),
            output_field=BigIntegerField(),
        )

    wrong = Session.objects.annotate(
        n=added("entry_count"), tokens=added("token_count"), active=added("active_token_count")
    ).exclude(n=F("entry_count"), tokens=F("total_tokens"), active=F("active_tokens"))
    found = (
        ("its daily totals differ from its totals", f"session {pk}") for pk in wrong.values_list("pk", flat=True)
    )
    return DailyTotal.objects.filter(session__isnull=False).count(), found


def check_workspace_days() -> tuple[int, Iterable[Finding]]:
    """A workspace's daily totals are the sums of its sessions'."""
    by_day = (
        DailyTotal.objects.order_by()
        .values_list("workspace_id", "day", "kind")
        .annotate(n=Sum("entry_count"), tokens=Sum("token_count"), active=Sum("active_token_count"))
    )
    kept, added = by_day.filter(session__isnull=True), by_day.filter(session__isnull=False)
    differing = set(kept) ^ set(added)
    places = sorted({(workspace, str(day)) for workspace, day, *_ in differing})
    return len(kept), [
        ("its total differs from the sessions'", f"workspace {workspace}, {day}") for workspace, day in places
    ]


def check_summaries() -> tuple[int, Iterable[Finding]]:
    """Entries lie within their summary, and a summary counts its entries and spans the summaries that it includes."""
    stray = Entry.objects.filter(summary__isnull=False).exclude(
        summary__session=F("session_id"),
        summary__epoch=F("epoch"),
        summary__first_position__lte=F("position"),
        summary__last_position__gte=F("position"),
    )
    found: list[Finding] = [
        ("its summary doesn't span it", f"entry {pk}") for pk in stray.values_list("pk", flat=True)[:100]
    ]
    counted = Summary.objects.annotate(n=Count("entries")).exclude(n=F("entry_count"))
    found += [
        (f"entry_count is {kept}, with {n} entries", f"summary {pk}")
        for pk, kept, n in counted.values_list("pk", "entry_count", "n")[:100]
    ]
    outside = Summary.objects.filter(parent__isnull=False).exclude(
        parent__session=F("session_id"),
        parent__epoch=F("epoch"),
        parent__first_position__lte=F("first_position"),
        parent__last_position__gte=F("last_position"),
    )
    found += [("its parent doesn't span it", f"summary {pk}") for pk in outside.values_list("pk", flat=True)[:100]]
    return Summary.objects.count(), found
