"""Grip's response cache: replies keyed by a hash of the message and model (formats.md section 3)."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db import transaction
from django.db.models import Count, F, Max, Min, QuerySet, Sum
from django.db.models.functions import Length
from django.utils.dateparse import parse_datetime

from knowledge_app.models import CachedResponse, EditedRow
from knowledge_app.services.decisions import is_by_person
from knowledge_app.services.held_rows import Finding, text_findings
from memoryhub.lib.database import db_retry
from memoryhub.lib.layouts.records import CachedResponseRecord
from memoryhub.lib.validation import clean_text
from sessions_app.models import Run, Workspace

PREVIEW_CHARS = 100


@dataclass(frozen=True)
class CacheFigures:
    """A cache's statistics. ``size``: total characters of responses. ``hit_rate``: from 0 to 1, or None."""

    count: int
    expired: int
    size: int
    hits: int
    misses: int
    oldest: datetime | None
    newest: datetime | None

    @property
    def hit_rate(self) -> float | None:
        asked = self.hits + self.misses
        return self.hits / asked if asked else None


def cache_key(message: str, model: str) -> str:
    """Return the hex SHA-256 of the stripped, lower-case message, ``||`` and the model."""
    return hashlib.sha256(f"{clean_text(message).strip().lower()}||{clean_text(model)}".encode()).hexdigest()


def is_expired(row: CachedResponse, workspace: Workspace, now: datetime) -> bool:
    """Tell whether a response has reached the workspace's maximum age (Grip's rule)."""
    lifetime = timedelta(seconds=workspace.cache_ttl_seconds)
    return row.created_at is None or now - row.created_at >= lifetime


@db_retry.retried
def look_up(workspace: Workspace, message: str, model: str, *, now: datetime) -> str | None:
    """Return the cached response to a message, or None, and count the hit or miss.

    An expired response is removed.
    """
    if not workspace.cache_enabled:
        return None
    with transaction.atomic():
        rows = CachedResponse.objects.select_for_update().filter(workspace=workspace)
        row = rows.filter(key=cache_key(message, model)).first()
        found = row is not None and not is_expired(row, workspace, now)
        count = "cache_hit_count" if found else "cache_miss_count"
        Workspace.objects.filter(pk=workspace.pk).update(**{count: F(count) + 1})
        if row is None:
            return None
        if not found:
            row.delete()
            return None
        row.hit_count += 1
        row.accessed_at = now
        row.extra = {name: value for name, value in row.extra.items() if name != "accessed_at"}
        row.save(update_fields=["hit_count", "accessed_at", "extra"])
        return row.response


def findings_of_response(preview: str, response: str) -> list[Finding]:
    """Return what the content check finds in a response and the preview of its message.

    Flagged responses of agents and their files aren't cached: unlike held rows, they are easily asked for again.
    """
    return text_findings([("message", preview), ("response", response)])


@db_retry.retried
def keep(workspace: Workspace, message: str, model: str, response: str, *, now: datetime) -> CachedResponse | None:
    """Cache a response and evict the least recently used ones; None if the cache is off."""
    if not workspace.cache_enabled:
        return None
    with transaction.atomic():
        values = {
            "model": clean_text(model)[:200],
            "response": clean_text(response),
            "preview": clean_text(message[:PREVIEW_CHARS]),
            "created_at": now,
            "accessed_at": now,
            "extra": {},
        }
        row, _ = CachedResponse.objects.update_or_create(
            workspace=workspace, key=cache_key(message, model), defaults=values
        )
        _evict(workspace)
        return row


def invalidated(workspace: Workspace, records: Iterable[CachedResponseRecord]) -> set[str]:
    """Return the keys of a file's responses that people invalidated; one that was given since isn't among them."""
    wanted = {record.key: record for record in records} if workspace.pk else {}
    edits = EditedRow.objects.filter(run__workspace=workspace.pk, run__status=Run.Status.DONE, table="cached")
    found = set()
    for before, after, options, at in edits.values_list("before", "after", "run__options", "run__created_at"):
        record = wanted.get((before or {}).get("key", ""))
        is_removal = after is None and is_by_person(options)
        if before and record and is_removal and _is_old(record, before, at):
            found.add(record.key)
    return found


def _is_old(record: CachedResponseRecord, removed: Mapping[str, Any], at: datetime) -> bool:
    """Tell whether a file's response is the removed one, or from before its removal."""
    at_first = removed.get("created_at")
    is_same = (record.response, record.created_at) == (removed.get("response"), at_first and parse_datetime(at_first))
    return is_same or (record.created_at is not None and record.created_at <= at)


def _evict(workspace: Workspace) -> None:
    rows = CachedResponse.objects.filter(workspace=workspace)
    excess = rows.count() - workspace.cache_max_entries
    if excess > 0:
        oldest = rows.order_by(F("accessed_at").asc(nulls_first=True), "id").values_list("pk", flat=True)[:excess]
        rows.filter(pk__in=list(oldest)).delete()


def figures(workspace: Workspace, now: datetime) -> CacheFigures:
    """Return the statistics of a workspace's cache. One query over its rows."""
    rows = CachedResponse.objects.filter(workspace=workspace)
    found = rows.aggregate(
        count=Count("pk"), size=Sum(Length("response")), oldest=Min("created_at"), newest=Max("created_at")
    )
    return CacheFigures(
        count=found["count"],
        expired=expired(workspace, now).count(),
        size=found["size"] or 0,
        hits=workspace.cache_hit_count,
        misses=workspace.cache_miss_count,
        oldest=found["oldest"],
        newest=found["newest"],
    )


def expired(workspace: Workspace, now: datetime) -> QuerySet[CachedResponse]:
    rows = CachedResponse.objects.filter(workspace=workspace)
    limit = now - timedelta(seconds=workspace.cache_ttl_seconds)
    return rows.filter(created_at__lte=limit) | rows.filter(created_at=None)
