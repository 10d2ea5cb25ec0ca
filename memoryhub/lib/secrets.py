"""Detect values that look like secrets, by the name of their key or by their format, so that pages can mask them."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator

_SECRET_WORDS = {
    "password",
    "passwords",
    "passwd",
    "passphrase",
    "secret",
    "secrets",
    "credential",
    "credentials",
    "apikey",
}
_KEY_WORDS = {"key", "keys", "token", "tokens"}  # as the last word of a name
_PLAIN_KEYS = {"", "primary", "sort", "foreign", "public", "partition", "cache", "shortcut", "hot"}
_METADATA_WORDS = {  # as the last word: about a secret, not the secret itself
    "policy",
    "length",
    "hint",
    "count",
    "limit",
    "ttl",
    "expiry",
    "rotation",
}
_DUMMY_KEY = re.compile(  # for servers that don't check keys, such as "sk-no-key-required"
    r"(any|api|dev|development|dummy|empty|example|fake|here|key|lm|local|localhost|needed|no|none|not|null|ollama"
    r"|placeholder|required|sk|studio|test|testing|token|unused|your|[\W_])+",
    re.IGNORECASE,
)
MIN_KEY_CHARS = 12
MIN_KEY_ENTROPY = 2.8  # bits per character
_NUMBER = re.compile(r"\s*(?:\d{1,9}|true|false|null)\s*", re.IGNORECASE)
_CAMEL_CASE = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_ASSIGNMENT = re.compile(r"""["']([\w.-]{1,64})["']\s*:\s*["']([^"']+)|(?:^|\s)([A-Za-z_]\w{1,63})=(\S+)""")
_KNOWN_FORMATS = re.compile(
    r"\b(?:sk-[A-Za-z0-9_-]{16,}|mh_[0-9a-f]{10}_[\w-]{43}|gh[pousr]_[A-Za-z0-9]{20,}|github_pat_\w{20,}|glpat-[\w-]{16,}|AKIA[0-9A-Z]{16}"
    r"|xox[abprs]-[\w-]{10,}|AIza[\w-]{30,}|eyJ[\w-]{10,}\.[\w-]{10,}\.[\w-]{5,})"
    r"|-----BEGIN [A-Z ]*PRIVATE KEY-----"
    r"|[a-z][a-z0-9+.-]{0,30}://[^\s/:@]{1,200}:[^\s/@]{1,200}@"
    r"|\b[0-9a-fA-F]{64,}\b"
    r"|(?<![\w/.+-])(?=[A-Za-z0-9+]{32})(?=[A-Za-z0-9+]*[A-Z])(?=[A-Za-z0-9+]*[a-z])(?=[A-Za-z0-9+]*[0-9])[A-Za-z0-9+]{32,}={0,2}(?![\w/.-])"
)
_LONG_WORD = re.compile(r"\S{8,}")
MIN_FORMAT_CHARS = 15  # of all known formats but addresses with a password


def is_real_key(key: str) -> bool:
    """Return whether an API key is long and varied enough to be a secret, not a dummy such as "ollama"."""
    if len(key) < MIN_KEY_CHARS or _DUMMY_KEY.fullmatch(key):
        return False
    shares = [count / len(key) for count in Counter(key).values()]
    return -sum(share * math.log2(share) for share in shares) >= MIN_KEY_ENTROPY


def looks_secret(key: str, value: str) -> bool:
    """Return whether to mask a value: its key, or a key inside it, names a secret, or it has a secret's format."""
    if not value.strip():
        return False
    pairs = ((match[1] or match[3], match[2] or match[4]) for match in _ASSIGNMENT.finditer(value))
    return (
        names_secret(key, value) or bool(_KNOWN_FORMATS.search(value)) or any(names_secret(*pair) for pair in pairs)
    )


def find_secrets(text: str) -> Iterator[tuple[int, int, bool]]:
    """Yield ``(start, end, is_named)`` for each likely secret. ``is_named``: found by its key, not by its format."""
    for match in _ASSIGNMENT.finditer(text):
        group = 2 if match[1] else 4
        if names_secret(match[1] or match[3], match[group]):
            yield match.start(group), match.end(group), True
    yield from ((match.start(), match.end(), False) for match in _known_formats(text))


def _known_formats(text: str) -> Iterator[re.Match[str]]:
    """Yield what ``_KNOWN_FORMATS`` finds. Its formats have no spaces, except the first line of a private key."""
    if "-----BEGIN" in text:
        yield from _KNOWN_FORMATS.finditer(text)
        return
    for word in _LONG_WORD.finditer(text):
        if word.end() - word.start() >= MIN_FORMAT_CHARS or "://" in word[0]:
            yield from _KNOWN_FORMATS.finditer(text, word.start(), word.end())


def names_secret(name: str, value: str) -> bool:
    """Return whether a key names a secret: ``db_password`` or ``authToken``, but not ``max_tokens`` with a number."""
    words = [word for word in re.split(r"[\W_]+", _CAMEL_CASE.sub("_", name).lower()) if word]
    if not words or words[-1] in _METADATA_WORDS:
        return False
    if _SECRET_WORDS.intersection(words):
        return True
    before = words[-2] if len(words) > 1 else ""
    is_likely = words[-1] in _KEY_WORDS and not (words[-1].startswith("key") and before in _PLAIN_KEYS)
    return is_likely and not _NUMBER.fullmatch(value)
