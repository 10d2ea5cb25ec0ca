"""Stored text as pages show it."""

from __future__ import annotations

import json
import re

from memoryhub.lib.content_check.hidden_content import show_invisible
from memoryhub.lib.scanners import MASK, mask_secrets, scan_secrets

_JSON_STRING = re.compile(r'"(?:[^"\\]|\\.)*"')


def has_secrets(text: str) -> bool:
    return bool(scan_secrets(text))


def masked(text: str) -> str:
    """Return text with ••• for each secret, with its line breaks, and with invisible characters shown."""
    parts, end = [], 0
    for match in scan_secrets(text):
        parts += [text[end : match.start], MASK, "\n" * text.count("\n", match.start, match.end)]
        end = match.end
    return show_invisible("".join([*parts, text[end:]]))


def masked_json(text: str) -> str:
    """Return JSON, or lines of it, with ••• for each secret in a string. Everything else stays as it is."""
    return _JSON_STRING.sub(_masked_string, text)


def _masked_string(found: re.Match[str]) -> str:
    text = json.loads(found[0])
    secrets = scan_secrets(text)
    return json.dumps(mask_secrets(text, secrets), ensure_ascii=False) if secrets else found[0]
