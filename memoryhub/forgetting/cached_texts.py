"""Clear what a process keeps of texts after something was forgotten, also by another process."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from django.db import DatabaseError, connection
from django.db.models import Max

from memoryhub.lib.text_caches import clear_texts
from sessions_app.models import AuditRecord
from sessions_app.services.audit import RECENT_IDS

logger = logging.getLogger(__name__)
SECONDS = 30.0  # between two looks


def follow_erasures() -> Callable[[], None]:
    """Return a function that clears the caches if something was forgotten since its last call.

    It does so again at the next call: a request may have read a text before it was forgotten.
    """
    latest = _latest()
    known, is_again = _erasures(latest), False

    def follow() -> None:
        nonlocal latest, known, is_again
        newest, found = _latest(), _erasures(latest)
        is_new = bool(found - known)
        if is_new or is_again:
            clear_texts()
        latest, known, is_again = newest, found, is_new

    return follow


@contextmanager
def erasures_followed() -> Iterator[None]:
    """Clear the caches during the block, for a process that isn't registered and writes nothing by itself."""
    ended = threading.Event()
    follow = follow_erasures()
    thread = threading.Thread(target=_follow, args=(follow, ended), name="erasures", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join(SECONDS)


def _follow(follow: Callable[[], None], ended: threading.Event) -> None:
    while not ended.wait(SECONDS):
        try:
            follow()
        except DatabaseError as error:
            logger.warning("can't find out what was forgotten: %s", error)
        connection.close()


def _latest() -> int:
    return AuditRecord.objects.aggregate(latest=Max("pk"))["latest"] or 0


def _erasures(since: int) -> set[int]:
    """Return the records of erasures since another record, and of those before it that may be committed late."""
    records = AuditRecord.objects.filter(pk__gt=since - RECENT_IDS, action="memory.forgotten")
    return set(records.values_list("pk", flat=True))
