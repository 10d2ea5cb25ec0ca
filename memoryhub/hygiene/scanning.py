"""Hygiene scans: requested, run, and scheduled daily."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

from django.db import transaction
from django.db.models import Exists, F, OuterRef, Q, QuerySet, Subquery
from django.db.models.functions import TruncDate
from django.utils import timezone
from django.utils.translation import gettext_noop

from knowledge_app.models import Fact, HygieneScore, KnowledgeEntry, Observation
from memoryhub.hygiene.findings import FindingSet, concern_statuses, find_in_pairs, find_in_row, store_findings
from memoryhub.hygiene.rows import COMPARED, ENTRIES, MEMORY, Row, living_rows, read_batches
from memoryhub.lib.database import db_retry
from sessions_app.models import AuditRecord, Run, Workspace
from sessions_app.models.runs import LIVE_STATUSES, UNSETTLED_STATUSES
from sessions_app.services.audit import Actor, By
from sessions_app.services.runs import finish_run, hold_lease, renew_lease
from sessions_app.services.workspace_runs import request_workspace_run

DAILY_SCAN = Actor("run", "the daily scan")
BETWEEN = timedelta(days=1)
SWEPT_WORKSPACES = 20
MAX_COMPARED = 50_000  # rows compared with each other


def request_scan(workspace: Workspace, *, by: By) -> tuple[Run, bool]:
    """Return the queued or running scan of a workspace, and whether it is new."""
    if run := live_scan(workspace):
        return run, False
    return request_workspace_run(workspace, Run.Kind.SCAN, options={}, by=by)


def scan_first(workspace: Workspace, *, by: By) -> None:
    """Request the first scan of a workspace after its import; later ones are scheduled."""
    if not HygieneScore.objects.filter(workspace=workspace).exists():
        request_scan(workspace, by=by)


def live_scan(workspace: Workspace) -> Run | None:
    """Return the queued or running scan of a workspace."""
    scans = Run.objects.filter(workspace=workspace, kind=Run.Kind.SCAN, status__in=LIVE_STATUSES)
    return scans.order_by("id").first()


def carry_out(run: Run, *, now: Callable[[], datetime]) -> None:
    """Execute a scan: read rows and messages, compare rows, store all findings at the end.

    ``run.proposal`` then has the score, the numbers of rows and messages read, findings by kind, findings over the
    limit by kind, and whether the comparison was cut short.
    """
    workspace = Workspace.objects.get(pk=run.workspace_id)
    start = now()
    kept = FindingSet(concern_statuses(workspace))
    total = sum(living_rows(workspace, table).count() for table in (*MEMORY, ENTRIES))
    today = timezone.localdate(start)
    compared: list[Row] = []
    done = 0
    row_count = 0
    for table in (*MEMORY, ENTRIES):
        for rows in read_batches(workspace, table):
            for row in rows:
                kept.add(find_in_row(row, today=today, now=start, stale_days=workspace.stale_days))
            compared += rows if table in COMPARED and len(compared) < MAX_COMPARED else []
            done += len(rows)
            row_count += len(rows) if table != ENTRIES else 0
            renew_lease(run, stage=gettext_noop("reading"), steps_done=done, steps_total=max(total, done))
    renew_lease(run, stage=gettext_noop("comparing"), steps_done=done, steps_total=max(total, done))
    pairs, is_cut = find_in_pairs(compared, has_mirror=workspace.layout == Workspace.Layout.GRIP)
    kept.add(pairs)
    is_cut = is_cut or len(compared) >= MAX_COMPARED
    renew_lease(run, stage=gettext_noop("writing"), steps_done=done, steps_total=max(total, done))
    _commit(run, kept, row_count, done - row_count, is_cut=is_cut, now=now())


@db_retry.retried
@transaction.atomic
def _commit(run: Run, kept: FindingSet, row_count: int, message_count: int, *, is_cut: bool, now: datetime) -> None:
    hold_lease(run)
    score = store_findings(run, kept, row_count=row_count, now=now)
    proposal = {
        "score": round(score.score, 1),
        "rows": row_count,
        "messages": message_count,
        "found": dict(kept.counts),
        "left_out": kept.left_out(),
        "is_cut": is_cut,
    }
    finish_run(run, status=Run.Status.DONE, now=now, proposal=proposal)


def request_due(now: datetime) -> list[Run]:
    """Request scans that are due: a day after the last scan if something changed or a review date passed since, and a
    day after a workspace was created."""
    due = list(_due(now).order_by("id")[:SWEPT_WORKSPACES])
    return [request_scan(workspace, by=By(DAILY_SCAN, now))[0] for workspace in due]


def _due(now: datetime) -> QuerySet[Workspace]:
    a_day_ago = now - BETWEEN
    scans = Run.objects.filter(workspace=OuterRef("pk"), kind=Run.Kind.SCAN)
    resting = scans.filter(Q(status__in=UNSETTLED_STATUSES) | Q(created_at__gt=a_day_ago))
    latest = HygieneScore.objects.filter(workspace=OuterRef("pk")).order_by("-id").values("at")[:1]
    latest_record = AuditRecord.objects.filter(workspace=OuterRef("pk")).order_by("-id").values("at")[:1]
    today = timezone.localdate(now)
    to_review = Q(pk__in=[])
    for model in (Fact, KnowledgeEntry, Observation):
        dated = model.objects.filter(workspace=OuterRef("pk"), review_by__lte=today)
        to_review |= Q(Exists(dated.filter(review_by__gt=OuterRef("scanned_on"))))
    waiting: Any = Workspace.objects.filter(~Exists(resting), created_at__lte=a_day_ago)
    waiting = waiting.annotate(scanned_at=Subquery(latest), told_at=Subquery(latest_record))
    waiting = waiting.annotate(scanned_on=TruncDate("scanned_at"))
    has_changed = Q(told_at__gt=F("scanned_at")) | to_review
    found: QuerySet[Workspace] = waiting.filter(Q(scanned_at=None) | Q(scanned_at__lte=a_day_ago) & has_changed)
    return found
