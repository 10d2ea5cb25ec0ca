"""A stream sealed with a passphrase: scrypt makes the key, AES-GCM seals chunk by chunk.

Layout: MAGIC, the head's length in 4 bytes, the head (JSON in the clear), then chunks. A chunk is CHUNK bytes, the
last one fewer, and a tag of 16. Its nonce is its number and whether it is the last, so that none can be changed,
moved, left out or cut off unseen (the STREAM construction of Hoang, Reyhanitabar, Rogaway and Vizár, 2015); the head
is authenticated with each. The salt, and with it the key, is new for every stream.
"""

from __future__ import annotations

import base64
import io
import json
import os
from typing import IO, Any

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.scrypt import Scrypt
from django.utils.translation import gettext

from memoryhub.lib.errors import Invalid

MAGIC = b"MemoryHub sealed 1\n"
CHUNK = 2**20
TAG = 16
MAX_HEAD = 2**16
SCRYPT = {"n": 2**15, "r": 8, "p": 1}  # 32 MB and about 0.1 s for each guess; fixed by the 1 in MAGIC


class Unsealable(Invalid):
    """A sealed stream that doesn't open: another passphrase, or its bytes are not those that were written."""

    code = "unsealable"


def read_head(source: IO[bytes]) -> tuple[dict[str, Any], bytes]:
    """Return the head of a sealed stream, which nothing vouches for yet, and its bytes. Raises Unsealable."""
    beginning = source.read(len(MAGIC) + 4)
    length = int.from_bytes(beginning[len(MAGIC) :], "big")
    raw = source.read(min(length, MAX_HEAD))
    try:
        if not beginning.startswith(MAGIC) or len(raw) != length:
            raise ValueError
        head = json.loads(raw)
        base64.b64decode(head["salt"], validate=True)
    except (ValueError, KeyError, TypeError, RecursionError):
        raise Unsealable(gettext("The file's beginning is damaged: it can't be opened.")) from None
    return head, beginning + raw


class SealingWriter(io.RawIOBase):
    """Seals what is written to it; ``close`` writes the last chunk and leaves the stream below open."""

    def __init__(self, out: IO[bytes], passphrase: str, head: dict[str, Any]) -> None:
        salt = os.urandom(16)
        raw = json.dumps(head | {"salt": base64.b64encode(salt).decode()}).encode()
        self._out = out
        self._cipher = AESGCM(_key(passphrase, salt))
        self._head = MAGIC + len(raw).to_bytes(4, "big") + raw
        self._waiting = bytearray()
        self._number = 0
        out.write(self._head)

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        self._waiting += data
        while len(self._waiting) > CHUNK:
            self._seal(bytes(self._waiting[:CHUNK]), is_last=False)
            del self._waiting[:CHUNK]
        return len(data)

    def close(self) -> None:
        if not self.closed:
            self._seal(bytes(self._waiting), is_last=True)
        super().close()

    def _seal(self, chunk: bytes, *, is_last: bool) -> None:
        self._out.write(self._cipher.encrypt(_nonce(self._number, is_last=is_last), chunk, self._head))
        self._number += 1


class UnsealingReader(io.RawIOBase):
    """The stream that was sealed; nothing is handed out before its chunk was found to be as it was written."""

    def __init__(self, source: IO[bytes], passphrase: str) -> None:
        head, self._head = read_head(source)
        self._cipher = AESGCM(_key(passphrase, base64.b64decode(head["salt"])))
        self._source = source
        self._next = source.read(CHUNK + TAG)
        self._open = memoryview(b"")
        self._number = 0
        self._is_over = False

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        """Fill the buffer as far as a chunk goes; 0 at the end. Raises Unsealable."""
        while not self._open and not self._is_over:
            self._open = memoryview(self._unseal())
        count = min(len(buffer), len(self._open))
        buffer[:count] = self._open[:count]
        self._open = self._open[count:]
        return count

    def _unseal(self) -> bytes:
        chunk, self._next = self._next, self._source.read(CHUNK + TAG)
        self._is_over = not self._next
        nonce = _nonce(self._number, is_last=self._is_over)
        self._number += 1
        try:
            return self._cipher.decrypt(nonce, chunk, self._head)
        except InvalidTag:
            if self._number == 1:
                words = "The key doesn't open it: it was sealed with another one, or its beginning is damaged."
            else:
                words = "It is damaged: some of it was changed or cut off since it was written."
            raise Unsealable(words) from None


def _key(passphrase: str, salt: bytes) -> bytes:
    return Scrypt(salt=salt, length=32, **SCRYPT).derive(passphrase.encode())


def _nonce(number: int, *, is_last: bool) -> bytes:
    return number.to_bytes(11, "big") + bytes([is_last])
