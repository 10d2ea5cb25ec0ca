"""What agents may read, and the log of what they read."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from memoryhub.agents.api_tokens import Caller
from memoryhub.lib.errors import NotFound
from memoryhub.search import Scope
from memoryhub.search.shown_rows import seen_results
from sessions_app.models import Workspace
from sessions_app.services.access_log import Seen, log_access
from sessions_app.services.audit import By


def readable_scope(caller: Caller, *, own_sessions: bool = False) -> Scope:
    """Return the scope of a caller's searches: its workspace and those that its token may read, without held rows."""
    keys = tuple(workspace.pk for workspace in caller.readable)
    return Scope(keys, for_agent=True, own_sessions=own_sessions, own=caller.workspace.pk)


def readable_workspace(caller: Caller, slug: str) -> Workspace:
    """Return a workspace that a caller may read, by default its own. Raises NotFound."""
    for workspace in caller.readable:
        if slug in ("", workspace.slug):
            return workspace
    known = ", ".join(workspace.slug for workspace in caller.readable)
    raise NotFound(f"This token can't read a workspace {slug!r}, only {known}.", code="no_such_workspace")


def record_access(
    caller: Caller, action: str, seen: Sequence[Seen], now: datetime, *, workspace: Workspace | None = None
) -> None:
    """Add what a caller read to the access log of a workspace, by default its own."""
    place = workspace or caller.workspace
    log_access(place, action, seen, by=By(caller.actor, now), via=caller.via, token=caller.token)


def record_results(caller: Caller, action: str, results: Iterable[Mapping[str, Any]], now: datetime) -> None:
    """Add what a caller found to the access logs of the workspaces that it is in."""
    by_slug: defaultdict[str, list[Mapping[str, Any]]] = defaultdict(list)
    for one in results:
        by_slug[one["workspace"]].append(one)
    for workspace in caller.readable if by_slug else ():
        record_access(caller, action, seen_results(by_slug[workspace.slug]), now, workspace=workspace)
