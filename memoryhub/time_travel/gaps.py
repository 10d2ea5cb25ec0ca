"""What of the past can't be told, part by part: said in words, never guessed."""

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
    """Something that the hub doesn't know of the past, in a sentence. ``part``: knowledge, sessions …; "" for all."""

    part: str
    text: str


def gaps_of(workspace: Workspace, at: datetime) -> list[Gap]:
    """Return what can't be told of a workspace at a moment. Eight queries."""
    found = [gap for look in (_forgotten, _sessions, _titles, _summaries) for gap in look(workspace, at)]
    return found + _states(workspace)


def _forgotten(workspace: Workspace, at: datetime) -> list[Gap]:
    count = Forgotten.objects.filter(workspace=workspace, forgotten_at__gt=at).count()
    words = ngettext(
        "Something was forgotten for ever since: it is missing here too, or stands as [forgotten].",
        "%(count)s times something was forgotten for ever since: it is missing here too, or stands as [forgotten].",
        count,
    )
    return [Gap(EVERYTHING, words % {"count": count})] if count else []


def _sessions(workspace: Workspace, at: datetime) -> list[Gap]:
    deleted = DeletedSession.objects.filter(workspace=workspace, deleted_at__gt=at).count()
    undated = undated_sessions(workspace).count()
    gaps = []
    if deleted:
        words = ngettext(
            "%(count)s session was deleted for ever since: what it held is not kept.",
            "%(count)s sessions were deleted for ever since: what they held is not kept.",
            deleted,
        )
        gaps.append(Gap("sessions", words % {"count": deleted}))
    if undated:
        words = ngettext(
            "%(count)s session came without an entry: when is not kept, and it is not shown.",
            "%(count)s sessions came without an entry: when is not kept, and they are not shown.",
            undated,
        )
        gaps.append(Gap("sessions", words % {"count": undated}))
    return gaps


def _titles(workspace: Workspace, at: datetime) -> list[Gap]:
    renamed = AuditRecord.objects.filter(workspace=workspace, action="session.renamed", at__gt=at)
    count = renamed.values("session").distinct().count()
    words = ngettext(
        "%(count)s session was given another title since: earlier titles are not kept.",
        "%(count)s sessions were given other titles since: earlier titles are not kept.",
        count,
    )
    return [Gap("sessions", words % {"count": count})] if count else []


def _summaries(workspace: Workspace, _at: datetime) -> list[Gap]:
    if not Summary.objects.filter(workspace=workspace).exclude(source_id="").exists():
        return []
    words = gettext(
        "When the hub learnt of summaries that came from a file is not kept: they are always shown, and what was "
        "active in their sessions can't be told."
    )
    return [Gap("sessions", words)]


def _states(workspace: Workspace) -> list[Gap]:
    """Tell of rows whose first states are missing, from before states were kept."""
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
        "The first states of %(count)s entry are not kept: it may have been there before.",
        "The first states of %(count)s entries are not kept: they may have been there before.",
        count,
    )


def _of_observations(count: int) -> str:
    return ngettext(
        "The first states of %(count)s observation are not kept: it may have been there before.",
        "The first states of %(count)s observations are not kept: they may have been there before.",
        count,
    )


def _of_key_values(count: int) -> str:
    return ngettext(
        "The first states of %(count)s value are not kept: it may have been there before.",
        "The first states of %(count)s values are not kept: they may have been there before.",
        count,
    )
