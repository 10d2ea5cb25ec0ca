"""Rows by month in the reader's time zone."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from django.db import connection
from django.db.models import F, TextField
from django.db.models.functions import Substr, TruncMonth
from django.utils import timezone

MINUTE = 16  # characters of a time until its minutes: "2026-01-05 08:00"


def by_month(time: str) -> Any:
    """Return an expression to group rows by, whose values ``month_of`` reads.

    On SQLite, these are minutes, because it would call a Python function with each row to find the month.
    """
    if connection.vendor == "sqlite":
        return Substr(F(time), 1, MINUTE, output_field=TextField())
    return TruncMonth(time)


def month_of(value: Any) -> datetime:
    """Return the start of the month for a value of ``by_month``."""
    if not isinstance(value, str):
        return value  # type: ignore[no-any-return]
    local = datetime.fromisoformat(value).replace(tzinfo=UTC).astimezone(timezone.get_current_timezone())
    return local.replace(day=1, hour=0, minute=0)
