"""Records of finished work, which a worker deletes when they are older than the setting says.

Nothing that belongs to the memory is among them, nor the audit log, whose chain would break.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from django.db.models import Exists, OuterRef, Q, QuerySet
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from memoryhub.jobs.uploads import FOLDER
from sessions_app.models import AppendReceipt, ImportReport, Run, WebhookDelivery
from sessions_app.services.stored_settings import hub_settings

ASKING = [Run.Kind.COMPRESSION, Run.Kind.CONSOLIDATION, Run.Kind.EXTRACTION]  # runs that keep a model's reply
BATCH = 2_000  # rows of a kind that one call deletes


def old_records(days: int, now: datetime) -> list[tuple[Promise, QuerySet[Any]]]:
    """Return each kind of record with its rows that are older than so many days."""
    limit = now - timedelta(days=days)
    later = ImportReport.objects.filter(workspace=OuterRef("workspace"), status=OuterRef("status"))
    is_superseded = Q(workspace=None) | Exists(later.filter(pk__gt=OuterRef("pk")))
    over = ImportReport.objects.exclude(status="").filter(is_superseded, finished_at__lt=limit)
    failed = Run.objects.filter(status=Run.Status.FAILED, kind__in=ASKING, finished_at__lt=limit)
    return [
        (_("webhook deliveries"), WebhookDelivery.objects.exclude(status="").filter(tried_at__lt=limit)),
        (_("import reports"), over.exclude(path__contains=f"/{FOLDER}/")),  # Forget finds uploads by their reports
        (_("idempotency keys of appends"), AppendReceipt.objects.filter(created_at__lt=limit)),
        (_("replies of failed runs"), failed.exclude(proposal={})),
    ]


def delete_old_records(now: datetime) -> None:
    """Delete old records, some of each kind per call; 0 days keeps them. Runs stay without their reply."""
    days = hub_settings().values["MEMORYHUB_RECORD_DAYS"]
    for _name, rows in old_records(days, now) if days else ():
        chosen = rows.model.objects.filter(pk__in=list(rows.order_by("pk").values_list("pk", flat=True)[:BATCH]))
        if rows.model is Run:
            chosen.update(proposal={})
        else:
            chosen.delete()
