"""Read files in an agent's folder safely: no symlinks, size limits, no partial writes.

Each path component is opened relative to a directory handle with O_NOFOLLOW, so that replacing a folder with a
symlink between the check and the read has no effect. Only regular files are read.
"""

from __future__ import annotations

import codecs
import errno
import hashlib
import os
import stat
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeVar

from memoryhub.lib.errors import Invalid, NotFound
from memoryhub.lib.validation import UTF_16

T = TypeVar("T")

MAX_DEPTH = 6
MAX_FILES = 50_000
MAX_LINE_BYTES = 8 * 2**20
MAX_LINES_FILE_BYTES = 256 * 2**20
MAX_WHOLE_FILE_BYTES = 32 * 2**20
CHUNK_BYTES = 2**20
ATTEMPTS = 3


class FolderMissing(NotFound):
    code = "folder_missing"


class UnreadableFile(Invalid):
    """A file that wasn't read. The message gives the reason, for the import report."""

    code = "unreadable_file"


class UnchangedFile(UnreadableFile):
    """A file that hasn't changed since an earlier read; see ``Folder.skip_unchanged``."""

    code = "unchanged_file"


@dataclass(frozen=True)
class FileInfo:
    """Size in bytes, modification time in nanoseconds, SHA-256 and stamp (see ``Folder.stamp``) of a file."""

    size: int
    mtime_ns: int
    sha256: str
    stamp: str = ""

    @property
    def modified_at(self) -> datetime:
        return datetime.fromtimestamp(self.mtime_ns / 1e9, UTC)


@dataclass(frozen=True)
class SkippedPath:
    """A directory entry that is neither followed nor read."""

    path: str
    reason: str


class Stream:
    """An open file, hashed while it is read. ``is_cut``: after ``lines``, whether the last line lacks its newline."""

    is_cut = False

    def __init__(self, handle: int, limit: int) -> None:
        self._handle = handle
        self._limit = limit
        self._size = 0
        self._hash = hashlib.sha256()

    def _chunk(self) -> bytes:
        data = os.read(self._handle, CHUNK_BYTES)
        self._size += len(data)
        if self._size > self._limit:
            raise UnreadableFile(f"larger than the limit of {self._limit // 2**20} MB")
        self._hash.update(data)
        return data

    def chunks(self) -> Iterator[bytes]:
        while data := self._chunk():
            yield data

    def _utf8_chunks(self) -> Iterator[bytes]:
        decoder = None
        for number, data in enumerate(self.chunks()):
            if number == 0 and data.startswith(UTF_16):
                decoder = codecs.getincrementaldecoder("utf-16")("replace")
            yield decoder.decode(data).encode("utf-8", "replace") if decoder else data

    def read(self) -> bytes:
        """Return the whole file."""
        return b"".join(self.chunks())

    def head(self) -> bytes:
        """Return the first megabyte of the file, or all of a smaller one, with UTF-16 as UTF-8 like ``lines``."""
        return next(self._utf8_chunks(), b"")

    def lines(self, limit: int = MAX_LINE_BYTES) -> Iterator[tuple[int, bytes | None]]:
        """Yield ``(number from 1, line without its newline)``, with None for a line over ``limit`` bytes.

        Only ``\\n`` ends a line: other separators can occur inside a record. A line over the limit is never held in
        memory. The lines of a UTF-16 file with a byte order mark are yielded as UTF-8.
        """
        number, pending, oversize = 1, bytearray(), False
        for data in self._utf8_chunks():
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
        self.is_cut = bool(pending) or oversize
        if self.is_cut:
            yield number, None if oversize else bytes(pending)

    def sha256(self) -> str:
        return self._hash.hexdigest()


def display_path(path: str) -> str:
    """Return a file name as storable text, with bytes that are not UTF-8 as ``\\xNN``."""
    return os.fsencode(path).decode("utf-8", errors="backslashreplace").replace("\x00", "\\x00")


