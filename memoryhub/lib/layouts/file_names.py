"""File names of sessions in each program's folder. Keys can be any text; names never contain a path separator."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Iterable

_NOT_IN_NANOBOT = re.compile(r'[<>:"/\\|?*\x00-\x1f]')
_NOT_IN_GRIP = re.compile(r"[^\w\-.]")
MAX_STEM_BYTES = 200  # file systems allow 255 with the extension
HASH_DIGITS = 12
_SEPARATOR = re.compile(r"[/\\]")


def last_part(path: str) -> str:
    """Return the last part of a path of any system, "" for a root."""
    return _SEPARATOR.split(path.rstrip("/\\"))[-1]


def encoded_name(key: str) -> str:
    """Return nanobot 0.3's file name for a session key: base64url without padding."""
    return base64.urlsafe_b64encode(key.encode()).decode().rstrip("=")


def safe_name(key: str, layout: str) -> str:
    """Return the name that a program itself gives to a session's file, without extension."""
    if layout == "nanobot-current":
        return encoded_name(key)
    if layout == "nanobot":
        return _NOT_IN_NANOBOT.sub("_", key).strip()
    return _NOT_IN_GRIP.sub("_", key)


def session_names(keys: Iterable[str], layout: str) -> dict[str, str]:
    """Return a file name without extension for each key, unique also on case-insensitive file systems.

    If names collide, the first key in sort order gets the program's own name, and the others a name with a part of
    the key's SHA-256, as do keys that are too long.
    """
    used: set[str] = set()
    names: dict[str, str] = {}
    for key in sorted(keys):
        name = safe_name(key, layout)
        if not name or len(name.encode()) > MAX_STEM_BYTES or _folded(name, layout) in used:
            name = distinct_name(key, layout)
        used.add(_folded(name, layout))
        names[key] = name
    return names


def distinct_name(key: str, layout: str) -> str:
    """Return the start of the safe name with a part of the key's SHA-256, which is unique to the key."""
    stem = safe_name(key, "grip" if layout == "nanobot-current" else layout).encode()[:80]
    digest = hashlib.sha256(key.encode()).hexdigest()[:HASH_DIGITS]
    return f"{stem.decode(errors='ignore')}-{digest}"


def is_own_name(key: str, name: str, layout: str) -> bool:
    """Return whether a program looks for the session under this name."""
    return safe_name(key, layout) == name


def _folded(name: str, layout: str) -> str:
    """Names in base64 are case-sensitive."""
    return name if layout == "nanobot-current" else name.casefold()
