"""Record additions and single changes as edits, so that they can be undone."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from django.db import transaction

from knowledge_app.models import EditedRow
from knowledge_app.services.rows.edit_tables import TABLES
from knowledge_app.services.rows.row_changes import PAST_TENSES, Values
from sessions_app.models import Run, Workspace
from sessions_app.services.audit import By

REASON = "adding it was undone"


@transaction.atomic
def record_addition(workspace: Workspace, table: str, pks: Sequence[int], *, by: By) -> Run:
    """Record a finished edit that added these rows; undoing it withdraws them.

    The edit's earlier state of the rows is "withdrawn". It writes no audit record: adding rows does.
    """
    before: Values = {"withdrawn_at": by.at.isoformat(), "withdrawn_reason": REASON}
    after: Values = {"withdrawn_at": None, "withdrawn_reason": ""}
    words = f"{TABLES[table].count(len(pks))} {PAST_TENSES['add']}"
    run = Run.objects.create(
        workspace=workspace,
        kind=Run.Kind.EDIT,
        status=Run.Status.DONE,
        options={"table": table, "action": "add", "units": [[pk] for pk in pks], "values": {}}
        | {"actor": [by.actor.kind, by.actor.name]},
        requested_by=by.actor.name[:200],
        steps_total=len(pks),
        steps_done=len(pks),
        proposal={"changed": len(pks), "passed_over": 0, "words": words},
        not_before=by.at,
        created_at=by.at,
        started_at=by.at,
        finished_at=by.at,
    )
    EditedRow.objects.bulk_create(
        EditedRow(run=run, table=table, object_id=pk, before=before, after=after) for pk in pks
    )
    return run


def edit_of(workspace: Workspace, table: str, pk: int, *, at: datetime) -> Run | None:
    """Return the edit that changed a row at a given time, or None."""
    runs = Run.objects.filter(workspace=workspace, kind=Run.Kind.EDIT, created_at=at)
    return runs.filter(edited_rows__table=table, edited_rows__object_id=pk).order_by("-id").first()
