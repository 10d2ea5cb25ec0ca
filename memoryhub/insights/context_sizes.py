"""The size of sessions' contexts over time, rebuilt from message dates, compressions and consolidations."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from datetime import UTC, date

from django.db.models import F, OuterRef, Subquery, Sum
from django.utils import timezone

from sessions_app.models import DailyTotal, Entry, Run, Session, Workspace

SESSIONS = 5  # those with the most tokens are looked at


def largest_context(workspace: Workspace, session: Session | None = None) -> dict[date, float]:
    """Return the tokens of the largest context by day, or of a session's. Three queries at most.

    Messages count on the day of their date. The last value is today's. Of a workspace, only the five sessions with
    the most tokens are looked at.
    """
    chosen = [session] if session is not None else _heaviest(workspace)
    if not any(one.entry_count for one in chosen):
        return {}
    added: defaultdict[int, dict[date, int]] = defaultdict(dict)
    days = DailyTotal.objects.filter(session__in=[one.pk for one in chosen]).order_by()
    for pk, day, tokens in days.values_list("session", "day").annotate(n=Sum("token_count")):
        added[pk][day] = tokens
    reduced = _reductions(chosen)
    today = timezone.now().astimezone(UTC).date()
    sizes = [_sizes(added[one.pk], reduced[one.pk], one, today) for one in chosen]
    return _largest(sizes)


def _heaviest(workspace: Workspace) -> list[Session]:
    sessions = Session.objects.filter(workspace=workspace, archived_at=None, is_visible_to_agent=True)
    return list(sessions.order_by("-total_tokens", "-id")[:SESSIONS])


def _reductions(sessions: Iterable[Session]) -> defaultdict[int, dict[date, int]]:
    """Return the tokens that compressions and consolidations took out of each context by day."""
    found: defaultdict[int, dict[date, int]] = defaultdict(dict)
    covered = Entry.objects.in_conversation().filter(
        session=OuterRef("session"),
        epoch=OuterRef("epoch"),
        position__gte=OuterRef("from_position"),
        position__lt=OuterRef("to_position"),
    )
    runs = Run.objects.filter(
        session__in=sessions,
        status=Run.Status.DONE,
        finished_at__isnull=False,
        kind__in=(Run.Kind.COMPRESSION, Run.Kind.CONSOLIDATION),
        to_position__gt=F("from_position"),
    )
    tokens = Subquery(covered.order_by().values("session").annotate(n=Sum("token_count")).values("n"))
    for run in runs.annotate(tokens=tokens).only("session_id", "kind", "finished_at", "proposal"):
        before, after = run.proposal.get("before"), run.proposal.get("after")
        is_known = isinstance(before, int) and isinstance(after, int)
        saved = before - after if is_known else (run.tokens or 0)
        if run.session_id and run.finished_at:
            day = run.finished_at.astimezone(UTC).date()
            found[run.session_id][day] = found[run.session_id].get(day, 0) + saved
    return found


def _sizes(added: dict[date, int], reduced: dict[date, int], session: Session, today: date) -> dict[date, float]:
    total, found = 0, {}
    for day in sorted(added.keys() | reduced.keys()):
        total = max(0, total + added.get(day, 0) - reduced.get(day, 0))
        found[day] = float(total)
    return found | {today: float(session.active_tokens + session.summary_tokens)}


def _largest(sizes: Iterable[dict[date, float]]) -> dict[date, float]:
    """Return the largest value by day; each of them is carried forward to its next one."""
    changes = sorted((day, place, value) for place, one in enumerate(sizes) for day, value in one.items())
    current: dict[int, float] = {}
    found = {}
    for day, place, value in changes:
        current[place] = value
        found[day] = max(current.values())
    return found
