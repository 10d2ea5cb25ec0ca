"""Reading an agent's folder safely: never through a link, never beyond a limit, never half a write.

Every path is opened part by part below a directory handle with O_NOFOLLOW, so that a folder swapped for a link
between the look and the read leads nowhere. Only regular files are read.
"""

from __future__ import annotations

import errno
import hashlib
import os
import stat
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from memoryhub.lib.errors import MemoryHubError

T = TypeVar("T")

MAX_DEPTH = 6
MAX_FILES = 50_000
MAX_LINE_BYTES = 8 * 2**20
MAX_LINES_FILE_BYTES = 256 * 2**20
MAX_WHOLE_FILE_BYTES = 32 * 2**20
CHUNK_BYTES = 2**20
ATTEMPTS = 3


class FolderMissing(MemoryHubError):
    code = "folder_missing"


class UnreadableFile(MemoryHubError):
    """A file that is not read; the message says why in words for the report."""

    code = "unreadable_file"


class UnstableFile(UnreadableFile):
    code = "unstable_file"


class UnchangedFile(UnreadableFile):
    """A file that is as it was at an earlier read, and is passed over; see ``Folder.pass_over``."""

    code = "unchanged_file"


@dataclass(frozen=True)
class FileFacts:
    """What one stable read saw: size in bytes, modification time in nanoseconds, SHA-256 of the bytes.

    ``stamp``: see ``Folder.stamp``.
    """

    size: int
    mtime_ns: int
    sha256: str
    stamp: str = ""


@dataclass(frozen=True)
class Refused:
    """A directory entry that is not followed or read, and why."""

    path: str
    why: str


class Stream:
    """The bytes of one open file, hashed as they pass."""

    def __init__(self, handle: int, limit: int) -> None:
        self._handle = handle
        self._limit = limit
        self._seen = 0
        self._hash = hashlib.sha256()

    def _chunk(self) -> bytes:
        data = os.read(self._handle, CHUNK_BYTES)
        self._seen += len(data)
        if self._seen > self._limit:
            raise UnreadableFile(f"larger than the limit of {self._limit // 2**20} MB")
        self._hash.update(data)
        return data

    def chunks(self) -> Iterator[bytes]:
        while data := self._chunk():
            yield data

    def read(self) -> bytes:
        """Return the whole file."""
        return b"".join(self.chunks())

    def lines(self, limit: int = MAX_LINE_BYTES) -> Iterator[tuple[int, bytes | None]]:
        """Yield ``(number from 1, line without its newline)``; None stands for a line beyond the limit.

        Lines end at ``\\n`` only: other separators are characters of a record. Such a giant is passed over
        without being held in memory.
        """
        number, pending, oversize = 1, bytearray(), False
        for data in self.chunks():
            *complete, rest = data.split(b"\n")
            for part in complete:
                oversize = oversize or len(pending) + len(part) > limit
                yield number, None if oversize else bytes(pending + part)
                number, oversize = number + 1, False
                pending.clear()
            oversize = oversize or len(pending) + len(rest) > limit
            if oversize:
                pending.clear()
            else:
                pending += rest
        if pending or oversize:
            yield number, None if oversize else bytes(pending)

    def sha256(self) -> str:
        return self._hash.hexdigest()


def display_path(path: str) -> str:
    """Return a file name as storable text: bytes that are not UTF-8 show as ``\\xNN``."""
    return os.fsencode(path).decode("utf-8", errors="backslashreplace").replace("\x00", "\\x00")


