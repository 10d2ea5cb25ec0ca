"""The rows that wait for a decision, as one queryset per table.

Failed imports, jobs and webhook deliveries are in ``memoryhub.inbox.failures``.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from django.db.models import Case, CharField, Exists, F, OuterRef, Q, QuerySet, Subquery, Value, When
from django.db.models.functions import Cast, Coalesce, Concat

from knowledge_app.models import Concern, HeldChange, HeldRow, MemoryDocument
from knowledge_app.services.documents.delivery import undelivered_documents
from knowledge_app.services.documents.outside_edits import SYNC
from memoryhub.inbox.attention_items import RECENT
from memoryhub.jobs.queue import LIVE
from memoryhub.models import Job
from sessions_app.models import AuditRecord, Run, Session, SourceFolder, Workspace
from sessions_app.models.runs import UNSETTLED_STATUSES

LAGS_AFTER = timedelta(minutes=10)  # a followed folder is checked every half minute
DELIVERED_WITHIN = timedelta(minutes=1)
WAITS_AFTER = timedelta(minutes=30)
GROWN_BEFORE = timedelta(hours=1)  # sessions that were over their limits before then were skipped
STOPPED = (Run.Status.PARKED, Run.Status.HELD, Run.Status.FAILED)
CLUSTER = Concat(
    "table", Value(" "), Cast("object_id", CharField()), output_field=CharField()
)  # of duplicates: its kept row
IS_CONFLICT = Q(author_kind=SYNC.kind, author_name=SYNC.name, file_restored_at=None)  # of a pending change


def held_changes(workspaces: QuerySet[Workspace]) -> QuerySet[HeldChange]:
    """Return pending changes. Those that fit IS_CONFLICT block writing the agent's file."""
    return HeldChange.objects.filter(workspace__in=workspaces.values("pk"), status=HeldChange.Status.PENDING)


def held_rows(workspaces: QuerySet[Workspace]) -> QuerySet[HeldRow]:
    """Return the rows of agents that the content check flagged."""
    return HeldRow.objects.filter(workspace__in=workspaces.values("pk")).waiting()


def findings(workspaces: QuerySet[Workspace]) -> QuerySet[Concern]:
    """Return the open findings of scans."""
    return Concern.objects.filter(workspace__in=workspaces.values("pk"), status=Concern.Status.OPEN)


def undelivered(workspaces: QuerySet[Workspace], now: datetime) -> QuerySet[MemoryDocument]:
    """Return documents whose text the agent doesn't have yet, unless two-way sync is about to write it."""
    is_late = Q(head__created_at__lt=now - DELIVERED_WITHIN)
    is_off = Q(workspace__is_followed=False) | Q(workspace__write_back=False)
    rows = undelivered_documents(workspaces).filter(is_late | is_off, workspace__unavailable_since=None)
    return rows.filter(Q(workspace__sync_state=None) | Q(workspace__sync_state__unwritten={})).select_related(None)


def stopped_runs(workspaces: QuerySet[Workspace], now: datetime) -> QuerySet[Run]:
    """Return parked runs, runs that await approval, and recently failed runs without a later one or a dismissal."""
    later = Run.objects.filter(kind=OuterRef("kind"), pk__gt=OuterRef("pk"))
    is_followed = Exists(
        later.filter(session=OuterRef("session"))
    )  # separate from the next, so that each uses its index
    is_followed_by_own = Exists(later.filter(session=None, workspace=OuterRef("workspace")))
    audited = AuditRecord.objects.filter(object_kind="run", object_id=Cast(OuterRef("pk"), CharField()))
    is_dismissed = Exists(audited.filter(action="run.dismissed"))
    in_inbox = HeldChange.objects.filter(run=OuterRef("pk"), status=HeldChange.Status.PENDING)
    waits = Q(status=Run.Status.PARKED) | Q(status=Run.Status.HELD) & Q(~Exists(in_inbox))
    is_resolved = Q(is_dismissed) | Q(is_followed) | Q(session=None) & Q(is_followed_by_own)
    failed = Q(status=Run.Status.FAILED, finished_at__gte=now - RECENT) & ~is_resolved  # cheap conditions first
    return Run.objects.filter(status__in=STOPPED, workspace__in=workspaces.values("pk")).filter(waits | failed)


def late_runs(workspaces: QuerySet[Workspace], now: datetime) -> QuerySet[Run]:
    """Return runs that should have started half an hour ago; usually no worker is running."""
    rows = Run.objects.filter(workspace__in=workspaces.values("pk"), status=Run.Status.QUEUED)
    return rows.filter(not_before__lt=now - WAITS_AFTER)


def folders(workspaces: QuerySet[Workspace], now: datetime) -> QuerySet[Workspace]:
    """Return workspaces whose folder can't be opened, synced or written, or hasn't been checked recently.

    ``since``: how long at most.
    """
    requests = Job.objects.filter(workspace=OuterRef("pk"), kind=Job.Kind.SYNC, status__in=LIVE).order_by("id")
    failing = SourceFolder.objects.filter(workspace=OuterRef("pk"), removed_at=None).exclude(error_code="")
    rows = workspaces.annotate(
        checked_at=Coalesce("sync_state__succeeded_at", "updated_at"),
        requested_at=Subquery(requests.values("created_at")[:1]),
        source_error=Subquery(failing.order_by("id").values("error")[:1]),
    )
    has_failed = Q(unavailable_since__isnull=False) | Q(sync_state__failed_at__isnull=False)
    is_unwritten = Q(sync_state__isnull=False) & ~Q(sync_state__unwritten={})
    limit = now - LAGS_AFTER
    lags = Q(is_followed=True, checked_at__lt=limit) | Q(requested_at__lt=limit)
    is_broken = has_failed | is_unwritten | Q(source_error__isnull=False)
    since = Case(
        When(unavailable_since__isnull=False, then=F("unavailable_since")),
        When(is_broken, then=F("checked_at")),
        default=Coalesce("requested_at", "checked_at"),
    )
    rows = rows.annotate(since=since)
    return rows.filter(~Q(path="") & (has_failed | is_unwritten | lags) | Q(source_error__isnull=False))


def over_budget(workspaces: QuerySet[Workspace], now: datetime) -> QuerySet[Session]:
    """Return sessions over their workspace's limits that won't be compressed.

    Automatic compression is off, or skipped them for an hour. Leaves out sessions with an unfinished run, which is
    another item, and those where somebody undid, cancelled or dismissed one within a week.
    """
    is_stuck = Q(workspace__auto_compress=False) | Q(updated_at__lt=now - GROWN_BEFORE)
    waits = Q(status__in=UNSETTLED_STATUSES)
    decided = Q(status__in=("undone", "cancelled", "failed"), finished_at__gte=now - RECENT)
    runs = Run.objects.filter(waits | decided, session=OuterRef("pk"), kind=Run.Kind.COMPRESSION)
    rows = Session.objects.filter(workspace__in=workspaces.values("pk")).over_limits()
    return rows.filter(is_stuck, ~Exists(runs), is_visible_to_agent=True)
