"""Scratchpads: workspaces that keep their memory only during a run (grid's persist_memory = false).

Ending a run deletes key-values, observations, knowledge, terms and cached responses with their histories, and the
runs that refer to them. The conversation stays, as grid's session state does.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import Max, Model
from django.utils.translation import gettext

from knowledge_app.models import (
    CachedResponse,
    Concern,
    Confirmation,
    GraphLayout,
    HygieneScore,
    KeyValue,
    KnowledgeEntry,
    Observation,
    RowVector,
    SemanticGraph,
    Term,
)
from memoryhub.lib.database import db_retry
from memoryhub.lib.errors import Refused
from sessions_app.models import AuditRecord, Run, Workspace
from sessions_app.services.audit import Actor, By, record

IDLE = timedelta(hours=6)  # of inactivity after which a run counts as ended
UPKEEP = Actor("run", "the worker")
_TABLES: tuple[type[Model], ...] = (
    Confirmation,
    Observation,
    KnowledgeEntry,
    KeyValue,
    CachedResponse,
    Term,
    RowVector,
    SemanticGraph,
    Concern,
    HygieneScore,
)
_KINDS = (Run.Kind.EXTRACTION, Run.Kind.EMBEDDING, Run.Kind.EDIT, Run.Kind.SCAN)


@db_retry.retried
@transaction.atomic
def end_run(workspace: Workspace, *, by: By) -> dict[str, int]:
    """Empty a scratchpad; return how many rows of each kind went. Raises Refused where memory is kept."""
    if Workspace.objects.select_for_update().get(pk=workspace.pk).persist_memory:
        raise Refused(
            gettext("This workspace keeps its memory. Only scratchpads can be emptied (setting: Keep memory)."),
            code="not_scratch",
        )
    counts: dict[str, int] = {}
    for model in _TABLES:
        rows = model._default_manager.filter(workspace=workspace)
        counts[str(model._meta.verbose_name_plural)] = rows.count()
        rows.delete()
        if hasattr(model, "history"):
            model.history.filter(workspace_id=workspace.pk).delete()
    Run.objects.filter(workspace=workspace, kind__in=_KINDS).delete()
    GraphLayout.objects.filter(workspace=workspace).delete()
    gone = {name: count for name, count in counts.items() if count}
    if gone:
        text = f"The scratchpad was emptied: {sum(gone.values())} rows"
        record(by, "scratch.ended", "workspace", workspace.pk, text, workspace=workspace, detail={"rows": gone})
    return gone


def idle_scratchpads(now: datetime) -> Iterable[Workspace]:
    """Return non-empty scratchpads that haven't changed for six hours, except imported ones."""
    for workspace in Workspace.objects.filter(persist_memory=False, path=""):
        told = AuditRecord.objects.filter(workspace=workspace).aggregate(at=Max("at"))["at"]
        used = CachedResponse.objects.filter(workspace=workspace).aggregate(at=Max("accessed_at"))["at"]
        latest = max((moment for moment in (told, used) if moment), default=None)
        holds = any(model._default_manager.filter(workspace=workspace).exists() for model in _TABLES)
        if holds and (latest is None or now - latest > IDLE):
            yield workspace
