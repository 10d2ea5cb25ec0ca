"""Session folding: compress a session to a window, or entirely before restarting it."""

from __future__ import annotations

from sessions_app.models import Run, Session
from sessions_app.services.audit import By
from sessions_app.services.compression import RunOptions
from sessions_app.services.runs import request_run


def fold_to_window(session: Session, window: int | None, *, by: By, once: bool = False) -> Run:
    """Request a compression of all but the last ``window`` entries (Grip's prune_to_window, without deleting).

    ``window`` defaults to the workspace's memory window. ``once``: don't retry (started by a command).
    """
    keep = max(1, session.workspace.memory_window if window is None else window)
    options: RunOptions = {"keep": keep, "minimum": 1, "once": once}
    run, _ = request_run(session, Run.Kind.COMPRESSION, options=dict(options), by=by)
    return run


def archive_and_clear(session: Session, *, by: By, once: bool = False) -> Run:
    """Request a compression of everything, followed by a restart of the session, in one transaction.

    Waits for a running run. If the compression fails, the session stays as it is.
    """
    options: RunOptions = {"keep": 0, "minimum": 1, "clear_after": True, "once": once}
    run, _ = request_run(session, Run.Kind.COMPRESSION, options=dict(options), by=by)
    return run
