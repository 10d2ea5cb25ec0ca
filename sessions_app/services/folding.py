"""What is done to whole sessions by folding them: pruning to a window, archiving before a new beginning."""

from __future__ import annotations

from sessions_app.models import Run, Session
from sessions_app.services.audit import By
from sessions_app.services.compression import RunOptions
from sessions_app.services.runs import request_run


def fold_to_window(session: Session, window: int | None, *, by: By, once: bool = False) -> Run:
    """Ask for what Grip's prune_to_window does, folding instead of deleting: the last ``window`` entries stay.

    ``window`` defaults to the workspace's memory window. ``once``: asked for at a prompt, no second attempt.
    """
    keep = max(1, session.workspace.memory_window if window is None else window)
    options: RunOptions = {"keep": keep, "minimum": 1, "once": once}
    run, _ = request_run(session, Run.Kind.COMPRESSION, options=dict(options), by=by)
    return run


def archive_and_clear(session: Session, *, by: By, once: bool = False) -> Run:
    """Ask for a new beginning once everything is folded: both in one transaction, or neither.

    The run waits for one that is at work. Where folding fails, the session keeps everything and goes on.
    """
    options: RunOptions = {"keep": 0, "minimum": 1, "clear_after": True, "once": once}
    run, _ = request_run(session, Run.Kind.COMPRESSION, options=dict(options), by=by)
    return run
