"""Values that look like secrets, so that pages mask them. Patterns of our own: names first, then known shapes."""

from __future__ import annotations

import re

_NAME = re.compile(
    r"(?:^|[._\-\s])(?:password|passwd|passphrase|secret|token|api[_-]?key|access[_-]?key|private[_-]?key|credentials?)"
    r"(?:$|[._\-\s])",
    re.IGNORECASE,
)
_SHAPES = re.compile(
    r"\b(?:sk-[A-Za-z0-9_-]{16,}|gh[pousr]_[A-Za-z0-9]{20,}|github_pat_\w{20,}|glpat-[\w-]{16,}|AKIA[0-9A-Z]{16}"
    r"|xox[abprs]-[\w-]{10,}|AIza[\w-]{30,}|eyJ[\w-]{10,}\.[\w-]{10,}\.[\w-]{5,})"
    r"|-----BEGIN [A-Z ]*PRIVATE KEY-----"
    r"|[a-z][a-z0-9+.-]*://[^\s/:@]+:[^\s/@]+@"
)
MASK = "••••••••"


def looks_secret(key: str, value: str) -> bool:
    """Tell whether a value should be masked: its key names a secret, or it has the shape of one."""
    return bool(value.strip()) and bool(_NAME.search(key) or _SHAPES.search(value))
