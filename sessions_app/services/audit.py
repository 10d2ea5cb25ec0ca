"""The audit trail: one record per change, in its transaction. It is also the activity feed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import transaction
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from memoryhub.lib.database.prepared import PreparedRows, insert_row
from memoryhub.models import Job
from sessions_app.models import AuditRecord, MutationGuard, Session, Webhook, WebhookDelivery, Workspace
from sessions_app.services.audit_chain import audit_mac

RECENT_IDS = 256  # before the latest record: a transaction that commits later may have an id among them
_ENABLED_HOOKS = PreparedRows(1, lambda workspace: Webhook.objects.filter(workspace=workspace, is_enabled=True))
# Events that webhooks can subscribe to. docs/activity.md maps the names that AgTerm and others use.
EVENTS: dict[str, Promise | str] = {
    "entry.added": _("entries were added"),
    "session.compressed": _("a compression was committed"),
    "session.cleared": _("a session was cleared"),
    "run.started": _("a run started"),
    "run.finished": _("a run is done"),
    "run.failed": _("a run failed, waits for another attempt, or is parked"),
}


@dataclass(frozen=True)
class Actor:
    """Who acts: ``kind`` (person, agent, run, sync or command) and a display name."""

    kind: str
    name: str


@dataclass(frozen=True)
class By:
    """Who makes a change, and when."""

    actor: Actor
    at: datetime


def record(
    by: By,
    action: str,
    object_kind: str,
    object_id: object,
    text: str,
    *,
    workspace: Workspace | None = None,
    session: Session | None = None,
    before_hash: str = "",
    after_hash: str = "",
    detail: dict[str, Any] | None = None,
) -> AuditRecord:
    """Write an audit record and queue its webhook deliveries.

    ``action``: ``noun.verb``. ``text``: one sentence without memory content.
    """
    written = AuditRecord(
        workspace=workspace,
        session=session,
        actor_kind=by.actor.kind,
        actor_name=by.actor.name[:200],
        action=action,
        object_kind=object_kind,
        object_id=str(object_id),
        text=text,
        before_hash=before_hash,
        after_hash=after_hash,
        detail=detail or {},
        at=by.at,
    )
    written.mac = audit_mac(written)
    insert_row(written)
    if workspace is not None and action in EVENTS:
        _queue_deliveries(written, workspace)
    return written


def _queue_deliveries(written: AuditRecord, workspace: Workspace) -> None:
    """Queue a job for each webhook that subscribes to a record."""
    for hook in _ENABLED_HOOKS.all(workspace.pk):
        if hook.actions and written.action not in hook.actions:
            continue
        delivery = WebhookDelivery(webhook=hook, record=written)
        delivery.job = Job.objects.create(
            kind=Job.Kind.WEBHOOK, workspace=workspace, requested_by="", created_at=written.at, not_before=written.at
        )
        delivery.save()


@contextmanager
def open_guard(reason: str) -> Iterator[None]:
    """Allow the removal of append-only rows in this block, which is one transaction."""
    with transaction.atomic():
        guard = MutationGuard.objects.create(reason=reason)
        yield
        guard.delete()