class Folder:
    """An agent's folder, kept open by handle. Use it as a context manager.

    ``quiet_seconds``: before reading a file that changed more recently than this, wait: it may still be being
    written. Raises FolderMissing if the folder can't be opened.
    """

    def __init__(self, path: Path, *, quiet_seconds: float = 0.0) -> None:
        self.path = path
        self._quiet_seconds = quiet_seconds
        self._known_stamps: Mapping[str, str] = {}
        try:
            self._root = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
        except OSError as error:
            raise FolderMissing(
                f"The folder {display_path(str(path))} can't be opened: {error.strerror}.", path=str(path)
            ) from error

    def skip_unchanged(self, stamps: Mapping[str, str]) -> None:
        """Make ``read`` raise UnchangedFile for files whose stamp equals the one given for their path."""
        self._known_stamps = stamps

    def is_unchanged(self, path: str, stamp: str = "") -> bool:
        """Return whether ``stamp``, or else the file's own, equals the one given to ``skip_unchanged``."""
        known = self._known_stamps.get(display_path(path), "")
        return bool(known) and (stamp or self.stamp(path)) == known

    def known_paths(self, prefix: str) -> list[str]:
        """Return the paths given to ``skip_unchanged`` that begin with ``prefix``."""
        return sorted(path for path in self._known_stamps if path.startswith(display_path(prefix)))

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
        """Return the sorted names directly inside a subfolder; an empty list if it doesn't exist."""
        try:
            with self._open(path, os.O_DIRECTORY) as handle:
                return sorted(os.listdir(handle))
        except OSError:
            return []

    def files(self, path: str = "", *, depth: int = MAX_DEPTH) -> Iterator[str | SkippedPath]:
        """Yield the regular files below a subfolder, sorted, and a SkippedPath for each symlink or special file."""
        for count, item in enumerate(self._walk(path, depth)):
            if count == MAX_FILES:
                yield SkippedPath(path or ".", f"contains more than {MAX_FILES} files; the rest are not read")
                return
            yield item

    def _walk(self, path: str, depth: int) -> Iterator[str | SkippedPath]:
        for name in self.names(path):
            child = f"{path}/{name}" if path else name
            mode = self._mode(child)
            if mode is None:
                continue
            if stat.S_ISDIR(mode):
                if depth > 0:
                    yield from self._walk(child, depth - 1)
                else:
                    yield SkippedPath(child, "folder nested too deeply")
            elif stat.S_ISREG(mode):
                yield child
            else:
                yield SkippedPath(child, _special_file_message(mode))

    def stamps(self, path: str = "", *, is_tree: bool = True, depth: int = MAX_DEPTH) -> Iterator[tuple[str, str]]:
        """Yield the regular files in a subfolder with their stamps, in any order; also below it if ``is_tree``."""
        try:
            with self._open(path, os.O_DIRECTORY) as handle, os.scandir(handle) as entries:
                found = [(entry.name, entry.stat(follow_symlinks=False)) for entry in entries]
        except OSError:
            return
        for name, info in found:
            child = f"{path}/{name}" if path else name
            if stat.S_ISREG(info.st_mode):
                yield child, stamp_of(info)
            elif is_tree and depth > 0 and stat.S_ISDIR(info.st_mode):
                yield from self.stamps(child, depth=depth - 1)

    def _mode(self, path: str) -> int | None:
        info = self._lstat(path)
        return info.st_mode if info else None

    def _lstat(self, path: str) -> os.stat_result | None:
        parent, _, name = path.rpartition("/")
        try:
            with self._open(parent, os.O_DIRECTORY) as handle:
                return os.stat(name, dir_fd=handle, follow_symlinks=False)
        except OSError:
            return None

    def skip_reason(self, path: str) -> str:
        """Return why a path that isn't a regular file isn't read."""
        return _special_file_message(self._mode(path) or 0)

    def is_file(self, path: str) -> bool:
        mode = self._mode(path)
        return mode is not None and stat.S_ISREG(mode)

    def is_folder(self, path: str) -> bool:
        mode = self._mode(path)
        return mode is not None and stat.S_ISDIR(mode)

    def stamp(self, path: str) -> str:
        """Return a file's inode, size, mtime and ctime as text, "" for anything but a regular file.

        Equal stamps mean that the file wasn't written to in between.
        """
        info = self._lstat(path)
        return stamp_of(info) if info and stat.S_ISREG(info.st_mode) else ""

    def modified_ns(self, path: str) -> int:
        """Return a file's modification time in nanoseconds, 0 if it doesn't exist."""
        info = self._lstat(path)
        return info.st_mtime_ns if info else 0

    def size(self, path: str) -> int:
        """Return a file's size in bytes, 0 if it doesn't exist."""
        info = self._lstat(path)
        return info.st_size if info else 0

    def latest_change(self, paths: Iterable[str]) -> datetime | None:
        """Return when one of the files was last modified; None if none of them exists."""
        newest = max(map(self.modified_ns, paths), default=0)
        return datetime.fromtimestamp(newest / 1e9, UTC) if newest else None

    @contextmanager
    def handle(self, path: str) -> Iterator[int]:
        """Open a subfolder without following symlinks and yield its handle. Raises OSError."""
        with self._open(path, os.O_DIRECTORY) as handle:
            yield handle

    def exists(self, path: str) -> bool:
        """Return whether the path exists, also as a symlink or special file."""
        return self._mode(path) is not None

    def read(
        self,
        path: str,
        parse: Callable[[Stream], T],
        *,
        limit: int = MAX_WHOLE_FILE_BYTES,
        even_if_unchanged: bool = False,
        no_wait: bool = False,
    ) -> tuple[T, FileInfo]:
        """Parse a regular file, and check that its inode, size and mtime stay the same meanwhile.

        ``parse`` gets a Stream, and runs again if the file changed. ``even_if_unchanged``: also read a file that
        ``skip_unchanged`` covers. ``no_wait``: don't wait for ``quiet_seconds``. Raises UnreadableFile;
        UnreadableFile if the file changed during every attempt; UnchangedFile; whatever ``parse`` raises.
        """
        if not even_if_unchanged and self.is_unchanged(path):
            raise UnchangedFile("unchanged since the last read")
        for _ in range(ATTEMPTS):
            try:
                with self._open(path, os.O_NONBLOCK) as handle:
                    before = os.fstat(handle)
                    if not stat.S_ISREG(before.st_mode):
                        raise UnreadableFile(_special_file_message(before.st_mode))
                    if before.st_size > limit:
                        raise UnreadableFile(f"larger than the limit of {limit // 2**20} MB")
                    if not no_wait and self._wait_until_quiet(before):
                        before = os.fstat(handle)
                    stream = Stream(handle, limit)
                    result = parse(stream)
                    after = os.fstat(handle)
            except OSError as error:
                raise UnreadableFile(_os_error_message(error)) from error
            if _is_same_content(before, after) and self._is_same_file(path, after):
                return result, FileInfo(after.st_size, after.st_mtime_ns, stream.sha256(), stamp_of(after))
        raise UnreadableFile("kept changing while it was read; the next import will try again", code="unstable_file")

    def read_bytes(
        self, path: str, *, limit: int = MAX_WHOLE_FILE_BYTES, even_if_unchanged: bool = False, no_wait: bool = False
    ) -> tuple[bytes, FileInfo]:
        """Return the bytes of a file. Options and errors are those of ``read``."""
        return self.read(
            path, lambda stream: stream.read(), limit=limit, even_if_unchanged=even_if_unchanged, no_wait=no_wait
        )

    def _wait_until_quiet(self, info: os.stat_result) -> bool:
        age = time.time() - info.st_mtime
        if not 0 <= age < self._quiet_seconds:
            return False
        time.sleep(self._quiet_seconds - age)
        return True

    def _is_same_file(self, path: str, info: os.stat_result) -> bool:
        with suppress(OSError), self._open(path, os.O_NONBLOCK) as handle:
            return os.fstat(handle).st_ino == info.st_ino
        return False


