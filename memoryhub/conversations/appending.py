"""Append entries to a session, and request the runs that this makes due."""

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
    """Append a whole batch to the session with a key, creating the session if needed.

    Requests the runs that this makes due. Raises Invalid, Conflict, NotFound and appends nothing.
    """
    session, _ = open_session(workspace, key, by=by)
    appended = append(session, records, by=by, idempotency_key=idempotency_key)
    if not appended.is_repeat:
        request_due(appended.session, by.at)
    return appended
