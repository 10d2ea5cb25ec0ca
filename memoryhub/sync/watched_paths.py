"""The sub-folders of an agent's folder in which known programs write."""

from __future__ import annotations

from dataclasses import dataclass

from memoryhub.lib.layouts.nanobot import WORKSPACE_ID, join_path
from memoryhub.lib.safe_folder import Folder

PARTS = ("sessions", "memory", "state")
TREES = {  # sub-folders that hold nothing but an agent's files, watched with all their descendants
    "claude-code": ("projects", ".claude/projects"),
    "codex": ("sessions", "archived_sessions", "memories", ".codex/sessions", ".codex/archived_sessions"),
    "gemini-cli": ("tmp", "chats", ".gemini/tmp", ".qwen/tmp"),
}
OPENCLAW = (
    *("workspace", "workspace/memory", "workspace/*/memory", "workspace-*", "workspace-*/memory"),
    *("agents/*/agent", "agents/*/sessions"),
)
FLAT = {  # sub-folders watched without their descendants; * is any name
    "openclaw": ("memory", *OPENCLAW, *(f".openclaw/{path}" for path in OPENCLAW)),
    "hermes": ("memories", "profiles/*", "profiles/*/memories", ".hermes", ".hermes/memories", ".hermes/profiles/*"),
    "opencode": (".local/share/opencode",),
    "server-memory": (),
    "basic-memory": ("*",),
    "memory-bank": ("memory-bank", "tasks/*"),
}


@dataclass(frozen=True)
class Places:
    """Sub-folders to watch. ``are_trees``: with all their descendants."""

    paths: list[str]
    are_trees: bool = False


def places_to_watch(folder: Folder, layout: str) -> Places:
    """Return the sub-folders in which the program of a layout writes. Others may hold projects of any size."""
    if trees := [path for path in TREES.get(layout, ()) if folder.is_folder(path)]:
        return Places(trees, are_trees=True)
    if layout in FLAT:
        return Places(["", *(path for pattern in FLAT[layout] for path in _matching(folder, pattern))])
    return Places(folders_to_watch(folder))


def _matching(folder: Folder, pattern: str) -> list[str]:
    """Return the sub-folders that match a path, in which ``*`` is any name."""
    before, star, after = pattern.partition("*")
    if not star:
        return [pattern] if folder.is_folder(pattern) else []
    parent, _, start = before.rpartition("/")
    names = [name for name in folder.names(parent) if name.startswith(start) and not name.startswith(".")]
    return [path for name in names if folder.is_folder(path := f"{join_path(parent, name)}{after}")]


def home_stamps(folder: Folder, places: Places) -> dict[str, str]:
    """Return the stamps of the files in the watched sub-folders by path."""
    return {path: stamp for place in places.paths for path, stamp in folder.stamps(place, is_tree=places.are_trees)}


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
