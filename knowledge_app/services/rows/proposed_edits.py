"""Edits of rows that an agent proposes: held runs in the inbox, carried out when a person approves them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.db import transaction
from django.db.models import Model
from django.utils.translation import gettext

from knowledge_app.models import EditedRow
from knowledge_app.services.decisions import ADDED, decided_fields
from knowledge_app.services.rows.edit_tables import TABLES
from knowledge_app.services.rows.row_changes import Values
from knowledge_app.services.rows.undoable_edits import carry_out_edit
from memoryhub.lib.database import db_retry
from memoryhub.lib.errors import Conflict
from memoryhub.processes import this_process
from sessions_app.models import AuditRecord, Run
from sessions_app.services.audit import Actor, By, record
from sessions_app.services.runs import RunNotFitting, cancel_run, claim_held_run

MAX_PENDING = 50  # proposals of an agent in a workspace
MAX_COMPARED = 500  # undecided or rejected proposals that are compared, latest first


def is_own_row(table: str, row: Any, actor: Actor) -> bool:
    """Tell whether an agent added a row and nobody else edited or decided about it since."""
    made = AuditRecord.objects.filter(
        workspace=row.workspace_id, action=ADDED[table], actor_kind=actor.kind, actor_name=actor.name[:200]
    )
    if table == "observations":
        is_made = any(row.pk in one.detail.get("added", []) for one in made.filter(at=row.recorded_at))
    else:
        is_made = made.filter(object_id=str(row.pk)).exists()
    editors = EditedRow.objects.filter(table=table, object_id=row.pk).values_list("run__options", flat=True)
    is_only = all(options.get("actor") == [actor.kind, actor.name] for options in editors)
    return is_made and is_only and not decided_fields([row])[row.pk]


def proposals_of(workspace: int, table: str, actor: Actor) -> dict[int, list[Run]]:
    """Return, by row of a table, somebody's proposals that nobody approved."""
    found: dict[int, list[Run]] = {}
    statuses = (Run.Status.HELD, Run.Status.CANCELLED)
    runs = Run.objects.filter(workspace=workspace, kind=Run.Kind.EDIT, status__in=statuses)
    for run in runs.filter(requested_by=actor.name[:200]).order_by("-id")[:MAX_COMPARED]:
        if run.options["table"] == table:
            found.setdefault(run.options["units"][0][0], []).append(run)
    return found


def _pending(workspace: int, actor: Actor) -> list[Run]:
    """Return what somebody proposed in a workspace and nobody decided yet, latest first."""
    held = Run.objects.filter(workspace=workspace, kind=Run.Kind.EDIT, status=Run.Status.HELD)
    return list(held.filter(requested_by=actor.name[:200]).order_by("-id")[:MAX_PENDING])


def has_room(workspace: int, actor: Actor) -> bool:
    """Tell whether somebody may propose another edit in a workspace."""
    return len(_pending(workspace, actor)) < MAX_PENDING


def _is_of(run: Run, options: Values) -> bool:
    return {name: run.options.get(name) for name in options} == options


@transaction.atomic
def supersede_proposals(row: Any, table: str, values: Values, *, by: By) -> None:
    """Cancel what somebody proposed for the same fields of a row before, apart from the same values."""
    for run in _pending(row.workspace_id, by.actor):
        earlier = run.options["values"]
        if (
            _is_of(run, {"table": table, "units": [[row.pk]]})
            and earlier != values
            and earlier.keys() & values.keys()
        ):
            Run.objects.filter(pk=run.pk).update(proposal=run.proposal | {"superseded": True})
            cancel_run(run, by=by)


@db_retry.retried
@transaction.atomic
def propose_edit(
    row: Any, table: str, action: str, *, values: Values, fields: Sequence[str], reason: str, by: By
) -> Run:
    """Put an edit of a row into the inbox and return the held run; the same edit is put there once.

    ``fields``: those that the edit is based on; if one changes, it can't be approved any more. Raises Conflict.
    """
    options: dict[str, Any] = {"table": table, "action": action, "units": [[row.pk]], "values": values}
    pending = _pending(row.workspace_id, by.actor)
    for known in pending:
        if _is_of(known, options):
            return known
    if len(pending) >= MAX_PENDING:
        raise Conflict(f"{MAX_PENDING} proposals of this agent are pending already.", code="too_many_proposals")
    run = Run.objects.create(
        workspace=row.workspace,
        kind=Run.Kind.EDIT,
        status=Run.Status.HELD,
        origin=Run.Origin.AGENT,
        options=options | {"actor": [by.actor.kind, by.actor.name]},
        proposal={"base": _base(row, fields), "reason": reason},
        requested_by=by.actor.name[:200],
        steps_total=1,
        created_at=by.at,
    )
    text = f"{TABLES[table].count(1)}: an edit is proposed"
    record(by, "run.held", "run", run.pk, text, workspace=row.workspace)
    return run


def approve_edit(run: Run, *, by: By) -> Run:
    """Carry out a proposed edit as the person's own. Raises RunNotFitting, and Conflict if the row changed since."""
    model = TABLES[run.options["table"]].model
    base = run.proposal.get("base", {})
    with transaction.atomic():
        waiting = Run.objects.select_for_update().filter(pk=run.pk, kind=Run.Kind.EDIT, status=Run.Status.HELD)
        if waiting.first() is None:
            raise RunNotFitting(gettext("Run %(number)s isn't waiting for a decision.") % {"number": run.pk})
        row = model._default_manager.select_for_update().filter(pk=run.options["units"][0][0]).first()
        if row is None or _base(row, list(base)) != base:
            raise Conflict(gettext("The row has changed since this was proposed. Reject it."), code="plan_stale")
        claimed = claim_held_run(run, owner=this_process(), by=by)
        claimed.options = claimed.options | {"actor": [by.actor.kind, by.actor.name]}
        claimed.save(update_fields=["options"])
        carry_out_edit(claimed, now=by.at)
    return Run.objects.select_related("workspace").get(pk=run.pk)


def _base(row: Model, fields: Sequence[str]) -> dict[str, Any]:
    """Return fields of a row as JSON types."""
    found = ((name, getattr(row, name)) for name in fields)
    return {name: value.isoformat() if hasattr(value, "isoformat") else value for name, value in found}
