"""Clear what a process keeps of texts after something was forgotten, also by another process."""

from __future__ import annotations

from collections.abc import Callable

from django.db.models import Max

from memoryhub.lib.text_caches import clear_texts
from sessions_app.models import AuditRecord


def follow_erasures() -> Callable[[], None]:
    """Return a function that clears the caches if something was forgotten since its last call.

    It does so again at the next call: a request may have read a text before it was forgotten.
    """
    seen = _latest()
    is_again = False

    def follow() -> None:
        nonlocal seen, is_again
        newest = _latest()
        since = AuditRecord.objects.filter(pk__gt=seen, pk__lte=newest, action="memory.forgotten")
        is_new = newest > seen and since.exists()
        if is_new or is_again:
            clear_texts()
        seen, is_again = newest, is_new

    return follow


def _latest() -> int:
    return AuditRecord.objects.aggregate(latest=Max("pk"))["latest"] or 0
