"""What changed since a page was made: read from the audit records, so that an open page need not ask for more."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from django.db.models import Count, Max, Q, QuerySet

from sessions_app.models import AuditRecord

LOOK_BACK = 256  # ids: records of transactions that were still open when a later one was seen
MOST_RECORDS = 500  # more than these since: everything changed

KNOWN_ROWS = ("knowledge", "observations", "key-values", "terms", "hygiene")
EVERYTHING = frozenset(
    ("entries", "sessions", "documents", "review", "history", "runs", "imports", "cache", "settings", *KNOWN_ROWS)
)
KINDS_OF = {  # by an action's noun; one that isn't listed may have changed everything
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
    "key_value.revealed": (),
    "rows.exported": (),
    "run.undone": tuple(EVERYTHING),
    "workspace.exported": (),
    "workspace.sync_requested": ("imports",),
}


@dataclass(frozen=True)
class News:
    """What is new: ``newest`` record and how many were ``seen`` before it, for the next question.

    ``kinds`` are parts of a workspace as pages show them, empty while nothing is new; ``sessions`` are those that
    were named, and ``is_of_any_session`` says that others may have changed too.
    """

    newest: int
    seen: int
    kinds: frozenset[str] = frozenset()
    sessions: frozenset[int] = frozenset()
    is_of_any_session: bool = False


def read_news(told: QuerySet[AuditRecord], *, after: int, seen: int | None = None) -> News | None:
    """Say what some audit records tell since the record ``after``; None where there is no record near it.

    One query while nothing is new, three otherwise. ``seen``: how many of the 256 ids up to ``after`` were there at
    the last question. One more of them now means that a transaction ended later than one which began after it, as
    PostgreSQL lets them; then all of those ids count as new.
    """
    near = told.filter(id__gt=after - LOOK_BACK)
    found = near.aggregate(newest=Max("id"), seen=Count("id", filter=Q(id__lte=after)))
    if found["newest"] is None:
        return None
    newest = max(found["newest"], after)
    is_late = seen is not None and found["seen"] > seen
    if newest == after and not is_late:
        return News(newest, found["seen"])
    counted = told.filter(id__gt=newest - LOOK_BACK, id__lte=newest).count()  # before the rows are read
    fresh = near if is_late else near.filter(id__gt=after)
    rows = list(fresh.order_by("-id").values_list("action", "session_id")[: MOST_RECORDS + 1])
    return _told(rows, newest, counted)


def _told(rows: Sequence[tuple[str, int | None]], newest: int, seen: int) -> News:
    are_all_read = len(rows) <= MOST_RECORDS
    kinds = kinds_of(action for action, _ in rows) if are_all_read else EVERYTHING
    sessions = frozenset(session for _, session in rows if session)
    is_of_any = any(session is None and "entries" in kinds_of([action]) for action, session in rows)
    return News(newest, seen, kinds | {"activity"}, sessions, is_of_any or not are_all_read)


def kinds_of(actions: Iterable[str]) -> frozenset[str]:
    """Return the parts of a workspace that some audit actions may have changed."""
    found: set[str] = set()
    for action in actions:
        noun = action.partition(".")[0]
        found.update(KINDS_OF_ACTION.get(action, KINDS_OF.get(noun, EVERYTHING)))
    return frozenset(found)
