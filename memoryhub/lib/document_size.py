"""The limit of a memory document's length, and what pages show of longer ones."""

from __future__ import annotations

from django.utils.translation import gettext

from memoryhub.lib.errors import LimitExceeded

MAX_DOCUMENT_CHARS = 1_000_000
SHOWN_CHARS = 100_000
SHOWN_FACT_CHARS = 10_000


def is_oversize(text: str) -> bool:
    """Tell whether a document is over the limit, as those stored before it was introduced may be."""
    return len(text) > MAX_DOCUMENT_CHARS


def check_size(text: str, before: str = "") -> None:
    """Raise LimitExceeded if a text is too long for a document, unless it shortens an even longer one."""
    if is_oversize(text) and len(text) >= len(before):
        words = gettext("A document can have at most %(most)s characters; this one has %(count)s.")
        values = {"most": f"{MAX_DOCUMENT_CHARS:,}", "count": f"{len(text):,}"}
        raise LimitExceeded(words % values, code="text_too_long")


def shown_part(text: str) -> str:
    """Return a document's text, or the beginning of an oversize one."""
    return text[:SHOWN_CHARS] if is_oversize(text) else text


def shown_fact(text: str) -> str:
    """Return a fact's text, cut if it would fill pages."""
    return text if len(text) <= SHOWN_FACT_CHARS else f"{text[:SHOWN_FACT_CHARS]}…"
