"""Where an agent's folder changes: the few sub-folders in which known programs write."""

from __future__ import annotations

from memoryhub.lib.layouts.nanobot import WORKSPACE_ID, join_path
from memoryhub.lib.safe_folder import Folder

PARTS = ("sessions", "memory", "state")


def places_to_watch(folder: Folder) -> list[str]:
    """Return the sub-folders to watch, each for itself: an agent's folder may hold projects of any size.

    The folder itself and its ``workspace``, the parts of both, and the folders in which nanobot 0.3 keeps sessions.
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
