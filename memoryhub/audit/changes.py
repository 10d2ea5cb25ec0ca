"""Which parts of a workspace changed since a page was rendered, from the audit log."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from django.db.models import Count, Max, Q, QuerySet

from sessions_app.models import AuditRecord
from sessions_app.services.audit import RECENT_IDS

MAX_RECORDS = 500  # more than this counts as a change of everything

KNOWN_ROWS = ("knowledge", "observations", "key-values", "terms", "hygiene")
EVERYTHING = frozenset(
    ("entries", "sessions", "documents", "review", "history", "runs", "imports", "cache", "settings", *KNOWN_ROWS)
)
KINDS_OF = {  # by an action's noun; others may have changed everything
    "account": (),
    "audit": (),
    "backup": (),
    "change": ("review", "documents"),
    "document": ("documents",),
    "entry": ("entries",),
    "facts": ("documents",),
    "graph": ("terms",),
    "history": ("history",),
    "import": ("imports",),
    "job": ("runs",),
    "key_value": ("key-values",),
    "knowledge": ("knowledge",),
    "observations": ("observations",),
    "rows": (*KNOWN_ROWS, "sessions", "documents", "history", "runs"),
    "person": ("settings",),
    "run": ("runs", "hygiene"),
    "session": ("sessions", "entries", "documents", "history"),
    "sessions": (),
    "term": ("terms",),
    "token": ("settings",),
    "webhook": ("settings",),
}
KINDS_OF_ACTION: dict[str, tuple[str, ...]] = {
    "document.revealed": (),
    "key_value.revealed": (),
    "rows.exported": (),
    "run.undone": tuple(EVERYTHING),
    "secrets.revealed": (),
    "workspace.exported": (),
    "workspace.sync_requested": ("imports",),
}


@dataclass(frozen=True)
class Changes:
    """``newest``: the latest record; ``seen``: the number of records shortly before it, to pass to the next call.

    ``kinds``: the changed parts of a workspace; ``sessions``: ids of changed sessions; ``is_of_any_session``: whether
    others may have changed, too.
    """

    newest: int
    seen: int
    kinds: frozenset[str] = frozenset()
    sessions: frozenset[int] = frozenset()
    is_of_any_session: bool = False


def read_changes(records: QuerySet[AuditRecord], *, after: int, seen: int | None = None) -> Changes | None:
    """Return what changed since the record ``after``; None if there is no record near it.

    Runs one query if nothing is new, three otherwise. ``seen``: how many of the 256 ids up to ``after`` existed at
    the last call. If there are more now, a PostgreSQL transaction committed after a later one, and all 256 count as
    new.
    """
    near = records.filter(id__gt=after - RECENT_IDS)
    found = near.aggregate(newest=Max("id"), seen=Count("id", filter=Q(id__lte=after)))
    if found["newest"] is None:
        return None
    newest = max(found["newest"], after)
    is_late = seen is not None and found["seen"] > seen
    if newest == after and not is_late:
        return Changes(newest, found["seen"])
    counted = records.filter(id__gt=newest - RECENT_IDS, id__lte=newest).count()  # before reading the rows
    fresh = near if is_late else near.filter(id__gt=after)
    rows = list(fresh.order_by("-id").values_list("action", "session_id")[: MAX_RECORDS + 1])
    return _changes(rows, newest, counted)


def _changes(rows: Sequence[tuple[str, int | None]], newest: int, seen: int) -> Changes:
    are_all_read = len(rows) <= MAX_RECORDS
    kinds = changed_kinds(action for action, _ in rows) if are_all_read else EVERYTHING
    sessions = frozenset(session for _, session in rows if session)
    is_of_any = any(session is None and "entries" in changed_kinds([action]) for action, session in rows)
    return Changes(newest, seen, kinds | {"activity"}, sessions, is_of_any or not are_all_read)


def changed_kinds(actions: Iterable[str]) -> frozenset[str]:
    """Return the parts of a workspace that these audit actions may have changed."""
    found: set[str] = set()
    for action in actions:
        noun = action.partition(".")[0]
        found.update(KINDS_OF_ACTION.get(action, KINDS_OF.get(noun, EVERYTHING)))
    return frozenset(found)
