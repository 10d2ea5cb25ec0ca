"""Executing runs: claim one, carry it out, keep its failure if it fails. The same in a worker and at a prompt."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from datetime import datetime

from django.utils.translation import gettext

from knowledge_app.services.documents.consolidation import undo_consolidation
from knowledge_app.services.rows.undoable_edits import carry_out_edit
from memoryhub.graph import embedding_run
from memoryhub.hygiene import scanning
from memoryhub.hygiene.resolution import undo_resolution
from memoryhub.lib.errors import MemoryHubError
from memoryhub.lib.llm import ModelRefused
from memoryhub.processes import holding, this_process
from memoryhub.runs import compress, consolidate, extract
from sessions_app.models import Run, Session
from sessions_app.services.audit import By
from sessions_app.services.compression import undo_compression
from sessions_app.services.runs import LeaseLost, RunNotFitting, claim_run, fail_run

logger = logging.getLogger(__name__)
LOOK_SECONDS = 0.2
STEPS: dict[str, Callable[..., None]] = {
    Run.Kind.COMPRESSION: compress.carry_out,
    Run.Kind.CONSOLIDATION: consolidate.carry_out,
    Run.Kind.EXTRACTION: extract.carry_out,
    Run.Kind.EMBEDDING: embedding_run.carry_out,
    Run.Kind.EDIT: lambda run, now: carry_out_edit(run, now=now()),
    Run.Kind.SCAN: scanning.carry_out,
}
UNDO: dict[str, Callable[..., Run | None]] = {
    Run.Kind.COMPRESSION: undo_compression,
    Run.Kind.CONSOLIDATION: undo_consolidation,
    Run.Kind.EDIT: undo_resolution,  # an edit like any other, unless it settled concerns
}


def execute(pk: int, *, now: Callable[[], datetime]) -> Run | None:
    """Claim a queued run and carry it out; return it as it ended, or None where it couldn't be claimed."""
    run = claim_run(pk, owner=this_process(), now=now())
    if run is None:
        return None
    try:
        with holding(f"run-{pk}"):
            STEPS[run.kind](run, now=now)
    except LeaseLost:
        logger.info("run %s was taken over or cancelled", pk)
    except MemoryHubError as error:
        fail_run(run, error, now=now(), is_transient=not isinstance(error, ModelRefused))
    except Exception as error:  # whatever it was must not end the worker
        logger.exception("run %s failed unexpectedly", pk)
        unexpected = MemoryHubError(
            f"Something unexpected: {type(error).__name__}. The hub's log has it.", code="unexpected"
        )
        fail_run(run, unexpected, now=now(), is_transient=True)
    return _followed_up(pk, now())


def undo_run(run: Run, *, by: By) -> Run | None:
    """Take a done run back, whatever it did; return the run that does where undoing is one, as it is for an edit.

    Raises RunNotFitting, which says what builds on it.
    """
    undo = UNDO.get(run.kind)
    if undo is None:
        words = gettext("A run of the kind %(kind)s changes nothing that could be undone.")
        raise RunNotFitting(words % {"kind": run.kind})
    return undo(run, by=by)


def complete(run: Run, *, now: Callable[[], datetime]) -> Run:
    """Carry a run out here, or see a worker do so that was quicker; return it once it is no longer live."""
    if not run.is_live:
        return run
    while (done := execute(run.pk, now=now)) is None:
        found = Run.objects.select_related("workspace", "session").filter(pk=run.pk).first()
        if found is None:
            raise RunNotFitting("The run was removed meanwhile.")
        done = found
        if not done.is_live:
            break
        time.sleep(LOOK_SECONDS)
    return done


def request_due(session: Session, now: datetime) -> None:
    """Ask for whatever a session is due for."""
    compress.request_if_due(session, now)
    consolidate.request_if_due(session, now)
    extract.request_if_due(session, now)


def _followed_up(pk: int, now: datetime) -> Run | None:
    """Return a run as it ended; what came in meanwhile may have made the next one due."""
    run = Run.objects.select_related("session__workspace").filter(pk=pk).first()
    if run and run.session and run.status == Run.Status.DONE and not run.options.get("once"):
        request_due(run.session, now)
    return run
