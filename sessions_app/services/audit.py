"""One record for each state change, in the transaction that makes it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import transaction

from sessions_app.models import AuditRecord, MutationGuard, Workspace


@dataclass(frozen=True)
class Actor:
    """Who does something: ``kind`` person, agent, run, sync or command, and a name for people to read."""

    kind: str
    name: str


def record(
    actor: Actor,
    action: str,
    object_kind: str,
    object_id: object,
    text: str,
    *,
    at: datetime,
    workspace: Workspace | None = None,
    before_hash: str = "",
    after_hash: str = "",
    detail: dict[str, Any] | None = None,
) -> AuditRecord:
    """Write one audit record. ``action`` reads ``noun.verb``; ``text`` is one sentence without memory content."""
    return AuditRecord.objects.create(
        workspace=workspace,
        actor_kind=actor.kind,
        actor_name=actor.name,
        action=action,
        object_kind=object_kind,
        object_id=str(object_id),
        text=text,
        before_hash=before_hash,
        after_hash=after_hash,
        detail=detail or {},
        at=at,
    )


@contextmanager
def open_guard(reason: str) -> Iterator[None]:
    """Let append-only rows be removed inside this block: one transaction, with the guard gone at its end."""
    with transaction.atomic():
        guard = MutationGuard.objects.create(reason=reason)
        yield
        guard.delete()
