"""Read tar archives from a stream, with limits on their size and headers.

``tarfile`` reads extended headers (PAX, GNU long names and sparse maps) into memory, whatever size they claim, and
skips content by decompressing it.
"""

from __future__ import annotations

import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, cast

MAX_HEADER_BYTES = 2**16  # of one member, with its extended headers
CHUNK_BYTES = 2**16


class TarTooLarge(tarfile.ReadError):
    """The archive exceeds a limit."""


class LimitedTar:
    """A tar archive that is read once, from beginning to end. ``stream`` is its uncompressed content.

    ``max_bytes`` limits the archive, and ``max_header_bytes`` all headers together. All methods raise
    ``tarfile.TarError`` for a damaged archive, TarTooLarge, and what ``stream.read`` raises.
    """

    def __init__(self, stream: IO[bytes], *, max_bytes: int, max_header_bytes: int) -> None:
        self._reader = _LimitedReader(stream, max_bytes, max_header_bytes)
        with _header_errors():
            self._archive = tarfile.TarFile(fileobj=cast("IO[bytes]", self._reader))

    def next(self) -> tarfile.TarInfo | None:
        """Return the next member, or None at the end."""
        self._reader.begin_header()
        with _header_errors():
            member = self._archive.next()
        self._archive.members = []  # type: ignore[attr-defined]  # don't collect all members in memory
        return member

    def open(self, member: tarfile.TarInfo) -> IO[bytes]:
        """Return the content of the regular file that ``next`` has just returned."""
        self._reader.end_header()
        content = self._archive.extractfile(member)
        if content is None:
            raise tarfile.ReadError(f"{member.name[:200]!r} is not a file")
        return content


@contextmanager
def _header_errors() -> Iterator[None]:
    try:
        yield
    except (RecursionError, ValueError, OverflowError) as error:  # chained headers, invalid numbers
        raise tarfile.ReadError("damaged header") from error


class _LimitedReader:
    """The file object of a TarFile. It counts bytes and seeks only forwards."""

    def __init__(self, stream: IO[bytes], max_bytes: int, max_header_bytes: int) -> None:
        self._stream, self._position = stream, 0
        self._max_bytes, self._header_bytes_left = max_bytes, max_header_bytes
        self.begin_header()

    def begin_header(self) -> None:
        """Apply the limits of headers to what is read from now on."""
        self._is_in_header, self._member_bytes_left = True, MAX_HEADER_BYTES

    def end_header(self) -> None:
        self._is_in_header = False

    def tell(self) -> int:
        return self._position

    def seek(self, offset: int, whence: int = 0) -> int:
        if whence != 0 or offset < self._position:
            raise tarfile.ReadError("damaged header")
        self._check_position(offset)
        while self._position < offset and self._read(min(CHUNK_BYTES, offset - self._position)):
            pass
        return self._position

    def read(self, size: int = -1) -> bytes:
        if self._is_in_header:
            self._member_bytes_left -= max(size, 0)
            self._header_bytes_left -= max(size, 0)
            if size < 0 or self._member_bytes_left < 0 or self._header_bytes_left < 0:
                raise TarTooLarge("its headers are too large")
        return self._read(size)

    def _read(self, size: int) -> bytes:
        self._check_position(self._position + max(size, 0))
        data = self._stream.read(size)
        self._position += len(data)
        return data

    def _check_position(self, position: int) -> None:
        if position > self._max_bytes:
            raise TarTooLarge(f"it is larger than {self._max_bytes // 2**20} MB")
