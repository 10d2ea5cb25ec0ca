"""Replace a file in an agent's folder without losing a byte, even if another process writes at the same moment.

The new text is written to a private name in the same folder and flushed to disk. Then the two files swap names in one
step (Linux: renameat2 with RENAME_EXCHANGE), so that the old file, or whatever an agent put there a microsecond ago,
survives under the private name. On file systems without such a call, the current file gets the private name as a
second link (or is copied), and the new file is renamed over it. In both cases an agent that has the old file open
writes to the copy. ``import_quiet_copies`` passes the bytes of quiet copies on and removes them, including copies
that a killed process left behind.
"""

from __future__ import annotations

import ctypes
import errno
import hashlib
import os
import secrets
import stat
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Literal

from memoryhub.lib.files.safe_folder import MAX_WHOLE_FILE_BYTES, FileInfo, Folder, UnreadableFile, stamp_of

NEW, OLD = "new", "old"  # a text to be written, with nothing of the agent's; the file that it replaced
EXCHANGE, NO_REPLACE = 2, 1  # flags of renameat2, see its manual page
SPECIAL_BITS = stat.S_ISUID | stat.S_ISGID | stat.S_ISVTX
UNSUPPORTED = (errno.ENOSYS, errno.EINVAL, errno.ENOTSUP, errno.EPERM)


@dataclass(frozen=True)
class Replaced:
    """The result: ``written``; ``changed``, the file wasn't the expected one and was left alone; or ``refused``.

    ``why``: the reason of a refusal. ``info``: the written file's.
    """

    verdict: Literal["written", "changed", "refused"]
    why: str = ""
    info: FileInfo | None = None


class _Refused(Exception):
    pass


class _Changed(Exception):
    pass


def replace_file(folder: Folder, path: str, content: bytes, *, expected: str | None) -> Replaced:
    """Replace the file at a path below a folder if its bytes have the ``expected`` SHA-256.

    ``expected`` None: the file doesn't exist yet, but its folder does. The mode is kept without executable bits,
    and the owner if permitted. Files with special bits are refused. The replaced file stays next to it until
    ``import_quiet_copies``.
    """
    parent, _, name = path.rpartition("/")
    try:
        with folder.handle(parent) as directory:
            if expected is None:
                info = _create(directory, name, content)
            else:
                info = _swap(directory, name, content, expected)
    except _Changed:
        return Replaced("changed")
    except _Refused as error:
        return Replaced("refused", str(error))
    except OSError as error:
        return Replaced("refused", f"can't be written: {error.strerror}")
    return Replaced("written", info=info)


def import_quiet_copies(
    folder: Folder, path: str, import_copy: Callable[[bytes], None], *, quiet: float, wait: bool
) -> int:
    """Remove the copies of a replaced file after passing their bytes to ``import_copy``; return how many are left.

    A copy is quiet if nobody wrote to it or moved it for ``quiet`` seconds. Without ``wait``, copies that aren't are
    left to a later call. If ``import_copy`` raises, the copy stays.
    """
    left_count = 0
    for name in private_names(folder, path):
        parent, _, _ = path.rpartition("/")
        place = f"{parent}/{name}" if parent else name
        if _kind(name) == NEW or not folder.is_file(place):
            _remove(folder, place)
        elif not _is_quiet(folder, place, quiet, wait=wait):
            left_count += 1
        else:
            left_count += not _import_copy(folder, place, import_copy)
    return left_count


def private_names(folder: Folder, path: str) -> list[str]:
    """Return the private names next to a file that replacing it uses."""
    parent, _, name = path.rpartition("/")
    return [other for other in folder.names(parent) if other.startswith(f".{name}.memoryhub-")]


def _import_copy(folder: Folder, place: str, import_copy: Callable[[bytes], None]) -> bool:
    try:
        before = folder.stamp(place)
        content, _ = folder.read_bytes(place, even_if_unchanged=True)
    except UnreadableFile:
        return False
    import_copy(content)
    if folder.stamp(place) != before:
        return False
    _remove(folder, place)
    return True


def _is_quiet(folder: Folder, place: str, quiet: float, *, wait: bool) -> bool:
    changed_ns = max((int(part) for part in folder.stamp(place).split("-")[2:]), default=0)
    age = time.time() - changed_ns / 1e9
    if not 0 <= age < quiet:
        return True
    if wait:
        time.sleep(quiet - age)
    return wait


def _remove(folder: Folder, place: str) -> None:
    parent, _, name = place.rpartition("/")
    with suppress(OSError), folder.handle(parent) as directory:
        os.unlink(name, dir_fd=directory)


def _kind(name: str) -> str:
    return name.rpartition("memoryhub-")[2].partition("-")[0]


def _private(name: str, part: str) -> str:
    return f".{name}.memoryhub-{part}-{secrets.token_hex(4)}"


def _create(directory: int, name: str, content: bytes) -> FileInfo:
    """Write a new file; one that another process creates in the meantime stays."""
    like = os.fstat(directory)
    temporary = _write(directory, name, content, mode=stat.S_IMODE(like.st_mode) & 0o666, like=like)
    try:
        if not _renamed(directory, temporary, name, NO_REPLACE):
            os.link(temporary, name, src_dir_fd=directory, dst_dir_fd=directory, follow_symlinks=False)
            os.unlink(temporary, dir_fd=directory)
    except FileExistsError as error:
        _unlink(directory, temporary)
        raise _Changed from error
    except OSError:
        _unlink(directory, temporary)
        raise
    os.fsync(directory)
    return _file_info(directory, name, content)


