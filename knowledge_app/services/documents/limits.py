"""How much of a memory document its agent's program reads."""

from __future__ import annotations

from django.utils.translation import gettext, ngettext

from knowledge_app.models import MemoryDocument
from memoryhub.lib.errors import LimitExceeded
from memoryhub.lib.layouts.records import DocumentLimit, DocumentRecord


def limit_fields(record: DocumentRecord) -> dict[str, object]:
    """Return the fields of a MemoryDocument that a record states."""
    limit = record.limit
    return {
        "separator": record.separator,
        "char_limit": limit.chars if limit else None,
        "byte_limit": limit.byte_count if limit else None,
        "line_limit": limit.lines if limit else None,
        "is_instructions": record.is_instructions,
    }


def stated_limit(document: MemoryDocument) -> DocumentLimit | None:
    """Return the limit of a document as a record states it."""
    limit = DocumentLimit(document.char_limit, document.byte_limit, document.line_limit)
    return None if limit == DocumentLimit() else limit


def limits_of(document: MemoryDocument) -> list[str]:
    """Return a document's limits for people."""
    return [_most(name, most) for name, most in _limits(document) if most is not None]


def excesses(document: MemoryDocument, text: str) -> list[str]:
    """Return by how much a text is over each of a document's limits, for people; an empty list if it isn't."""
    sizes = {"chars": len(text), "bytes": len(text.encode()), "lines": len(text.splitlines())}
    words = gettext("%(count)s of at most %(most)s")
    return [
        words % {"count": f"{sizes[name]:,}", "most": _most(name, most)}
        for name, most in _limits(document)
        if most is not None and sizes[name] > most
    ]


def check_limits(document: MemoryDocument, text: str, before: str) -> None:
    """Raise LimitExceeded if the program would refuse a text, unless it shortens an even longer one.

    Programs that separate facts by a line count them; others only cut what they read.
    """
    if document.separator and len(text) >= len(before) and (over := excesses(document, text)):
        words = gettext("%(document)s is too long for the agent: %(sizes)s.")
        raise LimitExceeded(words % {"document": document.name, "sizes": ", ".join(over)}, code="text_too_long")


def _limits(document: MemoryDocument) -> list[tuple[str, int | None]]:
    return [("chars", document.char_limit), ("bytes", document.byte_limit), ("lines", document.line_limit)]


def _most(name: str, most: int) -> str:
    labels = {
        "chars": ngettext("%(n)s character", "%(n)s characters", most),
        "bytes": ngettext("%(n)s byte", "%(n)s bytes", most),
        "lines": ngettext("%(n)s line", "%(n)s lines", most),
    }
    return labels[name] % {"n": f"{most:,}"}
