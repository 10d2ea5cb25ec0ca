"""Extract untrusted archives within limits on size and number, without leaving the folder."""

from __future__ import annotations

import shutil
import tarfile
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO

from memoryhub.lib.errors import Invalid

MAX_ENTRIES = 20_000
MAX_ENTRY_BYTES = 64 * 2**20
MAX_TOTAL_BYTES = 100 * 2**20
MAX_RATIO = 200
RATIO_FROM_BYTES = 2**20
CHUNK_BYTES = 2**16


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
        with _opened(source) as archive:
            members = list(_members(archive))
            _check_directory(members)
            dest.mkdir(parents=True)
            _extract(archive, members, dest)
    except (zipfile.BadZipFile, tarfile.TarError, EOFError, OSError, RuntimeError, NotImplementedError) as error:
        shutil.rmtree(dest, ignore_errors=True)
        raise BadArchive(f"{source.name} can't be extracted: {error}") from error
    except BadArchive:
        shutil.rmtree(dest, ignore_errors=True)
        raise


@contextmanager
def _opened(source: Path) -> Iterator[zipfile.ZipFile | tarfile.TarFile]:
    if source.name.lower().endswith(".zip"):
        with zipfile.ZipFile(source) as packed:
            yield packed
    else:
        with tarfile.open(source, "r:gz") as unpacked:
            yield unpacked


def _members(archive: zipfile.ZipFile | tarfile.TarFile) -> Iterator[Member]:
    if isinstance(archive, zipfile.ZipFile):
        for info in archive.infolist():
            mode = info.external_attr >> 16
            special = mode and (mode & 0o170000) not in (0, 0o100000, 0o040000)
            kind = "other" if special else "folder" if info.is_dir() else "file"
            yield Member(info.filename, info.file_size, info.compress_size, kind)
        return
    for count, item in enumerate(archive):
        if count > MAX_ENTRIES:
            return
        kind = "file" if item.isreg() else "folder" if item.isdir() else "other"
        yield Member(item.name, item.size, 0, kind)


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


def _extract(archive: zipfile.ZipFile | tarfile.TarFile, members: list[Member], dest: Path) -> None:
    total = 0
    for member in members:
        target = dest / member.name
        if member.kind == "folder":
            target.mkdir(parents=True, exist_ok=True)
            continue
        target.parent.mkdir(parents=True, exist_ok=True)
        with _stream(archive, member) as packed, target.open("xb") as out:
            written = 0
            while chunk := packed.read(CHUNK_BYTES):
                written += len(chunk)
                total += len(chunk)
                if written > min(member.size, MAX_ENTRY_BYTES) or total > MAX_TOTAL_BYTES:
                    raise BadArchive(
                        f"The archive is refused: {member.name[:200]!r} is larger than its directory says."
                    )
                out.write(chunk)


def _stream(archive: zipfile.ZipFile | tarfile.TarFile, member: Member) -> IO[bytes]:
    if isinstance(archive, zipfile.ZipFile):
        return archive.open(member.name)
    stream = archive.extractfile(member.name)
    if stream is None:
        raise BadArchive(f"The archive is refused: {member.name[:200]!r} is not a file.")
    return stream
