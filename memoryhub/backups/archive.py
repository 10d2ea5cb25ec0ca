"""The format of backup files: a tar.gz whose first member is the manifest, optionally encrypted.

The manifest contains the size and SHA-256 of every other member, and the number of rows and SHA-256 of every table.
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
from typing import IO, Any, cast

from django.utils.crypto import salted_hmac
from django.utils.translation import gettext

from memoryhub.backups.encryption import MAGIC, CannotDecrypt, DecryptingReader, EncryptingWriter, read_header
from memoryhub.lib.errors import Invalid
from memoryhub.lib.files.limited_tar import LimitedTar

FORMAT = 1
MANIFEST = "manifest.json"
SECRET_KEY = "secret_key"  # noqa: S105  the member's name
DATABASES = {"sqlite": "database.sqlite3", "postgresql": "database.pgdump"}
MAX_MANIFEST = 4 * 2**20
MAX_HEADERS = 2**16  # of the few members
MAX_PADDING = 2**20  # after the last member
MAX_BYTES = 2**50  # members may have any size that the manifest lists
SESSION_TABLES = ("django_session", "memoryhub_signin")  # backups contain no keys of login sessions
CACHE_TABLES = ("knowledge_app_graphlayout",)  # and no computed copies of the memory
PIECE = 2**20
SUMMARY = ("hub", "vendor", "taken_at", "rows")  # readable in encrypted backups, too
COMPRESSION = 1  # four times as fast as the default, and a tenth larger


class BadBackup(Invalid):
    """The file isn't a valid backup."""

    code = "bad_backup"


@dataclass(frozen=True)
class Content:
    """``size``: rows of a table or bytes of a member; ``sha256``: of the same."""

    size: int
    sha256: str


@dataclass(frozen=True)
class Manifest:
    """Times are UTC in ISO 8601, to the second.

    ``taken_at``: the moment of the snapshot; ``ended_at``: when copying ended. ``database``: a label.
    ``secret_key``: "inside", "left out" or "set outside"; ``key_check``: a short hash to compare keys with.
    ``digest``: see ``digest_of``. ``mac``: see ``manifest_mac``; "" in backups of older versions.
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
    mac: str = ""

    @property
    def session_count(self) -> int:
        """The number of login sessions in a backup of an older version."""
        return self.tables["django_session"].size if "django_session" in self.tables else 0

    @property
    def rows(self) -> int:
        return sum(table.size for table in self.tables.values())


def manifest_mac(manifest: Manifest) -> str:
    """Return an HMAC of the manifest, and so of everything that it lists, with the hub's secret key."""
    values = {name: value for name, value in asdict(manifest).items() if name != "mac"}
    text = json.dumps(values, sort_keys=True)
    return salted_hmac("memoryhub.backup_manifest", text, algorithm="sha256").hexdigest()


def digest_of(tables: Mapping[str, Content]) -> str:
    """Return the SHA-256 of the lines ``name rows sha256`` of all tables, sorted by name."""
    lines = "".join(f"{name} {tables[name].size} {tables[name].sha256}\n" for name in sorted(tables))
    return hashlib.sha256(lines.encode()).hexdigest()


def content_of(file: Path) -> Content:
    """Return the size and hash of a file."""
    with file.open("rb") as source:
        return Content(file.stat().st_size, hashlib.file_digest(source, "sha256").hexdigest())


def write_backup_file(out: IO[bytes], manifest: Manifest, files: Mapping[str, Path], passphrase: str) -> None:
    """Write the manifest and members, encrypted if there is a passphrase. ``out`` stays open."""
    with ExitStack() as stack:
        sink: Any = out
        if passphrase:
            header = {name: getattr(manifest, name) for name in SUMMARY}
            sink = stack.enter_context(EncryptingWriter(out, passphrase, header))
        packed = stack.enter_context(gzip.GzipFile("", "wb", COMPRESSION, sink, mtime=0))
        archive = stack.enter_context(tarfile.open(fileobj=packed, mode="w|"))
        text = json.dumps(asdict(manifest), indent=1).encode()
        archive.addfile(_member(MANIFEST, len(text)), io.BytesIO(text))
        for name, file in files.items():
            with file.open("rb") as source:
                archive.addfile(_member(name, manifest.members[name].size), source)


def _member(name: str, size: int) -> tarfile.TarInfo:
    member = tarfile.TarInfo(name)
    member.size, member.mode = size, 0o600
    return member