def join_path(folder: str, name: str) -> str:
    """Return the path of a name in a folder; "" is the outermost folder."""
    return f"{folder}/{name}" if folder else name


def stamp_of(info: os.stat_result) -> str:
    """Return the stamp of a file from its stat result; see ``Folder.stamp``."""
    return f"{info.st_ino}-{info.st_size}-{info.st_mtime_ns}-{info.st_ctime_ns}"


def _is_same_content(before: os.stat_result, after: os.stat_result) -> bool:
    def key(info: os.stat_result) -> tuple[int, int, int]:
        return info.st_ino, info.st_size, info.st_mtime_ns

    return key(before) == key(after)


def _special_file_message(mode: int) -> str:
    if stat.S_ISLNK(mode):
        return "is a link; links are not followed"
    if stat.S_ISFIFO(mode):
        return "is a pipe, not a file"
    if stat.S_ISSOCK(mode):
        return "is a socket, not a file"
    if stat.S_ISDIR(mode):
        return "is a folder where a file should be"
    return "is a device, not a file"


def _os_error_message(error: OSError) -> str:
    if error.errno == errno.ELOOP:
        return "is a link; links are not followed"
    if error.errno in (errno.ENXIO, errno.EAGAIN):
        return "is a pipe or socket, not a file"
    return f"can't be read: {error.strerror}"
