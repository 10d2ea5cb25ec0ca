"""Extract untrusted archives within limits on size and number, without leaving the folder."""

from __future__ import annotations

import gzip
import shutil
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path, PurePosixPath
from typing import IO, cast

from memoryhub.lib.errors import Invalid
from memoryhub.lib.files.limited_tar import LimitedTar

MAX_ENTRIES = 20_000
MAX_ENTRY_BYTES = 64 * 2**20
MAX_TOTAL_BYTES = 100 * 2**20
MAX_RATIO = 200
RATIO_FROM_BYTES = 2**20
CHUNK_BYTES = 2**16
MAX_HEADER_BYTES = MAX_ENTRIES * 3 * 2**9  # of a .tar.gz: an entry has up to three blocks, unless its name is long


Opener = Callable[[], IO[bytes]]


class BadArchive(Invalid):
    """The archive is refused. The message names the entry and the reason."""

    code = "bad_archive"


@dataclass(frozen=True)
class Member:
    """An entry of the archive's directory. Sizes are in bytes; ``packed`` is 0 if unknown."""

    name: str
    size: int
    packed: int
    kind: str  # file, folder or other


def extract_archive(source: Path, dest: Path) -> None:
    """Extract a .zip or .tar.gz into ``dest``, a folder that doesn't exist yet.

    The directory is checked first; then the extracted bytes are counted. Names that lead outside, links and devices
    are refused, and so are more than 20,000 entries, 64 MB for one entry, 100 MB in total, or 200 times the packed
    size. Raises BadArchive, after removing ``dest``.
    """
    try:
        extract = _extract_zip if source.name.lower().endswith(".zip") else _extract_tar
        extract(source, dest)
    except _ARCHIVE_ERRORS as error:
        shutil.rmtree(dest, ignore_errors=True)
        raise BadArchive(f"{source.name} can't be extracted: {error}") from error
    except BadArchive:
        shutil.rmtree(dest, ignore_errors=True)
        raise


_ARCHIVE_ERRORS = (
    zipfile.BadZipFile, tarfile.TarError, zlib.error, EOFError, OSError, RuntimeError, NotImplementedError,
    ValueError, IndexError,  # of zipfile: names that aren't UTF-8, and empty ones
)  # fmt: skip


def _extract_zip(source: Path, dest: Path) -> None:
    with zipfile.ZipFile(source) as archive:
        members = [_zip_member(info) for info in archive.infolist()]
        _check_directory(members)
        _extract(((member, partial(archive.open, member.name)) for member in members), dest)


def _zip_member(info: zipfile.ZipInfo) -> Member:
    mode = info.external_attr >> 16
    special = mode and (mode & 0o170000) not in (0, 0o100000, 0o040000)
    kind = "other" if special else "folder" if info.is_dir() else "file"
    return Member(info.filename, info.file_size, info.compress_size, kind)


def _extract_tar(source: Path, dest: Path) -> None:
    with _open_tar(source) as archive:
        _check_directory([member for member, _ in _tar_members(archive)])
    with _open_tar(source) as archive:  # a tar has no directory, so it is read twice
        _extract(_tar_members(archive), dest)


@contextmanager
def _open_tar(source: Path) -> Iterator[LimitedTar]:
    with gzip.open(source) as unpacked:
        yield LimitedTar(
            cast("IO[bytes]", unpacked),
            max_bytes=MAX_TOTAL_BYTES + MAX_HEADER_BYTES,
            max_header_bytes=MAX_HEADER_BYTES,
        )


def _tar_members(archive: LimitedTar) -> Iterator[tuple[Member, Opener]]:
    """Yield the members, up to the first one over a limit."""
    total = count = 0
    while total <= MAX_TOTAL_BYTES and count <= MAX_ENTRIES and (info := archive.next()):
        kind = "file" if info.isreg() else "folder" if info.isdir() else "other"
        member = Member(info.name, info.size, 0, kind)
        yield member, partial(archive.open, info)
        total, count = total + info.size, count + 1
        if _size_fault(member):
            return


def _check_directory(members: list[Member]) -> None:
    """Check the directory. Raises BadArchive with the first five faults."""
    faults = [f"{member.name[:200]!r} {fault}" for member in members if (fault := _name_fault(member))]
    names = [member.name.rstrip("/") for member in members]
    if len(set(names)) < len(names):
        faults.append("a name occurs twice")
    if len(members) > MAX_ENTRIES:
        faults.append(f"it has more than {MAX_ENTRIES:,} entries")
    faults += [f"{member.name[:200]!r} {fault}" for member in members if (fault := _size_fault(member))]
    if sum(member.size for member in members) > MAX_TOTAL_BYTES:
        faults.append(f"its contents are larger than {MAX_TOTAL_BYTES // 2**20} MB")
    if faults:
        raise BadArchive(f"The archive is refused: {'; '.join(faults[:5])}.")


def _name_fault(member: Member) -> str:
    path = PurePosixPath(member.name)
    if path.is_absolute() or ".." in path.parts or "\\" in member.name or "\x00" in member.name or not path.parts:
        return "leads outside the folder"
    return "is a link or a device" if member.kind == "other" else ""


def _size_fault(member: Member) -> str:
    if member.size > MAX_ENTRY_BYTES:
        return f"is larger than {MAX_ENTRY_BYTES // 2**20} MB"
    if member.packed and member.size > RATIO_FROM_BYTES and member.size > MAX_RATIO * member.packed:
        return f"expands more than {MAX_RATIO} times"
    return ""


def _extract(members: Iterable[tuple[Member, Opener]], dest: Path) -> None:
    dest.mkdir(parents=True)
    total = 0
    for member, open_member in members:
        target = dest / member.name
        if member.kind == "folder":
            target.mkdir(parents=True, exist_ok=True)
            continue
        target.parent.mkdir(parents=True, exist_ok=True)
        with open_member() as packed, target.open("xb") as out:
            written = 0
            while chunk := packed.read(CHUNK_BYTES):
                written += len(chunk)
                total += len(chunk)
                if written > min(member.size, MAX_ENTRY_BYTES) or total > MAX_TOTAL_BYTES:
                    raise BadArchive(
                        f"The archive is refused: {member.name[:200]!r} is larger than its directory says."
                    )
                out.write(chunk)
