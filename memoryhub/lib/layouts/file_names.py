"""What a session's file is called in each program's folder. A key is any text; a name never leaves its folder."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Iterable

_NOT_IN_NANOBOT = re.compile(r'[<>:"/\\|?*\x00-\x1f]')
_NOT_IN_GRIP = re.compile(r"[^\w\-.]")
LONGEST_STEM = 200  # bytes; a file system takes 255 with the ending
HASH_DIGITS = 12


def encoded_name(key: str) -> str:
    """Return nanobot 0.3's name of a session: base64url of the key, without padding."""
    return base64.urlsafe_b64encode(key.encode()).decode().rstrip("=")


def safe_name(key: str, layout: str) -> str:
    """Return the name that a program gives to a session, without the ending (formats.md sections 1 to 3)."""
    if layout == "nanobot-current":
        return encoded_name(key)
    if layout == "nanobot":
        return _NOT_IN_NANOBOT.sub("_", key).strip()
    return _NOT_IN_GRIP.sub("_", key)


def session_names(keys: Iterable[str], layout: str) -> dict[str, str]:
    """Return a name without ending for each key, each its own even where case doesn't count.

    Of keys whose names collide, the first in the order of the keys has the program's own name, the others one with a
    part of the key's SHA-256. So has a key whose name is too long for a file system.
    """
    taken: set[str] = set()
    names: dict[str, str] = {}
    for key in sorted(keys):
        name = safe_name(key, layout)
        if not name or len(name.encode()) > LONGEST_STEM or _folded(name, layout) in taken:
            name = distinct_name(key, layout)
        taken.add(_folded(name, layout))
        names[key] = name
    return names


def distinct_name(key: str, layout: str) -> str:
    """Return a name that no other key has: the beginning of the safe name, and a part of the key's SHA-256."""
    stem = safe_name(key, "grip" if layout == "nanobot-current" else layout).encode()[:80]
    digest = hashlib.sha256(key.encode()).hexdigest()[:HASH_DIGITS]
    return f"{stem.decode(errors='ignore')}-{digest}"


def is_own_name(key: str, name: str, layout: str) -> bool:
    """Tell whether a program looks for the session under this name."""
    return safe_name(key, layout) == name


def _folded(name: str, layout: str) -> str:
    """Base64 tells keys apart by case alone, and its program relies on it."""
    return name if layout == "nanobot-current" else name.casefold()
