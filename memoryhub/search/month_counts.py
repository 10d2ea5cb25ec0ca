"""Rows by month in the reader's time zone."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from django.db import connection
from django.db.models import Case, F, Q, TextField, Value, When
from django.db.models.functions import Cast, Substr, TruncMonth
from django.db.models.lookups import GreaterThanOrEqual, LessThanOrEqual
from django.utils import timezone

MONTH, MINUTE = 7, 16  # characters of a time until its month and its minutes: "2026-01", "2026-01-05 08:00"


def by_month(time: str) -> Any:
    """Return an expression to group rows by, whose values ``month_of`` reads.

    On SQLite, these are months of UTC, but minutes at their ends, where the month depends on the time zone: it would
    call a Python function with each row to find the month.
    """
    if connection.vendor != "sqlite":
        return TruncMonth(time)
    text = Cast(F(time), TextField())
    is_within = Q(
        GreaterThanOrEqual(Substr(text, 9, 2), Value("02")), LessThanOrEqual(Substr(text, 9, 2), Value("27"))
    )
    return Case(
        When(is_within, then=Substr(text, 1, MONTH)), default=Substr(text, 1, MINUTE), output_field=TextField()
    )


def month_of(value: Any) -> datetime:
    """Return the start of the month for a value of ``by_month``."""
    if not isinstance(value, str):
        return value  # type: ignore[no-any-return]
    zone = timezone.get_current_timezone()
    if len(value) == MONTH:
        return datetime(int(value[:4]), int(value[5:]), 1, tzinfo=zone)
    local = datetime.fromisoformat(value).replace(tzinfo=UTC).astimezone(zone)
    return local.replace(day=1, hour=0, minute=0)