class Folder:
    """One agent's folder, held open by handle. Use as a context manager.

    ``quiet_seconds``: a file that changed more recently is waited for, since its writer may not be done.
    Raises FolderMissing when the path is no folder that can be opened.
    """

    def __init__(self, path: Path, *, quiet_seconds: float = 0.0) -> None:
        self.path = path
        self._quiet_seconds = quiet_seconds
        self._known: Mapping[str, str] = {}
        try:
            self._root = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
        except OSError as error:
            raise FolderMissing(
                f"The folder {display_path(str(path))} can't be opened: {error.strerror}.", path=str(path)
            ) from error

    def pass_over(self, known: Mapping[str, str]) -> None:
        """From now on reading a file raises UnchangedFile where its stamp is the one that is known of its path."""
        self._known = known

    def is_passed_over(self, path: str) -> bool:
        """Tell whether a file is one to pass over, and as it was when that was said."""
        known = self._known.get(display_path(path), "")
        return bool(known) and self.stamp(path) == known

    def __enter__(self) -> Folder:
        return self

    def __exit__(self, *exc: object) -> None:
        os.close(self._root)

    @contextmanager
    def _open(self, path: str, flags: int) -> Iterator[int]:
        *parents, name = path.split("/") if path else ["."]
        if ".." in (*parents, name):
            raise OSError(errno.EPERM, "the path leads out of the folder")
        opened: list[int] = []
        current = self._root
        try:
            for part in parents:
                current = os.open(part, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=current)
                opened.append(current)
            handle = os.open(name, flags | os.O_RDONLY | os.O_NOFOLLOW, dir_fd=current)
            opened.append(handle)
            yield handle
        finally:
            for handle in reversed(opened):
                os.close(handle)

    def names(self, path: str = "") -> list[str]:
        """Return the sorted names directly inside a sub-folder; empty when it isn't there."""
        try:
            with self._open(path, os.O_DIRECTORY) as handle:
                return sorted(os.listdir(handle))
        except OSError:
            return []

    def files(self, path: str = "", *, depth: int = MAX_DEPTH) -> Iterator[str | Refused]:
        """Yield the regular files below a sub-folder, sorted, and a Refused for each link or special file."""
        budget = MAX_FILES
        for found in self._walk(path, depth):
            budget -= 1
            if budget < 0:
                yield Refused(path or ".", f"holds more than {MAX_FILES} files; the rest is not read")
                return
            yield found

    def _walk(self, path: str, depth: int) -> Iterator[str | Refused]:
        for name in self.names(path):
            child = f"{path}/{name}" if path else name
            mode = self._mode(child)
            if mode is None:
                continue
            if stat.S_ISDIR(mode):
                if depth > 0:
                    yield from self._walk(child, depth - 1)
                else:
                    yield Refused(child, "folder nested too deeply")
            elif stat.S_ISREG(mode):
                yield child
            else:
                yield Refused(child, _special(mode))

    def _mode(self, path: str) -> int | None:
        seen = self._look(path)
        return seen.st_mode if seen else None

    def _look(self, path: str) -> os.stat_result | None:
        parent, _, name = path.rpartition("/")
        try:
            with self._open(parent, os.O_DIRECTORY) as handle:
                return os.stat(name, dir_fd=handle, follow_symlinks=False)
        except OSError:
            return None

    def is_file(self, path: str) -> bool:
        mode = self._mode(path)
        return mode is not None and stat.S_ISREG(mode)

    def is_folder(self, path: str) -> bool:
        mode = self._mode(path)
        return mode is not None and stat.S_ISDIR(mode)

    def stamp(self, path: str) -> str:
        """Return what a look at a file tells without reading it: equal stamps mean that nobody wrote to it.

        Made of inode, size, and the times of its content and of its inode. "" for whatever is no regular file.
        """
        seen = self._look(path)
        return stamp_of(seen) if seen and stat.S_ISREG(seen.st_mode) else ""

    @contextmanager
    def handle(self, path: str) -> Iterator[int]:
        """Hold a sub-folder open by handle, reached part by part through no link. Raises OSError."""
        with self._open(path, os.O_DIRECTORY) as handle:
            yield handle

    def exists(self, path: str) -> bool:
        """Tell whether anything stands at the path, a link or a special file included."""
        return self._mode(path) is not None

    def read(
        self,
        path: str,
        parse: Callable[[Stream], T],
        *,
        limit: int = MAX_WHOLE_FILE_BYTES,
        even_if_known: bool = False,
        at_once: bool = False,
    ) -> tuple[T, FileFacts]:
        """Parse one regular file as a stable read: inode, size and time the same before and after.

        ``parse`` gets a Stream and may run again when the file changed meanwhile. Raises UnreadableFile, or
        UnstableFile when it changed during every attempt, or UnchangedFile where it is passed over, unless
        ``even_if_known``; whatever ``parse`` raises passes through. ``at_once``: don't wait until it is quiet.
        """
        if not even_if_known and self.is_passed_over(path):
            raise UnchangedFile("is as it was")
        for _ in range(ATTEMPTS):
            try:
                with self._open(path, os.O_NONBLOCK) as handle:
                    before = os.fstat(handle)
                    if not stat.S_ISREG(before.st_mode):
                        raise UnreadableFile(_special(before.st_mode))
                    if before.st_size > limit:
                        raise UnreadableFile(f"larger than the limit of {limit // 2**20} MB")
                    if not at_once and self._wait_until_quiet(before):
                        before = os.fstat(handle)
                    stream = Stream(handle, limit)
                    result = parse(stream)
                    after = os.fstat(handle)
            except OSError as error:
                raise UnreadableFile(_why_not(error)) from error
            if _same(before, after) and self._still_there(path, after):
                return result, FileFacts(after.st_size, after.st_mtime_ns, stream.sha256(), stamp_of(after))
        raise UnstableFile("kept changing while it was read; the next import takes it")

    def read_bytes(
        self, path: str, *, limit: int = MAX_WHOLE_FILE_BYTES, even_if_known: bool = False, at_once: bool = False
    ) -> tuple[bytes, FileFacts]:
        """Return the bytes of one file as a stable read. Raises like ``read``."""
        return self.read(
            path, lambda stream: stream.read(), limit=limit, even_if_known=even_if_known, at_once=at_once
        )

    def _wait_until_quiet(self, seen: os.stat_result) -> bool:
        age = time.time() - seen.st_mtime
        if not 0 <= age < self._quiet_seconds:
            return False
        time.sleep(self._quiet_seconds - age)
        return True

    def _still_there(self, path: str, seen: os.stat_result) -> bool:
        with suppress(OSError), self._open(path, os.O_NONBLOCK) as handle:
            return os.fstat(handle).st_ino == seen.st_ino
        return False


def stamp_of(seen: os.stat_result) -> str:
    """Return the stamp of a file that was looked at; see ``Folder.stamp``."""
    return f"{seen.st_ino}-{seen.st_size}-{seen.st_mtime_ns}-{seen.st_ctime_ns}"


def _same(before: os.stat_result, after: os.stat_result) -> bool:
    def facts(seen: os.stat_result) -> tuple[int, int, int]:
        return seen.st_ino, seen.st_size, seen.st_mtime_ns

    return facts(before) == facts(after)


def _special(mode: int) -> str:
    if stat.S_ISLNK(mode):
        return "is a link; links are not followed"
    if stat.S_ISFIFO(mode):
        return "is a pipe, not a file"
    if stat.S_ISSOCK(mode):
        return "is a socket, not a file"
    if stat.S_ISDIR(mode):
        return "is a folder where a file should be"
    return "is a device, not a file"


def _why_not(error: OSError) -> str:
    if error.errno == errno.ELOOP:
        return "is a link; links are not followed"
    if error.errno in (errno.ENXIO, errno.EAGAIN):
        return "is a pipe or socket, not a file"
    return f"can't be read: {error.strerror}"
