"""Invariants of runs, compressions and acknowledged appends."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import Any

from django.db.models import CharField, Count, Exists, F, IntegerField, OuterRef, Q, QuerySet, Subquery, Sum
from django.db.models.functions import Cast, Coalesce

from sessions_app.models import AppendReceipt, AuditRecord, Entry, Run, Session, Summary

Finding = tuple[str, str]


def check_runs() -> tuple[int, Iterable[Finding]]:
    """Finished consolidations of the current epoch cover the entries before the pointer without gap or overlap."""
    runs = Run.objects.filter(
        kind=Run.Kind.CONSOLIDATION, status=Run.Status.DONE, epoch=F("session__epoch"), session__isnull=False
    ).exclude(from_position=F("to_position"))
    return runs.count(), _gaps(runs)


def _gaps(runs: QuerySet[Run]) -> Iterator[Finding]:
    steps = runs.order_by("session_id", "from_position", "id").values_list(
        "session_id", "from_position", "to_position", "session__last_consolidated"
    )
    for session, group in groupby(steps.iterator(chunk_size=500), key=lambda step: step[0]):
        reached, pointer = 0, 0
        for _, start, end, pointer in group:  # noqa: B007  the last pointer is compared below
            if start != reached:
                yield f"a run starts at {start}, but the runs before it end at {reached}", f"session {session}"
            reached = end
        if reached != pointer:
            yield f"the runs end at {reached}, the pointer is {pointer}", f"session {session}"
    covered = runs.filter(session=OuterRef("pk"))
    uncovered = Session.objects.filter(last_consolidated__gt=0).exclude(Exists(covered))
    for pk in uncovered.values_list("pk", flat=True):
        yield "the pointer moved without a run", f"session {pk}"


def check_running() -> tuple[int, Iterable[Finding]]:
    """At most one run of a session is running, and only running runs hold a lease."""
    running = Run.objects.filter(status=Run.Status.RUNNING)
    doubled = running.filter(session__isnull=False).values("session_id").annotate(n=Count("id")).filter(n__gt=1)
    found = [(f"{row['n']} runs at once", f"session {row['session_id']}") for row in doubled]
    without = running.filter(Q(lease_owner="") | Q(lease_expires_at=None))
    found += [("running without a lease", f"run {pk}") for pk in without.values_list("pk", flat=True)[:100]]
    kept = Run.objects.exclude(status=Run.Status.RUNNING).exclude(lease_owner="")
    found += [("finished, but holds a lease", f"run {pk}") for pk in kept.values_list("pk", flat=True)[:100]]
    return running.count(), found


def check_compressions() -> tuple[int, Iterable[Finding]]:
    """A finished compression has a summary of its range and an audit record; others have no summary."""
    runs = Run.objects.filter(kind=Run.Kind.COMPRESSION)
    done = runs.filter(status=Run.Status.DONE, to_position__gt=F("from_position"), session__isnull=False)
    own_summary = Summary.objects.filter(
        run=OuterRef("pk"),
        session=OuterRef("session"),
        epoch=OuterRef("epoch"),
        first_position=OuterRef("from_position"),
        last_position=OuterRef("to_position") - 1,
    )
    found = [("no summary of its range", f"run {pk}") for pk in _pks(done.exclude(Exists(own_summary)))]
    stray = Summary.objects.filter(run__isnull=False).exclude(run__in=done)
    found += [("its run is not finished", f"summary {pk}") for pk in _pks(stray)]
    audited = AuditRecord.objects.filter(
        action="session.compressed", object_kind="summary", object_id=Cast(OuterRef("pk"), CharField())
    )
    unaudited = Summary.objects.filter(run__in=done).exclude(Exists(audited))
    found += [("no audit record", f"summary {pk}") for pk in _pks(unaudited)]
    sums = Summary.objects.filter(run__in=done, entry_count__gt=0).annotate(n=Sum("entries__token_count"))
    found += [
        ("its original tokens differ from its entries'", f"summary {pk}")
        for pk in _pks(sums.exclude(n=F("original_token_count")))
    ]
    return runs.count(), found


def check_receipts() -> tuple[int, Iterable[Finding]]:
    """The entries of every acknowledged append with a key exist."""
    entries = Entry.objects.filter(session=OuterRef("session"), epoch=OuterRef("epoch")).order_by().values("session")
    last = Subquery(entries.annotate(n=Count("id")).values("n"), output_field=IntegerField())
    lost = AppendReceipt.objects.annotate(n=Coalesce(last, 0)).filter(n__lt=F("first_position") + F("entry_count"))
    return AppendReceipt.objects.count(), [("its entries are missing", f"receipt {pk}") for pk in _pks(lost)]


def _pks(rows: QuerySet[Any]) -> list[int]:
    return list(rows.values_list("pk", flat=True)[:100])
