"""Steps of edits: actions on sessions and runs that do more than set fields.

A step returns the values needed to undo it, or None if the row is skipped. Deletions and decisions on runs are final.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from knowledge_app.services.documents.consolidation import undo_consolidation
from knowledge_app.services.rows.row_changes import Values
from memoryhub.lib.errors import MemoryHubError
from sessions_app.models import Run, Session
from sessions_app.services.audit import By
from sessions_app.services.compressing.compression import undo_compression
from sessions_app.services.lifecycle import delete_session
from sessions_app.services.runs import RunNotFitting, cancel_run, dismiss_run, request_run, retry_run

STEP_ROWS = 25  # per transaction, so that other writers don't wait for long
FINAL = ("delete", "retry", "dismiss", "cancel")  # can't be undone
Step = Callable[[Any, Values, By], Values | None]


def _request(session: Session, kind: str, options: dict[str, Any], by: By) -> Values | None:
    """Request a run of a session; None if one is queued already, which belongs to another request."""
    if Run.objects.filter(session=session, kind=kind, status=Run.Status.QUEUED).exists():
        return None
    run, _ = request_run(session, kind, options=options, by=by)
    return {"run": run.pk}


def _compress(session: Session, _values: Values, by: By) -> Values | None:
    return _request(session, Run.Kind.COMPRESSION, {}, by)


def _consolidate(session: Session, _values: Values, by: By) -> Values | None:
    return _request(session, Run.Kind.CONSOLIDATION, {}, by)


def _prune(session: Session, values: Values, by: By) -> Values | None:
    options = {"keep": max(1, values["keep"]), "minimum": 1, "prune": True}
    return _request(session, Run.Kind.COMPRESSION, options, by)


def _delete(session: Session, values: Values, by: By) -> Values:
    delete_session(session, confirmation=session.key, reason=values.get("reason", ""), by=by)
    return {}


def _decided(decide: Callable[[], Run]) -> Values | None:
    try:
        decide()
    except RunNotFitting:
        return None
    return {}


def _retry(run: Run, _values: Values, by: By) -> Values | None:
    return _decided(lambda: retry_run(run, by=by))


def _dismiss(run: Run, values: Values, by: By) -> Values | None:
    note = values.get("reason") or "no reason given"
    return _decided(lambda: dismiss_run(run, note=note, by=by))


def _cancel(run: Run, _values: Values, by: By) -> Values | None:
    return _decided(lambda: cancel_run(run, by=by))


STEPS: dict[str, Step] = {
    "compress": _compress,
    "consolidate": _consolidate,
    "prune": _prune,
    "delete": _delete,
    "retry": _retry,
    "dismiss": _dismiss,
    "cancel": _cancel,
}
UNDO: dict[str, Callable[..., Any]] = {
    Run.Kind.COMPRESSION: undo_compression,
    Run.Kind.CONSOLIDATION: undo_consolidation,
}


def undo_step(result: Values, *, by: By) -> bool:
    """Cancel or undo the run that a step requested; return whether anything was undone."""
    run = Run.objects.select_related("workspace", "session").filter(pk=result.get("run", 0)).first()
    if run is None:
        return False
    try:
        if run.status == Run.Status.DONE:
            if "nothing_due" in run.proposal:
                return False
            UNDO[run.kind](run, by=by)
        else:
            cancel_run(run, by=by)
    except MemoryHubError:  # later changes build on it: it stays, and the edit counts it as skipped
        return False
    return True
