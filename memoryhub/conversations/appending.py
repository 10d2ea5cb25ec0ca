"""An agent's append: the session opened where it must be, entries written, and what that makes due asked for."""

from __future__ import annotations

from collections.abc import Sequence

from memoryhub.lib.layouts.records import EntryRecord
from memoryhub.runs.executing import request_due
from sessions_app.models import Workspace
from sessions_app.services.audit import By
from sessions_app.services.entries import Appended, append
from sessions_app.services.lifecycle import open_session


def record_entries(
    workspace: Workspace, key: str, records: Sequence[EntryRecord], *, by: By, idempotency_key: str = ""
) -> Appended:
    """Append a batch to the session of a key, made where it isn't there; all of the batch or nothing.

    A worker takes up what this may have made due. Raises Invalid, Conflict, NotFound.
    """
    session, _ = open_session(workspace, key, by=by)
    appended = append(session, records, by=by, idempotency_key=idempotency_key)
    if not appended.is_repeat:
        request_due(appended.session, by.at)
    return appended
