"""Values that look like secrets, so that pages mask them. Patterns of our own: names first, then known shapes."""

from __future__ import annotations

import re
from collections.abc import Iterator

_SURE = {"password", "passwords", "passwd", "passphrase", "secret", "secrets", "credential", "credentials", "apikey"}
_LIKELY = {"key", "keys", "token", "tokens"}  # at the end of a name
_PLAIN_KEYS = {"", "primary", "sort", "foreign", "public", "partition", "cache", "shortcut", "hot"}
_ABOUT = {
    "policy",
    "length",
    "hint",
    "count",
    "limit",
    "ttl",
    "expiry",
    "rotation",
}  # at the end: not the secret itself
_NUMBER = re.compile(r"\s*(?:\d{1,9}|true|false|null)\s*", re.IGNORECASE)
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_INSIDE = re.compile(r"""["']([\w.-]{1,64})["']\s*:\s*["']([^"']+)|(?:^|\s)([A-Za-z_]\w{1,63})=(\S+)""")
_SHAPES = re.compile(
    r"\b(?:sk-[A-Za-z0-9_-]{16,}|mh_[0-9a-f]{10}_[\w-]{43}|gh[pousr]_[A-Za-z0-9]{20,}|github_pat_\w{20,}|glpat-[\w-]{16,}|AKIA[0-9A-Z]{16}"
    r"|xox[abprs]-[\w-]{10,}|AIza[\w-]{30,}|eyJ[\w-]{10,}\.[\w-]{10,}\.[\w-]{5,})"
    r"|-----BEGIN [A-Z ]*PRIVATE KEY-----"
    r"|[a-z][a-z0-9+.-]{0,30}://[^\s/:@]{1,200}:[^\s/@]{1,200}@"
    r"|\b[0-9a-fA-F]{64,}\b"
    r"|(?<![\w/.+-])(?=[A-Za-z0-9+]*[A-Z])(?=[A-Za-z0-9+]*[a-z])(?=[A-Za-z0-9+]*[0-9])[A-Za-z0-9+]{32,}={0,2}(?![\w/.-])"
)


def looks_secret(key: str, value: str) -> bool:
    """Tell whether a value should be masked: its key or a name in it names a secret, or it has the shape of one."""
    if not value.strip():
        return False
    inside = ((found[1] or found[3], found[2] or found[4]) for found in _INSIDE.finditer(value))
    return names_secret(key, value) or bool(_SHAPES.search(value)) or any(names_secret(*pair) for pair in inside)


def find_secrets(text: str) -> Iterator[tuple[int, int, bool]]:
    """Yield where a text holds what looks like a secret: start, end, and whether a name in the text says so."""
    for found in _INSIDE.finditer(text):
        group = 2 if found[1] else 4
        if names_secret(found[1] or found[3], found[group]):
            yield found.start(group), found.end(group), True
    for found in _SHAPES.finditer(text):
        yield found.start(), found.end(), False


def names_secret(name: str, value: str) -> bool:
    """Tell whether a name says that its value is a secret: ``db_password``, ``authToken``, not ``max_tokens``."""
    words = [word for word in re.split(r"[\W_]+", _HUMP.sub("_", name).lower()) if word]
    if not words or words[-1] in _ABOUT:
        return False
    if _SURE.intersection(words):
        return True
    before = words[-2] if len(words) > 1 else ""
    is_likely = words[-1] in _LIKELY and not (words[-1].startswith("key") and before in _PLAIN_KEYS)
    return is_likely and not _NUMBER.fullmatch(value)
