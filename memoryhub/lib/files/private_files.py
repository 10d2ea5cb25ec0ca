"""Storage of uploads, exports and backups: a folder, or whatever Django's STORAGES names."""

from __future__ import annotations

import os
import stat
import tempfile
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

from django.conf import settings
from django.core.files import File
from django.core.files.storage import FileSystemStorage, Storage

CHUNK_BYTES = 2**20


class PrivateFiles(FileSystemStorage):
    """Files that only their owner can read, below the folder in the first of ``folder_settings`` that isn't empty.

    A file gets its name when it is complete, and replaces an older one. Symlinks count as missing.
    """

    def __init__(self, folder_settings: Sequence[str]) -> None:
        super().__init__(file_permissions_mode=0o600, directory_permissions_mode=0o700)
        self._folder_settings = folder_settings

    @property
    def base_location(self) -> str:
        values = (getattr(settings, name) for name in self._folder_settings)
        return str(next(value for value in values if value))

    @property
    def location(self) -> str:
        return str(Path(self.base_location).absolute())

    def get_available_name(self, name: str, max_length: int | None = None) -> str:  # noqa: ARG002
        return name

    def exists(self, name: str) -> bool:
        with suppress(OSError):
            return stat.S_ISREG(os.lstat(self.path(name)).st_mode)
        return False

    def listdir(self, path: str) -> tuple[list[str], list[str]]:
        folders, files = [], []
        with suppress(FileNotFoundError), os.scandir(self.path(path)) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    folders.append(entry.name)
                elif entry.is_file(follow_symlinks=False):
                    files.append(entry.name)
        return folders, files

    def _open(self, name: str, mode: str = "rb") -> File[Any]:
        if not self.exists(name):
            raise FileNotFoundError(name)
        return File(open(self.path(name), mode, opener=_open_private))

    def _save(self, name: str, content: File[Any]) -> str:
        target = Path(self.path(name))
        target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        draft = target.with_name(f".{target.name}.{uuid.uuid4().hex}.part")
        try:
            with open(draft, "xb", opener=_open_private) as out:
                for chunk in content.chunks():
                    out.write(chunk)
                out.flush()
                os.fsync(out.fileno())
            draft.replace(target)
        finally:
            draft.unlink(missing_ok=True)
        return name


def _open_private(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NOFOLLOW, 0o600)


def local_path(storage: Storage, name: str) -> Path | None:
    """Return the path of a stored file or folder; None if the storage isn't a folder."""
    try:
        return Path(storage.path(name))
    except NotImplementedError:
        return None


@contextmanager
def local_file(storage: Storage, name: str, *, prefix: str, parent: Path | None = None) -> Iterator[Path]:
    """Yield the path of a stored file, or of a temporary copy if the storage isn't a folder.

    ``prefix`` and ``parent``: of the temporary folder. Raises FileNotFoundError.
    """
    path = local_path(storage, name)
    if path is not None:
        yield path
        return
    with tempfile.TemporaryDirectory(prefix=prefix, dir=parent) as folder:
        copy = Path(folder, Path(name).name)
        with storage.open(name) as source, open(copy, "xb", opener=_open_private) as out:
            copy_bytes(source, out)
        yield copy


def copy_bytes(source: IO[bytes] | File[Any], out: IO[bytes]) -> None:
    """Copy the rest of a file to another one."""
    while chunk := source.read(CHUNK_BYTES):
        out.write(chunk)
