"""Claim runs, execute them and record failures. Used by the worker and by commands."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime

from django.utils.translation import gettext

from knowledge_app.services.documents.consolidation import undo_consolidation
from knowledge_app.services.rows.undoable_edits import carry_out_edit
from memoryhub.graph import embedding_run
from memoryhub.hygiene import scanning
from memoryhub.hygiene.resolution import undo_resolution
from memoryhub.lib.errors import MemoryHubError, unexpected
from memoryhub.lib.llm import ModelRefused
from memoryhub.lib.traces import count_queries, traced
from memoryhub.processes import holding, this_process
from memoryhub.runs import compress, consolidate, extract
from sessions_app.models import Run, Session
from sessions_app.services.audit import By
from sessions_app.services.compressing.compression import undo_compression
from sessions_app.services.runs import LeaseLost, RunNotFitting, claim_run, fail_run

logger = logging.getLogger(__name__)
POLL_SECONDS = 0.2
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
    Run.Kind.EDIT: undo_resolution,  # undoes other edits, too
}


def execute(pk: int, *, now: Callable[[], datetime]) -> Run | None:
    """Claim and execute a queued run. Returns the finished run, or None if it couldn't be claimed."""
    run = claim_run(pk, owner=this_process(), now=now())
    if run is None:
        return None
    try:
        with _traced(run), holding(f"run-{pk}"):
            STEPS[run.kind](run, now=now)
    except LeaseLost:
        logger.info("Run %s was cancelled or claimed by another worker", pk)
    except MemoryHubError as error:
        fail_run(run, error, now=now(), is_transient=not isinstance(error, ModelRefused))
    except Exception as error:  # must not end the worker
        logger.exception("Run %s failed unexpectedly", pk)
        fail_run(run, unexpected(error), now=now(), is_transient=True)
    return _finished(pk, now())


@contextmanager
def _traced(run: Run) -> Iterator[None]:
    with traced(f"run {run.kind}", {"memoryhub.run.id": run.pk}, expected=(LeaseLost,)) as span, count_queries(span):
        yield


def undo_run(run: Run, *, by: By) -> Run | None:
    """Undo a finished run. Undoing an edit is a run of its own, which is returned.

    Raises RunNotFitting, with the reason, if later changes depend on it.
    """
    undo = UNDO.get(run.kind)
    if undo is None:
        message = gettext("A run of the kind %(kind)s can't be undone.")
        raise RunNotFitting(message % {"kind": run.kind})
    return undo(run, by=by)


def complete(run: Run, *, now: Callable[[], datetime]) -> Run:
    """Execute a run, or wait for the worker that claimed it. Returns the run once it is no longer live."""
    if not run.is_live:
        return run
    while (done := execute(run.pk, now=now)) is None:
        found = Run.objects.select_related("workspace", "session").filter(pk=run.pk).first()
        if found is None:
            raise RunNotFitting("The run has been deleted.")
        done = found
        if not done.is_live:
            break
        time.sleep(POLL_SECONDS)
    return done


def request_due(session: Session, now: datetime) -> None:
    """Request the compression, consolidation and extraction that a session is due for."""
    compress.request_if_due(session, now)
    consolidate.request_if_due(session, now)
    extract.request_if_due(session, now)


def _finished(pk: int, now: datetime) -> Run | None:
    """Return the finished run, after requesting what entries added in the meantime have made due."""
    run = Run.objects.select_related("session__workspace").filter(pk=pk).first()
    if run and run.session and run.status == Run.Status.DONE and not run.options.get("once"):
        request_due(run.session, now)
    return run
