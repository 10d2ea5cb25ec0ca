"""What an edit does to sessions and runs one by one, where that is more than setting fields.

A step returns what taking it back needs, or None where the row is passed over. Deleting, deciding about a run and
cancelling one are final.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from knowledge_app.services.documents.consolidation import undo_consolidation
from knowledge_app.services.rows.row_changes import Values
from memoryhub.lib.errors import MemoryHubError
from sessions_app.models import Run, Session
from sessions_app.services.audit import By
from sessions_app.services.compression import undo_compression
from sessions_app.services.lifecycle import delete_session
from sessions_app.services.runs import RunNotFitting, cancel_run, dismiss_run, request_run, retry_run

STEP_ROWS = 25  # in one transaction: other writers wait no longer than these take
FINAL = ("delete", "retry", "dismiss", "cancel")  # cannot be taken back
Step = Callable[[Any, Values, By], Values | None]


def _request(session: Session, kind: str, options: dict[str, Any], by: By) -> Values | None:
    """Ask for a run of a session; one that waits already is somebody else's wish, and is left alone."""
    if Run.objects.filter(session=session, kind=kind, status=Run.Status.QUEUED).exists():
        return None
    run, _ = request_run(session, kind, options=options, by=by)
    return {"run": run.pk}


def _compress(session: Session, _values: Values, by: By) -> Values | None:
    return _request(session, Run.Kind.COMPRESSION, {}, by)


def _consolidate(session: Session, _values: Values, by: By) -> Values | None:
    return _request(session, Run.Kind.CONSOLIDATION, {}, by)


def _prune(session: Session, values: Values, by: By) -> Values | None:
    options = {"keep": max(1, values["keep"]), "minimum": 1}
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


def take_back(noted: Values, *, by: By) -> bool:
    """Cancel the run that a step asked for, or undo it where it is done; tell whether there was anything to do."""
    run = Run.objects.select_related("workspace", "session").filter(pk=noted.get("run", 0)).first()
    if run is None:
        return False
    try:
        if run.status == Run.Status.DONE:
            if "nothing_due" in run.proposal:
                return False
            UNDO[run.kind](run, by=by)
        else:
            cancel_run(run, by=by)
    except MemoryHubError:  # what it did is built upon by now: it stays, and the edit says that it was passed over
        return False
    return True
