"""An agent's append: the session opened where it must be, entries written, and what that makes due asked for."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from memoryhub.lib.layouts.records import EntryRecord
from memoryhub.runs.executing import request_due
from sessions_app.models import Workspace
from sessions_app.services.audit import Actor
from sessions_app.services.entries import Appended, append
from sessions_app.services.lifecycle import open_session


def record_entries(
    workspace: Workspace,
    key: str,
    records: Sequence[EntryRecord],
    *,
    actor: Actor,
    now: datetime,
    idempotency_key: str = "",
) -> Appended:
    """Append a batch to the session of a key, made where it isn't there; all of the batch or nothing.

    A worker takes up what this may have made due. Raises BadKey, KeyReused, SessionGone.
    """
    session, _ = open_session(workspace, key, actor=actor, now=now)
    appended = append(session, records, actor=actor, now=now, idempotency_key=idempotency_key)
    if not appended.is_repeat:
        request_due(appended.session, now)
    return appended
