"""Append entries to a session, and request the runs that this makes due."""

from __future__ import annotations

from collections.abc import Sequence

from django.db import transaction

from memoryhub.forgetting.additions import entries_by, key_by
from memoryhub.forgetting.import_filter import import_rules
from memoryhub.lib.database import db_retry
from memoryhub.lib.layouts.records import EntryRecord
from memoryhub.runs.executing import request_due
from sessions_app.models import Workspace
from sessions_app.services.audit import By
from sessions_app.services.entries import Appended, append, session_by_key
from sessions_app.services.lifecycle import open_session
from sessions_app.services.workspaces import share_workspace


def record_entries(
    workspace: Workspace, key: str, records: Sequence[EntryRecord], *, by: By, idempotency_key: str = ""
) -> Appended:
    """Append a whole batch to the session with a key, creating the session if needed.

    Forgotten content is left out, as imports do. Requests the runs that this makes due. Raises Invalid, Conflict,
    NotFound and appends nothing.
    """
    session = session_by_key(workspace, key)  # it was renamed if its key has forgotten words
    if session is None:
        appended = _append_to_new(workspace, key, records, by=by, idempotency_key=idempotency_key)
    else:
        appended = append(
            session,
            records,
            by=by,
            idempotency_key=idempotency_key,
            remember=lambda rows: entries_by(import_rules(workspace), rows),
        )
    if not appended.is_repeat:
        request_due(appended.session, by.at)
    return appended


@db_retry.retried
@transaction.atomic
def _append_to_new(
    workspace: Workspace, key: str, records: Sequence[EntryRecord], *, by: By, idempotency_key: str
) -> Appended:
    """Open a session and append to it, by the same rules: nothing can be forgotten meanwhile."""
    share_workspace(workspace.pk)
    rules = import_rules(workspace)
    session, _ = open_session(workspace, key_by(rules, workspace, key), by=by)
    return append(
        session, records, by=by, idempotency_key=idempotency_key, remember=lambda rows: entries_by(rules, rows)
    )
