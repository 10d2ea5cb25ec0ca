"""Parse a moment ("2026-03-01", "7d", "yesterday") and format it for a URL."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, tzinfo

from django.utils.translation import gettext

from memoryhub.lib.errors import Invalid
from memoryhub.lib.layouts.times import read_time
from sessions_app.models import AuditRecord, Run, Workspace

_BACK = re.compile(r"(\d{1,5})\s*(min|h|d|w)(?: ago)?", re.IGNORECASE)
_EPOCH = re.compile(r"[0-9]{9,10}")
UNITS = {"min": timedelta(minutes=1), "h": timedelta(hours=1), "d": timedelta(days=1), "w": timedelta(weeks=1)}
JUST_BEFORE = timedelta(microseconds=1)


class InvalidMoment(Invalid):
    """The moment can't be parsed or is in the future."""

    code = "no_such_time"


def parse_moment(text: str, *, zone: tzinfo, now: datetime) -> datetime:
    """Parse a moment; return it in UTC. Raises InvalidMoment.

    Accepts "now", a date (its start; also "today"), an ISO time (in ``zone`` unless it names one), "yesterday" (24
    hours ago), "30min", "36h", "7d" or "2w" ago, and seconds since 1970 (9 or 10 digits), which a slider sends.
    """
    words = text.strip()
    named = {"now": "0min", "yesterday": "1d", "today": now.astimezone(zone).date().isoformat()}
    words = named.get(words.lower(), words)
    ago = _BACK.fullmatch(words)
    try:
        found: datetime | None
        if _EPOCH.fullmatch(words):
            found = min(datetime.fromtimestamp(int(words), UTC), now)
        else:
            found = now - int(ago[1]) * UNITS[ago[2].lower()] if ago else read_time(words, zone)
    except OverflowError:
        found = None
    if found is None:
        message = gettext("Enter a time such as 2026-03-01, 2026-03-01T14:30, 7d, yesterday or now.")
        raise InvalidMoment(message)
    if found > now:
        raise InvalidMoment(gettext("That time is in the future. Choose one in the past."))
    return found.astimezone(UTC)


def url_time(at: datetime) -> str:
    """Format a moment for a URL: exact, in UTC, such as 2026-03-01T14:30:00Z."""
    return at.astimezone(UTC).isoformat().replace("+00:00", "Z")


def before_run(run: Run) -> datetime:
    """Return the moment just before a run started, or was requested if it never started."""
    return (run.started_at or run.created_at) - JUST_BEFORE


def known_since(workspace: Workspace) -> datetime:
    """Return when the hub's record of a workspace begins: its creation or its first audit record."""
    first = AuditRecord.objects.filter(workspace=workspace).order_by("id").values_list("at", flat=True).first()
    return min(workspace.created_at, first) if first else workspace.created_at
