"""Request runs that shorten a session: compress it to a window, or consolidate all of it and clear it."""

from __future__ import annotations

from sessions_app.models import Run, Session
from sessions_app.services.audit import By
from sessions_app.services.compressing.compression import RunOptions
from sessions_app.services.runs import request_run


def fold_to_window(session: Session, window: int | None, *, by: By, once: bool = False) -> Run:
    """Request a compression of all but the last ``window`` entries (Grip's prune_to_window, without deleting).

    ``window`` defaults to the workspace's memory window. ``once``: don't retry (started by a command).
    """
    keep = max(1, session.workspace.memory_window if window is None else window)
    options: RunOptions = {"keep": keep, "minimum": 1, "prune": True, "once": once}
    run, _ = request_run(session, Run.Kind.COMPRESSION, options=dict(options), by=by)
    return run


def archive_and_clear(session: Session, *, by: By, once: bool = False) -> Run:
    """Request a consolidation of all entries, after which the session is cleared (nanobot's ``/new``).

    Both happen in one transaction. If the consolidation fails or is held, the session stays as it is.
    """
    options = {"archive_all": True, "clear_after": True, "once": once}
    run, _ = request_run(session, Run.Kind.CONSOLIDATION, options=options, by=by)
    return run