def _swap(directory: int, name: str, content: bytes, expected: str) -> FileInfo:
    current = _check_expected(directory, name, expected)
    temporary = _write(directory, name, content, mode=stat.S_IMODE(current.st_mode) & 0o666, like=current)
    try:
        _check_expected(directory, name, expected)  # writing takes time
        temporary = _swap_in(directory, name, temporary)
    except FileNotFoundError as error:
        raise _Changed from error
    finally:
        _unlink(directory, temporary)
    os.fsync(directory)
    return _file_info(directory, name, content)


def _swap_in(directory: int, name: str, temporary: str) -> str:
    """Put a text in a file's place and keep the old file; return a private name to be removed."""
    old = _private(name, OLD)
    os.rename(temporary, old, src_dir_fd=directory, dst_dir_fd=directory)
    try:
        exchanged = _renamed(directory, old, name, EXCHANGE)
    except OSError:
        os.rename(old, temporary, src_dir_fd=directory, dst_dir_fd=directory)
        raise
    if not exchanged:
        os.rename(old, temporary, src_dir_fd=directory, dst_dir_fd=directory)
        _copy(directory, name, old)
        os.rename(temporary, name, src_dir_fd=directory, dst_dir_fd=directory)
    elif not stat.S_ISREG(os.stat(old, dir_fd=directory, follow_symlinks=False).st_mode):
        _renamed(directory, old, name, EXCHANGE)  # somebody put a link there in the meantime: restore it
        _unlink(directory, old)
        raise _Refused("is a link or a folder; only files are written")
    return temporary


def _check_expected(directory: int, name: str, expected: str) -> os.stat_result:
    """Return the stat of the file to be replaced. Raises _Changed or _Refused unless it has the expected bytes."""
    try:
        handle = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=directory)
    except FileNotFoundError as error:
        raise _Changed from error
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENXIO):
            raise _Refused("is a link or not a file; only files are written") from error
        raise
    try:
        seen = os.fstat(handle)
        if not stat.S_ISREG(seen.st_mode):
            raise _Refused("is not a file; only files are written")
        if seen.st_mode & SPECIAL_BITS:
            mode = f"{stat.S_IMODE(seen.st_mode):04o}"
            raise _Refused(f"has mode {mode}; remove its setuid, setgid and sticky bits")
        if seen.st_size > MAX_WHOLE_FILE_BYTES or _sha256(_read_all(handle)) != expected:
            raise _Changed
    finally:
        os.close(handle)
    return seen


def _write(directory: int, name: str, content: bytes, *, mode: int, like: os.stat_result) -> str:
    """Write bytes to a new private file and flush it to disk; return its name."""
    temporary = _private(name, NEW)
    handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600, dir_fd=directory)
    try:
        view = memoryview(content)
        while view:
            view = view[os.write(handle, view) :]
        if (like.st_uid, like.st_gid) != (os.geteuid(), os.getegid()):
            with suppress(PermissionError):
                os.fchown(handle, like.st_uid, like.st_gid)
        os.fchmod(handle, mode)
        os.fsync(handle)
    except OSError:
        _unlink(directory, temporary)
        raise
    finally:
        os.close(handle)
    return temporary


def _copy(directory: int, name: str, copy: str) -> None:
    """Give a file a second name, or copy its bytes if the file system has no links."""
    try:
        os.link(name, copy, src_dir_fd=directory, dst_dir_fd=directory, follow_symlinks=False)
    except OSError as error:
        if isinstance(error, FileNotFoundError):
            raise
        handle = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=directory)
        try:
            seen = os.fstat(handle)
            written = _write(directory, name, _read_all(handle), mode=stat.S_IMODE(seen.st_mode), like=seen)
        finally:
            os.close(handle)
        os.rename(written, copy, src_dir_fd=directory, dst_dir_fd=directory)


def _renamed(directory: int, source: str, target: str, flag: int) -> bool:
    """Rename by renameat2; False if the system or file system doesn't support it. Raises OSError."""
    call = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    if call is None:
        return False
    if call(directory, os.fsencode(source), directory, os.fsencode(target), flag) == 0:
        return True
    number = ctypes.get_errno()
    if number in UNSUPPORTED:
        return False
    raise OSError(number, os.strerror(number), target)


def _file_info(directory: int, name: str, content: bytes) -> FileInfo:
    """Return what is known about a file that was written: no stamp if another process has changed it since."""
    handle = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=directory)
    try:
        seen = os.fstat(handle)  # before reading: a later change has another stamp
        is_ours = stat.S_ISREG(seen.st_mode) and seen.st_size == len(content) and _read_all(handle) == content
    finally:
        os.close(handle)
    return FileInfo(len(content), seen.st_mtime_ns, _sha256(content), stamp_of(seen) if is_ours else "")


def _unlink(directory: int, name: str) -> None:
    with suppress(OSError):
        os.unlink(name, dir_fd=directory)


def _read_all(handle: int) -> bytes:
    parts = []
    while part := os.read(handle, 2**20):
        parts.append(part)
    return b"".join(parts)


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
