"""One backup in one file: a tar.gz whose first member is the manifest, or the same sealed with a passphrase.

The manifest holds size and SHA-256 of every other member, and rows and SHA-256 of every table. Nothing of a file is
used before all of it was read and found to be so.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import tarfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, Any

from django.utils.translation import gettext

from memoryhub.backups.encryption import MAGIC, SealingWriter, Unsealable, UnsealingReader, read_head
from memoryhub.lib.errors import Invalid

FORMAT = 1
MANIFEST = "manifest.json"
SECRET_KEY = "secret_key"  # noqa: S105  the member's name
DATABASES = {"sqlite": "database.sqlite3", "postgresql": "database.pgdump"}
MAX_MANIFEST = 4 * 2**20
PIECE = 2**20
SUMMARY = ("hub", "vendor", "taken_at", "rows")  # what lists show, also of a sealed backup
COMPRESSION = 1  # four times as quick as gzip's own choice, for a file a tenth larger


class BadBackup(Invalid):
    """A file that fails its check; nothing of it is used."""

    code = "bad_backup"


@dataclass(frozen=True)
class Content:
    """What a table or a member holds: rows or bytes, and the SHA-256 of them."""

    size: int
    sha256: str


@dataclass(frozen=True)
class Manifest:
    """What a backup is: all times are UTC, ISO 8601, to the second.

    ``taken_at`` is the moment whose state it holds, ``ended_at`` when it was copied. ``database``: which, in words.
    ``secret_key``: "inside", "left out" or "set outside"; ``key_check`` tells whether another key is the same.
    ``digest``: of the tables, see ``digest_of``.
    """

    format: int
    hub: str
    vendor: str
    database: str
    taken_at: str
    ended_at: str
    migrations: list[str]
    tables: dict[str, Content]
    digest: str
    secret_key: str
    key_check: str
    members: dict[str, Content]

    @property
    def rows(self) -> int:
        return sum(table.size for table in self.tables.values())


def digest_of(tables: Mapping[str, Content]) -> str:
    """Return one SHA-256 for what all tables hold: of ``name rows sha256`` line by line, by name."""
    lines = "".join(f"{name} {tables[name].size} {tables[name].sha256}\n" for name in sorted(tables))
    return hashlib.sha256(lines.encode()).hexdigest()


def content_of(file: Path) -> Content:
    """Return the size and hash of a file."""
    with file.open("rb") as source:
        return Content(file.stat().st_size, hashlib.file_digest(source, "sha256").hexdigest())


def write_backup_file(out: IO[bytes], manifest: Manifest, files: Mapping[str, Path], passphrase: str) -> None:
    """Write manifest and members; sealed where there is a passphrase. ``out`` stays open."""
    with ExitStack() as stack:
        sink: Any = out
        if passphrase:
            head = {name: getattr(manifest, name) for name in SUMMARY}
            sink = stack.enter_context(SealingWriter(out, passphrase, head))
        packed = stack.enter_context(gzip.GzipFile("", "wb", COMPRESSION, sink, mtime=0))
        archive = stack.enter_context(tarfile.open(fileobj=packed, mode="w|"))
        text = json.dumps(asdict(manifest), indent=1).encode()
        archive.addfile(_entry(MANIFEST, len(text)), io.BytesIO(text))
        for name, file in files.items():
            with file.open("rb") as source:
                archive.addfile(_entry(name, manifest.members[name].size), source)


def _entry(name: str, size: int) -> tarfile.TarInfo:
    entry = tarfile.TarInfo(name)
    entry.size, entry.mode = size, 0o600
    return entry


def summary_of(file: Path) -> dict[str, Any]:
    """Return ``hub``, ``vendor``, ``taken_at``, ``rows`` and ``is_sealed`` of a backup, for lists: quick, unchecked.

    Raises BadBackup.
    """
    with _explained(), file.open("rb") as source:
        if _is_sealed(source):
            head, _ = read_head(source)
            return {name: head.get(name) for name in SUMMARY} | {"is_sealed": True}
        with gzip.GzipFile(fileobj=source, mode="rb") as packed, tarfile.open(fileobj=packed, mode="r|") as archive:
            manifest = _read_manifest(archive, archive.next())
    return {name: getattr(manifest, name) for name in SUMMARY} | {"is_sealed": False}


def _is_sealed(source: io.BufferedReader) -> bool:
    return source.peek(len(MAGIC)).startswith(MAGIC)


def unpack_backup(file: Path, passphrase: str, folder: Path) -> Manifest:
    """Take a backup's members into a folder, every byte of the file checked.

    Raises BadBackup, Invalid, OSError.
    """
    with ExitStack() as stack:
        stack.enter_context(_explained())
        source = stack.enter_context(file.open("rb"))
        if _is_sealed(source):
            if not passphrase:
                raise Invalid(
                    "It is encrypted: set MEMORYHUB_BACKUP_KEY to the key that it was made with.",
                    code="backup_key_missing",
                )
            source = io.BufferedReader(UnsealingReader(source, passphrase), PIECE)
        with _archive(source) as archive:
            manifest = _read_manifest(archive, archive.next())
            for name, content in manifest.members.items():
                _take(archive, name, content, folder / name)
            if archive.next() is not None:
                raise BadBackup("It holds more than its manifest says.")
    return manifest


@contextmanager
def _archive(source: IO[bytes]) -> Iterator[tarfile.TarFile]:
    """Read a tar.gz as a stream; where all was well, to the very end, so that the sum over all of it is compared."""
    with gzip.GzipFile(fileobj=source, mode="rb") as packed:
        with tarfile.open(fileobj=packed, mode="r|") as archive:
            yield archive
        while packed.read(PIECE):
            pass


@contextmanager
def _explained() -> Iterator[None]:
    try:
        yield
    except Unsealable as error:
        raise BadBackup(error.message) from error
    except (tarfile.TarError, zlib.error, EOFError, gzip.BadGzipFile) as error:
        raise BadBackup(gettext("It is no backup of MemoryHub, or it is damaged or cut off.")) from error


def _read_manifest(archive: tarfile.TarFile, entry: tarfile.TarInfo | None) -> Manifest:
    if entry is None or entry.name != MANIFEST or not entry.isreg() or entry.size > MAX_MANIFEST:
        raise BadBackup(gettext("It is no backup of MemoryHub: its first part is no manifest."))
    source = archive.extractfile(entry)
    try:
        values = json.loads(source.read() if source else b"")
        if values["format"] != FORMAT:
            words = gettext("It has format %(format)s, which this MemoryHub doesn't know: use a newer one.")
            raise BadBackup(words % {"format": values["format"]})
        contents = {
            part: {name: Content(**content) for name, content in values[part].items()}
            for part in ("tables", "members")
        }
        manifest = Manifest(**(values | contents))
        if not all(type(one.size) is int for part in contents.values() for one in part.values()):
            raise ValueError
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise BadBackup(gettext("Its manifest is damaged.")) from None
    if not {DATABASES.get(manifest.vendor)} <= set(manifest.members) <= {*DATABASES.values(), SECRET_KEY}:
        raise BadBackup(gettext("Its manifest names no database, or parts that MemoryHub doesn't know."))
    if digest_of(manifest.tables) != manifest.digest:
        raise BadBackup(gettext("Its manifest is damaged: the tables don't agree with their digest."))
    return manifest


def _take(archive: tarfile.TarFile, name: str, content: Content, target: Path) -> None:
    entry = archive.next()
    if entry is None or entry.name != name or not entry.isreg() or entry.size != content.size:
        raise BadBackup(f"It is damaged: {name} is not what its manifest says.")
    source = archive.extractfile(entry)
    digest = hashlib.sha256()
    with target.open("xb") as out:
        while source and (piece := source.read(PIECE)):
            digest.update(piece)
            out.write(piece)
    if digest.hexdigest() != content.sha256:
        raise BadBackup(f"It is damaged: {name} has another SHA-256 than its manifest says.")
