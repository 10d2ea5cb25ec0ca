"""Blank out markup, HTML tags and Markdown's emphasis and links, which may split a name. Pure, in linear time.

No part of a pattern goes beyond the next ``<`` or bracket, so that the texts of failed matches don't overlap.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

FILLER = "\u200b"  # ignored within a word
_MARKUP = re.compile(
    rf"""
    <!--(?:(?!-->)[^<])*-->                                                # a comment
    |<[/{FILLER}]*(?P<tag>[a-zA-Z][a-zA-Z0-9]*)(?:[^<>"']|"[^"<]*"|'[^'<]*')*>  # a tag, maybe decoded
    |(?:\]\((?:[^()\[\]\n]|\([^()\[\]\n]*\))*\)|\]\[[^\[\]\n]*\])   # the end of a link, with its target
    |\[\^[^\[\]\s]+\]                                                      # a footnote
    |!?\[(?=[^\[\]\n]*\][(\[])                                            # the beginning of a link
    |[*~`]+                                                      # emphasis
    """,
    re.VERBOSE,
)
_BREAKING = re.compile(
    r"(?i:article|aside|blockquote|br|d[dlt]|div|h[1-6r]|li|[ou]l|option|p|pre|section|table|t[dhr])"
)
_IN_WORD = re.compile(r"\w[*~`]+\w")  # elsewhere, emphasis only stands between words


def without_markup(text: str) -> Iterator[str]:
    """Yield a text of the same length as a reader sees it, and with all markup as spaces; nothing if it has none."""
    if not _has_markup(text):
        return
    yield _MARKUP.sub(_as_shown, text)
    yield _MARKUP.sub(lambda found: " " * len(found.group()), text)


def _has_markup(text: str) -> bool:
    return "<" in text or "](" in text or "][" in text or "[^" in text or _IN_WORD.search(text) is not None


def _as_shown(found: re.Match[str]) -> str:
    return (" " if _BREAKING.fullmatch(found["tag"] or "") else FILLER) * len(found.group())
