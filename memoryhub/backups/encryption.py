"""Streams encrypted with a passphrase, by scrypt and AES-GCM.

Format: MAGIC, the length of the header in 4 bytes, the header (unencrypted JSON), then chunks of CHUNK bytes, the
last one shorter, each followed by its 16-byte tag. A chunk's nonce is its number and whether it is the last, so
changed, moved, missing and truncated chunks are detected (the STREAM construction of Hoang, Reyhanitabar, Rogaway and
Vizár, 2015). The header is authenticated with each chunk. Every stream has a new salt, and so a new key.
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
MAX_HEADER = 2**16
SCRYPT = {"n": 2**15, "r": 8, "p": 1}  # 32 MB and about 0.1 s per guess; part of format 1


class CannotDecrypt(Invalid):
    """The passphrase is wrong, or the stream is damaged."""

    code = "unsealable"


def read_header(source: IO[bytes]) -> tuple[dict[str, Any], bytes]:
    """Return the header of a stream, not yet authenticated, and its bytes. Raises CannotDecrypt."""
    prefix = source.read(len(MAGIC) + 4)
    length = int.from_bytes(prefix[len(MAGIC) :], "big")
    raw = source.read(min(length, MAX_HEADER))
    try:
        if not prefix.startswith(MAGIC) or len(raw) != length:
            raise ValueError
        header = json.loads(raw)
        base64.b64decode(header["salt"], validate=True)
    except (ValueError, KeyError, TypeError, RecursionError):
        raise CannotDecrypt(gettext("The header of the backup is damaged.")) from None
    return header, prefix + raw


class EncryptingWriter(io.RawIOBase):
    """Encrypt to another stream. ``close`` writes the last chunk and leaves the other stream open."""

    def __init__(self, out: IO[bytes], passphrase: str, header: dict[str, Any]) -> None:
        salt = os.urandom(16)
        raw = json.dumps(header | {"salt": base64.b64encode(salt).decode()}).encode()
        self._out = out
        self._cipher = AESGCM(_key(passphrase, salt))
        self._header = MAGIC + len(raw).to_bytes(4, "big") + raw
        self._buffer = bytearray()
        self._number = 0
        out.write(self._header)

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        self._buffer += data
        while len(self._buffer) > CHUNK:
            self._encrypt_chunk(bytes(self._buffer[:CHUNK]), is_last=False)
            del self._buffer[:CHUNK]
        return len(data)

    def close(self) -> None:
        if not self.closed:
            self._encrypt_chunk(bytes(self._buffer), is_last=True)
        super().close()

    def _encrypt_chunk(self, chunk: bytes, *, is_last: bool) -> None:
        self._out.write(self._cipher.encrypt(_nonce(self._number, is_last=is_last), chunk, self._header))
        self._number += 1


class DecryptingReader(io.RawIOBase):
    """Decrypt another stream, and return only authenticated bytes."""

    def __init__(self, source: IO[bytes], passphrase: str) -> None:
        header, self._header = read_header(source)
        self._cipher = AESGCM(_key(passphrase, base64.b64decode(header["salt"])))
        self._source = source
        self._next = source.read(CHUNK + TAG)
        self._decrypted = memoryview(b"")
        self._number = 0
        self._is_at_end = False

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        """Read up to the end of a chunk; return 0 at the end of the stream. Raises CannotDecrypt."""
        while not self._decrypted and not self._is_at_end:
            self._decrypted = memoryview(self._decrypt_chunk())
        count = min(len(buffer), len(self._decrypted))
        buffer[:count] = self._decrypted[:count]
        self._decrypted = self._decrypted[count:]
        return count

    def _decrypt_chunk(self) -> bytes:
        chunk, self._next = self._next, self._source.read(CHUNK + TAG)
        self._is_at_end = not self._next
        nonce = _nonce(self._number, is_last=self._is_at_end)
        self._number += 1
        try:
            return self._cipher.decrypt(nonce, chunk, self._header)
        except InvalidTag:
            if self._number == 1:
                message = "MEMORYHUB_BACKUP_KEY is wrong for this backup, or its first part is damaged."
            else:
                message = "The backup is damaged: part of it was changed or cut off."
            raise CannotDecrypt(message) from None


def _key(passphrase: str, salt: bytes) -> bytes:
    return Scrypt(salt=salt, length=32, **SCRYPT).derive(passphrase.encode())


def _nonce(number: int, *, is_last: bool) -> bytes:
    return number.to_bytes(11, "big") + bytes([is_last])
