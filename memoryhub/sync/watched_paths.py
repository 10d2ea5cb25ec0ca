"""The sub-folders of an agent's folder in which known programs write."""

from __future__ import annotations

from dataclasses import dataclass

from memoryhub.lib.files.safe_folder import Folder, join_path
from memoryhub.lib.layouts.nanobot.layout import WORKSPACE_ID

PARTS = ("sessions", "memory", "state")
TREES = {  # sub-folders that hold nothing but an agent's files, watched with all their descendants
    "claude-code": ("projects", ".claude/projects"),
    "codex": tuple(
        f"{home}{name}" for home in ("", ".codex/") for name in ("sessions", "archived_sessions", "memories")
    ),
    "gemini-cli": ("tmp", "chats", ".gemini/tmp", ".qwen/tmp"),
}
DOCUMENTS = {  # files beside the trees that concern all projects; others there change with every turn
    "claude-code": ("CLAUDE.md",),
    "codex": ("AGENTS.md", "AGENTS.override.md"),
    "gemini-cli": ("GEMINI.md", "QWEN.md"),
}
OPENCLAW = (
    *("workspace", "workspace/memory", "workspace/*/memory", "workspace-*", "workspace-*/memory"),
    *("agents/*/agent", "agents/*/sessions"),
)
HERMES = ("memories", "profiles/*", "profiles/*/memories")
OPENCODE = ("storage/session/*", "storage/message/*")  # of versions without a database
FLAT = {  # sub-folders watched without their descendants; * is any name
    "openclaw": ("memory", *OPENCLAW, *(f".openclaw/{path}" for path in OPENCLAW)),
    "hermes": (*HERMES, ".hermes", *(f".hermes/{path}" for path in HERMES)),
    "opencode": (
        *OPENCODE,
        ".config/opencode",
        ".local/share/opencode",
        *(f".local/share/opencode/{path}" for path in OPENCODE),
    ),
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
        paths = [path for pattern in FLAT[layout] for path in _matching(folder, pattern)]
        return Places(["", *paths, *(_workspaces(folder) if layout == "openclaw" else ())])
    return Places(folders_to_watch(folder))


def _matching(folder: Folder, pattern: str) -> list[str]:
    """Return the sub-folders that match a path, in which ``*`` is any name."""
    before, star, after = pattern.partition("*")
    if not star:
        return [pattern] if folder.is_folder(pattern) else []
    parent, _, start = before.rpartition("/")
    names = [name for name in folder.names(parent) if name.startswith(start) and not name.startswith(".")]
    return [path for name in names if folder.is_folder(path := f"{join_path(parent, name)}{after}")]


def _workspaces(folder: Folder) -> list[str]:
    """Return the folders of OpenClaw's agents in the shared workspace, which also holds projects."""
    paths = [f"{home}workspace/{name}" for home in ("", ".openclaw/") for name in folder.names(f"{home}agents")]
    return [path for path in paths if folder.is_folder(path)]


def home_stamps(folder: Folder, layout: str) -> dict[str, str]:
    """Return the stamps of the files in the watched sub-folders, and of documents beside them, by path."""
    places = places_to_watch(folder, layout)
    stamps = {path: stamp for place in places.paths for path, stamp in folder.stamps(place, is_tree=places.are_trees)}
    homes = {place.rpartition("/")[0] for place in places.paths} if places.are_trees else ()
    documents = [join_path(home, name) for home in homes for name in DOCUMENTS.get(layout, ())]
    return stamps | {path: stamp for path in documents if (stamp := folder.stamp(path))}


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
