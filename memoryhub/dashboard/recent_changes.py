"""What changed in a workspace since a person's last visit."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import pairwise

from django.utils.functional import Promise
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from memoryhub.models import AccessRecord
from sessions_app.models import AuditRecord, Run, Workspace

BREAK = timedelta(minutes=30)  # without a reading, between two visits
MAX_READINGS = 200  # of one visit
MAX_RECORDS = 100  # of which the shown changes are the latest
SHOWN = 8
ACTORS: dict[str, str | Promise] = {"the worker": _("background job"), "the agent's file": _("imported file")}


@dataclass(frozen=True)
class Change:
    """One change: an audit record, or all records of one run."""

    record: AuditRecord
    text: str
    actor: str
    run: str = ""  # primary key


def last_visit(workspace: Workspace, username: str, *, now: datetime) -> datetime | None:
    """Return when a person last read something of a workspace before the current visit; None if never."""
    readings = AccessRecord.objects.filter(workspace=workspace, actor_kind="person", actor_name=username)
    times = list(readings.order_by("-id").values_list("at", flat=True)[:MAX_READINGS])
    return next((older for newer, older in pairwise([now, *times]) if newer - older > BREAK), None)


def latest_changes(workspace: Workspace, *, since: datetime | None = None) -> tuple[list[Change], bool]:
    """Return the latest changes, newest first, and whether there are more. A run is one change: its latest record."""
    records = AuditRecord.objects.filter(workspace=workspace)
    if since is not None:
        records = records.filter(at__gt=since)
    found: list[Change] = []
    runs: set[str] = set()
    latest = list(records.order_by("-id")[:MAX_RECORDS])
    names = _run_names({record.actor_name for record in latest})
    for record in latest:
        run = record.object_id if record.object_kind == "run" else ""
        if run and run in runs:
            continue
        runs.add(run)
        actor = names.get(record.actor_name) or str(ACTORS.get(record.actor_name, record.actor_name))
        found.append(Change(record, _text(record), actor, run))
    return found[:SHOWN], len(found) > SHOWN


def _run_names(actors: Iterable[str]) -> dict[str, str]:
    """Return the names of the runs among some actors, such as "Consolidation 56" for "run 56". At most one query."""
    pks = [int(name[4:]) for name in actors if name.startswith("run ") and name[4:].isdecimal()]
    kinds = dict(Run.objects.filter(pk__in=pks).values_list("pk", "kind")) if pks else {}
    return {f"run {pk}": f"{Run.Kind(kind).label} {pk}" for pk, kind in kinds.items()}


def _text(record: AuditRecord) -> str:
    """Return a record's text; for a finished run, its kind."""
    kinds = dict(Run.Kind.choices)
    kind = record.detail.get("kind")
    if record.action == "run.finished" and record.detail.get("status") == "done" and kind in kinds:
        return gettext("%(kind)s finished") % {"kind": kinds[kind]}
    return record.text
