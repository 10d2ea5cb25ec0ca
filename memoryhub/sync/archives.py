"""Unpacking an archive that nobody vouches for: counted limits, no way out of the folder."""

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
    """An archive that is refused as a whole; the message names the entry and the reason."""

    code = "bad_archive"


@dataclass(frozen=True)
class Member:
    """One entry as the archive's directory tells of it; sizes in bytes, packed 0 where that is unknown."""

    name: str
    size: int
    packed: int
    kind: str  # file, folder or other


def extract_archive(source: Path, dest: Path) -> None:
    """Unpack a .zip or .tar.gz into ``dest``, a folder that isn't there yet.

    The directory is judged first, then the bytes are counted as they come: names must stay inside, links and devices
    are refused, as are more than 20,000 entries, 64 MB for one, 100 MB in all, or 200 times their packed size.
    Raises BadArchive, with nothing left in ``dest``.
    """
    try:
        with _opened(source) as archive:
            members = list(_members(archive))
            _judge(members)
            dest.mkdir(parents=True)
            _unpack(archive, members, dest)
    except (zipfile.BadZipFile, tarfile.TarError, EOFError, OSError, RuntimeError, NotImplementedError) as error:
        shutil.rmtree(dest, ignore_errors=True)
        raise BadArchive(f"{source.name} can't be unpacked: {error}") from error
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


def _judge(members: list[Member]) -> None:
    """Refuse by what the directory says, naming every fault of the names and the first of the sizes."""
    faults = [f"{member.name[:200]!r} {fault}" for member in members if (fault := _name_fault(member))]
    names = [member.name.rstrip("/") for member in members]
    if len(set(names)) < len(names):
        faults.append("a name occurs twice")
    if len(members) > MAX_ENTRIES:
        faults.append(f"it holds more than {MAX_ENTRIES:,} entries")
    faults += [f"{member.name[:200]!r} {fault}" for member in members if (fault := _size_fault(member))]
    if sum(member.size for member in members) > MAX_TOTAL_BYTES:
        faults.append(f"it unpacks to more than {MAX_TOTAL_BYTES // 2**20} MB")
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


def _unpack(archive: zipfile.ZipFile | tarfile.TarFile, members: list[Member], dest: Path) -> None:
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
                    raise BadArchive(f"The archive is refused: {member.name[:200]!r} is larger than it says.")
                out.write(chunk)


def _stream(archive: zipfile.ZipFile | tarfile.TarFile, member: Member) -> IO[bytes]:
    if isinstance(archive, zipfile.ZipFile):
        return archive.open(member.name)
    stream = archive.extractfile(member.name)
    if stream is None:
        raise BadArchive(f"The archive is refused: {member.name[:200]!r} holds no file.")
    return stream
