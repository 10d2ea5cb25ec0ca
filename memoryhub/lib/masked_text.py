"""Stored text as pages show it."""

from __future__ import annotations

from memoryhub.lib.content_check.reach import show_invisible
from memoryhub.lib.scanners import MASK, scan_secrets


def has_secrets(text: str) -> bool:
    return bool(scan_secrets(text))


def masked(text: str) -> str:
    """Return text with ••• for each secret, with its line breaks, and with invisible characters shown."""
    for match in reversed(scan_secrets(text)):
        breaks = "\n" * text.count("\n", match.start, match.end)
        text = text[: match.start] + MASK + breaks + text[match.end :]
    return show_invisible(text)
