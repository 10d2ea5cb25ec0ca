"""What a snapshot can't show, and why, as sentences for each part of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import Exists, OuterRef
from django.utils.translation import gettext, ngettext

from knowledge_app.models import Forgotten, KeyValue, KnowledgeEntry, Observation
from memoryhub.time_travel.sessions import undated_sessions
from sessions_app.models import AuditRecord, DeletedSession, Summary, Workspace

EVERYTHING = ""


@dataclass(frozen=True)
class Gap:
    """Something missing from a snapshot. ``part``: knowledge, sessions …; "" for all."""

    part: str
    text: str


def gaps_of(workspace: Workspace, at: datetime) -> list[Gap]:
    """Return what a snapshot of a workspace lacks. Eight queries."""
    found = [gap for look in (_forgotten, _sessions, _titles, _summaries) for gap in look(workspace, at)]
    return found + _states(workspace)


def _forgotten(workspace: Workspace, at: datetime) -> list[Gap]:
    since = Forgotten.objects.filter(forgotten_at__gt=at)
    count = since.filter(workspace=workspace).count()
    count += sum(workspace.slug in receipt.places for receipt in since.filter(workspace=None))
    words = ngettext(
        "Something was erased since then. It is missing here too, or shown as [forgotten].",
        "%(count)s erasures were made since then. What they removed is missing here too, or shown as [forgotten].",
        count,
    )
    return [Gap(EVERYTHING, words % {"count": count})] if count else []


def _sessions(workspace: Workspace, at: datetime) -> list[Gap]:
    deleted = DeletedSession.objects.filter(workspace=workspace, deleted_at__gt=at).count()
    undated = undated_sessions(workspace).count()
    gaps = []
    if deleted:
        words = ngettext(
            "%(count)s session was deleted since then and can't be shown.",
            "%(count)s sessions were deleted since then and can't be shown.",
            deleted,
        )
        gaps.append(Gap("sessions", words % {"count": deleted}))
    if undated:
        words = ngettext(
            "%(count)s session was imported without entries. The time isn't known, so it isn't shown.",
            "%(count)s sessions were imported without entries. The time isn't known, so they aren't shown.",
            undated,
        )
        gaps.append(Gap("sessions", words % {"count": undated}))
    return gaps


def _titles(workspace: Workspace, at: datetime) -> list[Gap]:
    renamed = AuditRecord.objects.filter(workspace=workspace, action="session.renamed", at__gt=at)
    count = renamed.values("session").distinct().count()
    words = ngettext(
        "%(count)s session was renamed since then. Earlier titles aren't kept.",
        "%(count)s sessions were renamed since then. Earlier titles aren't kept.",
        count,
    )
    return [Gap("sessions", words % {"count": count})] if count else []


def _summaries(workspace: Workspace, _at: datetime) -> list[Gap]:
    if not Summary.objects.filter(workspace=workspace).exclude(source_id="").exists():
        return []
    words = gettext(
        "The times at which summaries were imported aren't known: they are always shown, and the active entries of "
        "their sessions can't be counted."
    )
    return [Gap("sessions", words)]


def _states(workspace: Workspace) -> list[Gap]:
    """Report rows from before states were stored, whose first states are missing."""
    tables: list[tuple[str, Any, Callable[[int], str]]] = [
        ("knowledge", KnowledgeEntry, _of_knowledge),
        ("observations", Observation, _of_observations),
        ("key-values", KeyValue, _of_key_values),
    ]
    gaps = []
    for part, model, words in tables:
        made = model.history.filter(id=OuterRef("pk"), history_type="+")
        count = model.objects.filter(~Exists(made), workspace=workspace).count()
        if count:
            gaps.append(Gap(part, words(count) % {"count": count}))
    return gaps


def _of_knowledge(count: int) -> str:
    return ngettext(
        "%(count)s entry has no stored creation: it may have existed earlier.",
        "%(count)s entries have no stored creation: they may have existed earlier.",
        count,
    )


def _of_observations(count: int) -> str:
    return ngettext(
        "%(count)s observation has no stored creation: it may have existed earlier.",
        "%(count)s observations have no stored creation: they may have existed earlier.",
        count,
    )


def _of_key_values(count: int) -> str:
    return ngettext(
        "%(count)s value has no stored creation: it may have existed earlier.",
        "%(count)s values have no stored creation: they may have existed earlier.",
        count,
    )
