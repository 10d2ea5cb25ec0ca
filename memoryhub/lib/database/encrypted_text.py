"""Encrypt short texts, such as API keys, with the hub's secret key (AES-256-GCM)."""

from __future__ import annotations

import base64
import os

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from django.utils.crypto import salted_hmac

NONCE_BYTES = 12


def encrypt_text(text: str, *, context: str) -> str:
    """Return a text encrypted and base64-encoded. It can only be decrypted with the same ``context``."""
    nonce = os.urandom(NONCE_BYTES)
    return base64.b64encode(nonce + _cipher().encrypt(nonce, text.encode(), context.encode())).decode()


def decrypt_text(encrypted: str, *, context: str) -> str | None:
    """Return the text; None if it was changed, or encrypted with another context or secret key."""
    try:
        raw = base64.b64decode(encrypted, validate=True)
        return _cipher().decrypt(raw[:NONCE_BYTES], raw[NONCE_BYTES:], context.encode()).decode()
    except (InvalidTag, ValueError):
        return None


def _cipher() -> AESGCM:
    return AESGCM(salted_hmac("memoryhub.encrypted_text", "key", algorithm="sha256").digest())
