"""The timeline of a workspace: recent runs and imports, and moments to jump to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.utils.translation import gettext

from memoryhub.lib.charts import Minimap, MinimapMark, Segment
from memoryhub.time_travel.parsing import JUST_BEFORE, before_run
from sessions_app.models import AuditRecord, Run, Workspace

MOST = 20  # runs, and the same number of imports
WIDTH = 0.6  # of a mark, in percent of the timeline
CHANGING = (Run.Kind.CONSOLIDATION, Run.Kind.COMPRESSION, Run.Kind.COMPACTION, Run.Kind.EXTRACTION, Run.Kind.EDIT)
IMPORTS = ("workspace.imported", "session.imported")


@dataclass(frozen=True)
class Mark:
    """A run (``run``: its key) or an import; ``before``: the moment just before it."""

    at: datetime
    before: datetime
    label: str
    kind: str
    run: int | None = None


@dataclass(frozen=True)
class SuggestedMoment:
    label: str
    at: datetime


def marks_of(workspace: Workspace) -> list[Mark]:
    """Return the latest runs and imports that changed the memory, latest first. Two queries."""
    done = (Run.Status.DONE, Run.Status.UNDONE)
    runs = Run.objects.filter(workspace=workspace, kind__in=CHANGING, status__in=done, origin=Run.Origin.HUB)
    imports = AuditRecord.objects.filter(
        object_kind="workspace", object_id=str(workspace.pk), workspace=workspace, action__in=IMPORTS
    )
    marks = [_of_run(run) for run in runs.only(*RUN_FIELDS).order_by("-id")[:MOST]]
    marks += [
        Mark(at, at - JUST_BEFORE, text, "import")
        for at, text in imports.order_by("-id").values_list("at", "text")[:MOST]
    ]
    return sorted(marks, key=lambda mark: mark.at, reverse=True)


RUN_FIELDS = ("kind", "created_at", "started_at", "finished_at")


def _of_run(run: Run) -> Mark:
    before = before_run(run)
    label = gettext("%(kind)s, run %(number)s") % {"kind": run.get_kind_display(), "number": run.pk}
    return Mark(before + JUST_BEFORE, before, label, run.kind, run.pk)


def suggested_moments(marks: Sequence[Mark], since: datetime, now: datetime) -> list[SuggestedMoment]:
    """Return suggested moments: a day and a week ago, before the latest consolidation and import.

    None is before ``since``, when the workspace's record begins.
    """
    choices = [
        SuggestedMoment(gettext("Yesterday"), now - timedelta(days=1)),
        SuggestedMoment(gettext("A week ago"), now - timedelta(days=7)),
    ]
    consolidation = next((mark for mark in marks if mark.kind == Run.Kind.CONSOLIDATION), None)
    latest_import = next((mark for mark in marks if mark.kind == "import"), None)
    if consolidation:
        choices.append(SuggestedMoment(gettext("Before the last consolidation"), consolidation.before))
    if latest_import:
        choices.append(SuggestedMoment(gettext("Before the last import"), latest_import.before))
    return [choice for choice in choices if choice.at >= since]


def timeline(marks: Sequence[Mark], chosen: Sequence[tuple[str, datetime]], now: datetime) -> Minimap:
    """Return the timeline up to now: runs and imports as segments, chosen moments as marks."""
    moments = [mark.at for mark in marks] + [at for _, at in chosen]
    start = min(moments, default=now)
    span = max((now - start).total_seconds(), 1.0)

    def place(at: datetime) -> float:
        return round(min(100.0, max(0.0, 100 * (at - start).total_seconds() / span)), 3)

    segments = tuple(
        Segment(
            kind="folded" if mark.kind == "import" else "live",
            label=mark.label,
            href="",
            start=min(place(mark.at), 100 - WIDTH),
            width=WIDTH,
        )
        for mark in marks
    )
    return Minimap(segments, tuple(MinimapMark("pointer", label, place(at)) for label, at in chosen), 100)
