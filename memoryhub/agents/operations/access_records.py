"""Log what agents read."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from memoryhub.agents.api_tokens import Caller
from sessions_app.services.access_log import Seen, log_access
from sessions_app.services.audit import By


def record_access(caller: Caller, action: str, seen: Sequence[Seen], now: datetime) -> None:
    """Add what a caller read to the access log."""
    log_access(caller.workspace, action, seen, by=By(caller.actor, now), via=caller.via, token=caller.token)
