"""What agents get instead of a name, title or reason that the content check flags. People see the text, marked."""

from __future__ import annotations

import re

from memoryhub.lib.content_check.precheck import findings_in
from memoryhub.lib.text_caches import text_cache

FLAGGED = "[flagged]"
_NAME = re.compile(r"flagged-(document|session)-(\d{1,18})")


@text_cache(4096)  # agents read the same names again and again
def is_flagged(text: str) -> bool:
    return bool(findings_in(text))


def served_text(text: str) -> str:
    """Return a title or a reason as agents get it."""
    return FLAGGED if is_flagged(text) else text


def served_name(name: str, kind: str, pk: int) -> str:
    """Return the name of a document or the key of a session (``kind``) as agents get it, and may send it."""
    return f"flagged-{kind}-{pk}" if is_flagged(name) else name


def pk_in(name: str, kind: str) -> int | None:
    """Return the primary key in a name that ``served_name`` made up, else None."""
    found = _NAME.fullmatch(name)
    return int(found[2]) if found and found[1] == kind else None
