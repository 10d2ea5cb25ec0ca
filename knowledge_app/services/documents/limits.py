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
    return [_most(name, most) for name, most in _limits(document)]


def sizes(document: MemoryDocument, text: str) -> list[str]:
    """Return the size of a text beside each of a document's limits, for people."""
    return [label for label, _ in _sizes(document, text)]


def excesses(document: MemoryDocument, text: str) -> list[str]:
    """Return those of ``sizes`` that are over the limit."""
    return [label for label, is_over in _sizes(document, text) if is_over]


def is_strict(document: MemoryDocument) -> bool:
    """Return whether the program refuses texts over its limits, as those do that separate facts by a line."""
    return bool(document.separator)


def check_limits(document: MemoryDocument, text: str, before: str) -> None:
    """Raise LimitExceeded if the program would refuse a text, unless it shortens an even longer one."""
    if is_strict(document) and len(text) >= len(before) and (over := excesses(document, text)):
        words = gettext("%(document)s is too long for the agent: %(sizes)s.")
        raise LimitExceeded(words % {"document": document.name, "sizes": ", ".join(over)}, code="text_too_long")


def _limits(document: MemoryDocument) -> list[tuple[str, int]]:
    limits = [("chars", document.char_limit), ("bytes", document.byte_limit), ("lines", document.line_limit)]
    return [(name, most) for name, most in limits if most is not None]


def _sizes(document: MemoryDocument, text: str) -> list[tuple[str, bool]]:
    counts = {"chars": len(text), "bytes": len(text.encode()), "lines": len(text.splitlines())}
    words = gettext("%(count)s of at most %(most)s")
    return [
        (words % {"count": f"{counts[name]:,}", "most": _most(name, most)}, counts[name] > most)
        for name, most in _limits(document)
    ]


def _most(name: str, most: int) -> str:
    labels = {
        "chars": ngettext("%(n)s character", "%(n)s characters", most),
        "bytes": ngettext("%(n)s byte", "%(n)s bytes", most),
        "lines": ngettext("%(n)s line", "%(n)s lines", most),
    }
    return labels[name] % {"n": f"{most:,}"}
