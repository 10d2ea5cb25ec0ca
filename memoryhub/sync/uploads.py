"""Files that people upload for an import, in Django's default storage.

An upload is named by the path that it has, or would have, for the hub that stored it. Other hubs find it by the end
of that path.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from django.conf import settings
from django.core.files import File
from django.core.files.storage import default_storage

from memoryhub.lib.private_files import local_file, local_path

FOLDER = "agents/uploads"
_PATH = re.compile(rf"/({FOLDER}/[0-9a-f]{{32}}/[\w.-]+)\Z")


def uploads() -> Path:
    """Return the folder of uploads: in the storage or, if that isn't a folder, only as a part of names."""
    return local_path(default_storage, FOLDER) or Path(settings.MEMORYHUB_HOME, FOLDER)


def store_upload(name: str, upload: File[bytes]) -> Path:
    """Store an uploaded file in a folder of its own, under a safe name, and return its path."""
    safe_name = re.sub(r"[^\w.-]", "_", name).lstrip(".")[-100:] or "upload"
    place = f"{uuid.uuid4().hex}/{safe_name}"
    default_storage.save(f"{FOLDER}/{place}", upload)
    return uploads() / place


def is_upload(path: Path) -> bool:
    """Return whether a path names a stored upload."""
    name = _stored_name(path)
    return bool(name) and default_storage.exists(name)


@contextmanager
def readable_path(path: Path) -> Iterator[Path]:
    """Yield a path at which a file or folder can be read on this machine."""
    name = _stored_name(path)
    if path.exists() or not (name and default_storage.exists(name)):
        yield path
        return
    with local_file(default_storage, name, prefix="memoryhub-upload-") as file:
        yield file


def _stored_name(path: Path) -> str:
    match = _PATH.search(str(path))
    return match[1] if match else ""