def summary_of(file: Path) -> dict[str, Any]:
    """Return the SUMMARY fields and ``is_encrypted`` of a backup, unverified. Raises BadBackup."""
    with _translated_errors(), file.open("rb") as source:
        if _is_encrypted(source):
            header, _ = read_header(source)
            return {name: header.get(name) for name in SUMMARY} | {"is_encrypted": True}
        with gzip.GzipFile(fileobj=source, mode="rb") as packed:
            archive = LimitedTar(cast("IO[bytes]", packed), max_bytes=MAX_BYTES, max_header_bytes=MAX_HEADERS)
            manifest = _read_manifest(archive, archive.next())
    return {name: getattr(manifest, name) for name in SUMMARY} | {"is_encrypted": False}


def _is_encrypted(source: io.BufferedReader) -> bool:
    return source.peek(len(MAGIC)).startswith(MAGIC)


def unpack_backup(file: Path, passphrase: str, folder: Path) -> Manifest:
    """Extract a backup into a folder and verify every byte. Raises BadBackup, Invalid, OSError."""
    with ExitStack() as stack:
        stack.enter_context(_translated_errors())
        source = stack.enter_context(file.open("rb"))
        if _is_encrypted(source):
            if not passphrase:
                raise Invalid(
                    "The backup is encrypted: set MEMORYHUB_BACKUP_KEY to the passphrase that it was created with.",
                    code="backup_key_missing",
                )
            source = io.BufferedReader(DecryptingReader(source, passphrase), PIECE)
        with _archive(source) as archive:
            manifest = _read_manifest(archive, archive.next())
            for name, content in manifest.members.items():
                _extract(archive, name, content, folder / name)
            if archive.next() is not None:
                raise BadBackup("The backup contains more than its manifest lists.")
    return manifest


@contextmanager
def _archive(source: IO[bytes]) -> Iterator[LimitedTar]:
    """Open a tar.gz as a stream; on success, read it to its end, so that gzip compares its checksum."""
    with gzip.GzipFile(fileobj=source, mode="rb") as packed:
        yield LimitedTar(cast("IO[bytes]", packed), max_bytes=MAX_BYTES, max_header_bytes=MAX_HEADERS)
        padding = 0
        while piece := packed.read(PIECE):
            padding += len(piece)
            if padding > MAX_PADDING:
                raise BadBackup(gettext("The backup contains more than its manifest lists."))


@contextmanager
def _translated_errors() -> Iterator[None]:
    try:
        yield
    except CannotDecrypt as error:
        raise BadBackup(error.message) from error
    except (tarfile.TarError, zlib.error, EOFError, gzip.BadGzipFile) as error:
        raise BadBackup(gettext("This is not a MemoryHub backup, or it is damaged or truncated.")) from error


def _read_manifest(archive: LimitedTar, member: tarfile.TarInfo | None) -> Manifest:
    if member is None or member.name != MANIFEST or not member.isreg() or member.size > MAX_MANIFEST:
        raise BadBackup(gettext("This is not a MemoryHub backup: it doesn't start with a manifest."))
    source = archive.open(member)
    try:
        values = json.loads(source.read())
        if values["format"] != FORMAT:
            message = gettext("The backup has format %(format)s, which needs a newer MemoryHub.")
            raise BadBackup(message % {"format": values["format"]})
        contents = {
            part: {name: Content(**content) for name, content in values[part].items()}
            for part in ("tables", "members")
        }
        manifest = Manifest(**(values | contents))
        if not all(type(one.size) is int for part in contents.values() for one in part.values()):
            raise ValueError
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise BadBackup(gettext("The backup's manifest is damaged.")) from None
    if not {DATABASES.get(manifest.vendor)} <= set(manifest.members) <= {*DATABASES.values(), SECRET_KEY}:
        raise BadBackup(gettext("The backup's manifest lists no database, or unknown parts."))
    if digest_of(manifest.tables) != manifest.digest:
        raise BadBackup(gettext("The backup's manifest is damaged: its tables don't match their digest."))
    return manifest


def _extract(archive: LimitedTar, name: str, content: Content, target: Path) -> None:
    member = archive.next()
    if member is None or member.name != name or not member.isreg() or member.size != content.size:
        raise BadBackup(f"The backup is damaged: {name} doesn't match the manifest.")
    source = archive.open(member)
    digest = hashlib.sha256()
    with target.open("xb") as out:
        while piece := source.read(PIECE):
            digest.update(piece)
            out.write(piece)
    if digest.hexdigest() != content.sha256:
        raise BadBackup(f"The backup is damaged: {name} doesn't have the SHA-256 in the manifest.")
