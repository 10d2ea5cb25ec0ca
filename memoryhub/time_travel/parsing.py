"""Which moment somebody means: a date, a time, "now", "7d" or "yesterday"; and how an address spells it."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, tzinfo

from django.utils.translation import gettext

from memoryhub.lib.errors import MemoryHubError
from memoryhub.lib.layouts.times import read_time
from sessions_app.models import AuditRecord, Run, Workspace

_BACK = re.compile(r"(\d{1,5})\s*(min|h|d|w)(?: ago)?", re.IGNORECASE)
UNITS = {"min": timedelta(minutes=1), "h": timedelta(hours=1), "d": timedelta(days=1), "w": timedelta(weeks=1)}
JUST_BEFORE = timedelta(microseconds=1)


class NoSuchTime(MemoryHubError):
    """A moment that can't be read, or that has not come yet."""

    code = "no_such_time"


def read_when(text: str, *, zone: tzinfo, now: datetime) -> datetime:
    """Return the moment that a text names, in UTC.

    "now", a date (its first moment; "today" is one), an ISO time, each in ``zone`` where it names none, "yesterday"
    (24 hours ago), or so many minutes, hours, days or weeks back: "30min", "36h", "7d", "2w". Raises NoSuchTime.
    """
    words = text.strip()
    named = {"now": "0min", "yesterday": "1d", "today": now.astimezone(zone).date().isoformat()}
    words = named.get(words.lower(), words)
    back = _BACK.fullmatch(words)
    try:
        found = now - int(back[1]) * UNITS[back[2].lower()] if back else read_time(words, zone)
    except OverflowError:
        found = None
    if found is None:
        said = gettext("That is no time. Write for example 2026-03-01, 2026-03-01T14:30, 7d, yesterday or now.")
        raise NoSuchTime(said)
    if found > now:
        raise NoSuchTime(gettext("That time has not come yet. Choose one that has passed."))
    return found.astimezone(UTC)


def in_address(at: datetime) -> str:
    """Return a moment as an address has it: exact, in UTC, such as 2026-03-01T14:30:00Z."""
    return at.astimezone(UTC).isoformat().replace("+00:00", "Z")


def before_run(run: Run) -> datetime:
    """Return the last moment before a run began; of one that never began, before it was asked for."""
    return (run.started_at or run.created_at) - JUST_BEFORE


def known_since(workspace: Workspace) -> datetime:
    """Return from when on the hub has any memory of a workspace: its making, or what was recorded before that."""
    first = AuditRecord.objects.filter(workspace=workspace).order_by("id").values_list("at", flat=True).first()
    return min(workspace.created_at, first) if first else workspace.created_at
