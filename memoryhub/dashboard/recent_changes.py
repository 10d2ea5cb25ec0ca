"""What changed in a workspace since a person's last visit."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import pairwise

from django.utils.functional import Promise
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from knowledge_app.models import MemoryRevision
from knowledge_app.models.documents import INTERMEDIATE
from knowledge_app.services.documents.fact_states import REVISED
from memoryhub.dashboard.revised_texts import changed_revisions, revised_text
from memoryhub.models import AccessRecord
from sessions_app.models import AuditRecord, Run, Workspace

BREAK = timedelta(minutes=30)  # without a reading, between two visits
MAX_READINGS = 200  # of one visit
MAX_RECORDS = 100  # of which the shown changes are the latest
SHOWN = 8
INTERNAL = (  # actions that change nothing, or of which another record tells more
    "change.approved",
    "document.revealed",
    "rows.exported",
    "secrets.revealed",
    "session.exported",
    "workspace.configured",
    "workspace.exported",
    "workspace.sync_requested",
)
ACTORS: dict[str, str | Promise] = {"the worker": _("background job"), "the agent's file": _("imported file")}


@dataclass(frozen=True)
class Change:
    """One change: an audit record, or all records of one run."""

    record: AuditRecord
    text: str
    actor: str
    run: str = ""  # primary key
    revision: MemoryRevision | None = None


def last_visit(workspace: Workspace, username: str, *, now: datetime) -> datetime | None:
    """Return when a person last read something of a workspace before the current visit; None if never."""
    readings = AccessRecord.objects.filter(workspace=workspace, actor_kind="person", actor_name=username)
    times = list(readings.order_by("-id").values_list("at", flat=True)[:MAX_READINGS])
    return next((older for newer, older in pairwise([now, *times]) if newer - older > BREAK), None)


def latest_changes(
    workspace: Workspace, *, since: datetime | None = None, reader: str = ""
) -> tuple[list[Change], bool]:
    """Return the latest changes, newest first, and whether there are more. A run is one change: its latest record.

    ``reader``: the name of the person who is "you". At most three queries.
    """
    records = AuditRecord.objects.filter(workspace=workspace).exclude(action__in=INTERNAL)
    if since is not None:
        records = records.filter(at__gt=since)
    found = _one_for_each_run(list(records.order_by("-id")[:MAX_RECORDS]))
    shown = found[:SHOWN]
    revisions = _revisions(shown)
    names = _run_names({record.actor_name for record in shown}) | ({reader: gettext("you")} if reader else {})
    return [_change(record, revisions, names) for record in shown], len(found) > SHOWN


def _one_for_each_run(records: Sequence[AuditRecord]) -> list[AuditRecord]:
    """Return records without earlier ones of the same run, and without what a file contained before it was merged."""
    found: dict[tuple[str, str], AuditRecord] = {}
    for record in records:
        is_intermediate = record.action == REVISED and record.text.endswith(INTERMEDIATE)
        if not is_intermediate:
            key = ("run", record.object_id) if record.object_kind == "run" else ("record", str(record.pk))
            found.setdefault(key, record)
    return list(found.values())


def _revisions(records: Iterable[AuditRecord]) -> dict[str, MemoryRevision]:
    """Return the revisions that records tell of, by the records' ``object_id``."""
    pks = [int(record.object_id) for record in records if record.action == REVISED and record.object_id.isdecimal()]
    return {str(pk): revision for pk, revision in changed_revisions(pks).items()} if pks else {}


def _change(record: AuditRecord, revisions: Mapping[str, MemoryRevision], names: Mapping[str, str]) -> Change:
    actor = names.get(record.actor_name) or str(ACTORS.get(record.actor_name, record.actor_name))
    run = record.object_id if record.object_kind == "run" else ""
    revision = revisions.get(record.object_id) if record.action == REVISED else None
    if revision is None:
        return Change(record, _text(record), actor, run)
    if revision.proposal:
        values = {"who": revision.proposal.proposer, "person": actor}
        actor = gettext("Proposed by %(who)s, accepted by %(person)s") % values
    return Change(record, revised_text(revision), actor, revision=revision)


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
