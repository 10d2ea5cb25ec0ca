"""Find secrets in what an import brought, before the next scan."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from itertools import islice

from django.utils import timezone

from knowledge_app.models import Concern
from memoryhub.hygiene.findings import BATCH_ROWS, MAX_EACH, Finding, find_in_row, new_concern
from memoryhub.hygiene.rows import ENTRIES, read_batches
from memoryhub.lib.database import db_retry
from sessions_app.models import Entry, Workspace

MARGIN = 100  # further messages, for those that were added to other sessions at the same time


def find_secrets(workspace: Workspace, *, count: int, now: datetime) -> None:
    """Store the findings in the newest ``count`` messages; scans confirm or settle them."""
    if not count:
        return
    rows = Entry.objects.filter(workspace=workspace).order_by("-pk")
    older = rows.values_list("pk", flat=True)[count + MARGIN : count + MARGIN + 1].first()
    open_ones = Concern.objects.filter(workspace=workspace, table=ENTRIES, status=Concern.Status.OPEN)
    room = max(0, MAX_EACH - open_ones.count())
    findings = islice(_findings(workspace, older or 0, now), room)
    _store([new_concern(workspace, None, finding, now) for finding in findings])


@db_retry.retried
def _store(concerns: list[Concern]) -> None:
    Concern.objects.bulk_create(concerns, batch_size=BATCH_ROWS, ignore_conflicts=True)


def _findings(workspace: Workspace, after: int, now: datetime) -> Iterator[Finding]:
    today = timezone.localdate(now)
    for rows in read_batches(workspace, ENTRIES, after=after):
        for row in rows:
            yield from find_in_row(row, today=today, now=now, stale_days=0)
