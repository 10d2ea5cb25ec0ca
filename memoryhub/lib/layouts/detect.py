"""Which program wrote this folder."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from memoryhub.lib.errors import Invalid
from memoryhub.lib.layouts import grid, hub_folder
from memoryhub.lib.layouts.nanobot import WORKSPACE_ID, below
from memoryhub.lib.layouts.records import Found
from memoryhub.lib.safe_folder import Folder, UnreadableFile
from memoryhub.lib.validation import BadJSON, decode_json

LOOKED_FOR = (
    "sessions/*.jsonl or memory/ (nanobot), sessions/*.json with memory/ (Grip), kv.json, semantic_graph.json or "
    "observations (grid), session exports with entries (AgTerm), memoryhub.json (an export of MemoryHub)"
)
MAX_CONFIG_BYTES = 2**20
MAX_PROBED = 20  # files looked into to tell JSON shapes apart


def detect(folder: Folder, wanted: str = "auto", *, only: str = "") -> Found:
    """Return the layout of a folder; ``only`` is the one file of it that is meant. Raises Invalid.

    ``wanted`` names a layout to be taken for granted. A damaged file never hides the layout that others show.
    """
    candidates: list[tuple[str, Callable[[], Found | None]]] = [
        ("hub", lambda: hub_folder.find(folder)),
        ("agterm", lambda: _agterm(folder, only, is_certain=wanted == "agterm")),
        ("grid", lambda: _grid(folder, is_certain=wanted == "grid")),
        ("grip", lambda: _grip(folder, is_certain=wanted == "grip")),
        ("nanobot", lambda: _nanobot(folder, is_certain=wanted == "nanobot")),
    ]
    for name, look in candidates:
        if wanted in ("auto", name) and (not only or name == "agterm") and (found := look()):
            return found
    place = only or "This folder"
    raise Invalid(f"{place} holds no memory that MemoryHub knows. It looked for {LOOKED_FOR}.", code="unknown_layout")


def _config(folder: Folder, path: str) -> dict[str, Any]:
    try:
        value = decode_json(folder.read_bytes(path, limit=MAX_CONFIG_BYTES)[0].decode("utf-8", "replace")).value
    except (UnreadableFile, BadJSON):
        return {}
    agents = value.get("agents") if isinstance(value, dict) else None
    defaults = agents.get("defaults") if isinstance(agents, dict) else None
    return defaults if isinstance(defaults, dict) else {}


def _workspace(folder: Folder) -> str:
    """Return where the memory lies: the folder itself, or its ``workspace`` when it is an agent's home."""
    has_own = folder.is_folder("memory") or folder.is_folder("state")
    return "workspace" if folder.is_folder("workspace") and not has_own else ""


def _number(config: dict[str, Any], name: str) -> int | None:
    value = config.get(name)
    return value if type(value) is int and 0 < value <= 100_000 else None


def _nanobot(folder: Folder, *, is_certain: bool) -> Found | None:
    workspace = _workspace(folder)
    sessions, memory = below(workspace, "sessions"), below(workspace, "memory")
    outer = folder.names("sessions")
    is_current = (
        any(WORKSPACE_ID.fullmatch(name) for name in outer)
        or folder.exists(below(workspace, ".nanobot/workspace-id"))
        or folder.exists(below(memory, "history.jsonl"))
    )
    has_sessions = any(name.endswith(".jsonl") for name in [*folder.names(sessions), *outer])
    has_memory = any(folder.exists(below(memory, name)) for name in ("MEMORY.md", "HISTORY.md"))
    if not (is_certain or is_current or has_sessions or has_memory):
        return None
    settings: dict[str, int | float | bool | str] = {}
    if window := _number(_config(folder, "config.json"), "memoryWindow"):
        settings["memory_window"] = window
    return Found("nanobot", "0.3" if is_current else "0.1", "", workspace, settings)


def _grip(folder: Folder, *, is_certain: bool) -> Found | None:
    workspace = _workspace(folder)
    config = _config(folder, "config.json")
    signs = (
        folder.exists(below(workspace, "memory/knowledge.json"))
        or folder.exists(below(workspace, "state/semantic_cache.json"))
        or "memory_window" in config
        or _has_grip_session(folder, below(workspace, "sessions"))
    )
    if not (is_certain or signs):
        return None
    settings: dict[str, int | float | bool | str] = {"memory_window": _number(config, "memory_window") or 50}
    if isinstance(config.get("auto_consolidate"), bool):
        settings["auto_consolidate"] = config["auto_consolidate"]
    if isinstance(config.get("semantic_cache_enabled"), bool):
        settings["cache_enabled"] = config["semantic_cache_enabled"]
    if lifetime := _number(config, "semantic_cache_ttl"):
        settings["cache_ttl_seconds"] = lifetime
    for name in ("model", "consolidation_model"):
        if isinstance(config.get(name), str) and len(config[name]) <= 200:
            settings[name] = config[name]
    return Found("grip", "1", "", workspace, settings)


def _has_grip_session(folder: Folder, sessions: str) -> bool:
    names = [name for name in folder.names(sessions) if name.endswith(".json")]
    return any(_holds(folder, below(sessions, name), b'"messages"') for name in names[:MAX_PROBED])


def _holds(folder: Folder, path: str, *signs: bytes) -> bool:
    """Tell whether a file's beginning holds all signs; a cut file shows its kind as well."""
    try:
        head, _ = folder.read(path, lambda stream: next(stream.chunks(), b""))
    except UnreadableFile:
        return False
    return all(sign in head for sign in signs)


def _grid(folder: Folder, *, is_certain: bool) -> Found | None:
    has_store = any(
        folder.exists(name) for name in ("kv.json", "semantic_graph.json", "observations.bleve/index_meta.json")
    )
    if is_certain or has_store or grid.observation_exports(folder, "") or grid.observation_lists(folder, ""):
        return Found("grid", "", "", "")
    return None


def _agterm(folder: Folder, only: str, *, is_certain: bool) -> Found | None:
    names = [only] if only else [name for name in folder.names() if name.endswith(".json")]
    is_export = any(_holds(folder, name, b'"entries"', b'"sessionId"') for name in names[:MAX_PROBED])
    return Found("agterm", "", "", "") if is_certain or is_export else None
