"""The sub-folders of an agent's folder in which known programs write."""

from __future__ import annotations

from memoryhub.lib.layouts.nanobot import WORKSPACE_ID, join_path
from memoryhub.lib.safe_folder import Folder

PARTS = ("sessions", "memory", "state")


def folders_to_watch(folder: Folder) -> list[str]:
    """Return the sub-folders to watch without their descendants, since the folder may hold projects of any size.

    They are the folder itself and its ``workspace``, the parts of both, and nanobot 0.3's session folders.
    """
    homes = ["", *(["workspace"] if folder.is_folder("workspace") else [])]
    parts = [join_path(home, part) for home in homes for part in PARTS if folder.is_folder(join_path(home, part))]
    sessions = [
        join_path(part, name)
        for part in parts
        if part.endswith("sessions")
        for name in folder.names(part)
        if WORKSPACE_ID.fullmatch(name) and folder.is_folder(join_path(part, name))
    ]
    return [*homes, *parts, *sessions]
