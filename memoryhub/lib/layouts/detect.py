"""Detect which program wrote a folder."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from memoryhub.lib.errors import Invalid
from memoryhub.lib.files.safe_folder import Folder, UnreadableFile, join_path
from memoryhub.lib.layouts import basic_memory, hub_folder, memory_bank, server_memory
from memoryhub.lib.layouts.claude_code import layout as claude_code
from memoryhub.lib.layouts.codex import layout as codex
from memoryhub.lib.layouts.gemini_cli import layout as gemini_cli
from memoryhub.lib.layouts.grid import layout as grid
from memoryhub.lib.layouts.grid.sessions import session_files
from memoryhub.lib.layouts.hermes import layout as hermes
from memoryhub.lib.layouts.json_file import load_json
from memoryhub.lib.layouts.nanobot.layout import WORKSPACE_ID
from memoryhub.lib.layouts.openclaw import layout as openclaw
from memoryhub.lib.layouts.opencode import layout as opencode
from memoryhub.lib.layouts.records import DetectedLayout

SUPPORTED_FILES = (
    "sessions/*.jsonl or memory/ (nanobot), sessions/*.json with memory/ (Grip), kv.json, semantic_graph.json or "
    "observations (grid), session exports with entries (AgTerm), memoryhub.json (an export of MemoryHub), "
    "projects/*/*.jsonl (Claude Code), sessions/*/*/*/rollout-*.jsonl (Codex), "
    "agents/*/sessions or openclaw-agent.sqlite, or AGENTS.md with SOUL.md and IDENTITY.md (OpenClaw), "
    "opencode.db or storage/session/ (OpenCode), state.db with memories/ or config.yaml (Hermes), "
    "tmp/*/chats (Gemini CLI), memory.jsonl (server-memory), memory-bank/ or tasks/ (Cline and Roo Code), notes "
    "with a permalink (basic-memory)"
)
SINGLE_FILES = ("claude-code", "codex", "agterm", "server-memory")  # layouts of which one file can be imported
MAX_CONFIG_BYTES = 2**20
MAX_PROBED = 20  # JSON files opened to recognise their format


def detect(folder: Folder, layout: str = "auto", *, only: str = "") -> DetectedLayout:
    """Return the layout of a folder. Raises Invalid.

    ``layout``: assume this layout instead of detecting it. ``only``: the file to import, if it is a single one.
    """
    candidates: list[tuple[str, Callable[[], DetectedLayout | None]]] = [
        ("hub", lambda: hub_folder.find(folder)),
        ("claude-code", lambda: claude_code.find(folder, only)),
        ("codex", lambda: codex.find(folder, only)),
        ("agterm", lambda: _agterm(folder, only, is_certain=layout == "agterm")),
        ("openclaw", lambda: openclaw.find(folder)),
        ("opencode", lambda: opencode.find(folder, is_certain=layout == "opencode")),
        ("hermes", lambda: hermes.find(folder, is_certain=layout == "hermes")),
        ("grid", lambda: _grid(folder, is_certain=layout == "grid")),
        ("grip", lambda: _grip(folder, is_certain=layout == "grip")),
        ("nanobot", lambda: _nanobot(folder, is_certain=layout == "nanobot")),
        ("gemini-cli", lambda: gemini_cli.find(folder, is_certain=layout == "gemini-cli")),
        ("server-memory", lambda: server_memory.find(folder, only, is_certain=layout == "server-memory")),
        ("memory-bank", lambda: memory_bank.find(folder, is_certain=layout == "memory-bank")),
        ("basic-memory", lambda: basic_memory.find(folder, is_certain=layout == "basic-memory")),
    ]
    for name, find in candidates:
        if layout in ("auto", name) and (not only or name in SINGLE_FILES) and (detected := find()):
            return detected
    parent = only or "This folder"
    raise Invalid(
        f"{parent} contains no memory in a known format. Supported are {SUPPORTED_FILES}.", code="unknown_layout"
    )


def _config(folder: Folder, path: str) -> dict[str, Any]:
    value = load_json(folder, path, limit=MAX_CONFIG_BYTES)
    agents = value.get("agents") if isinstance(value, dict) else None
    defaults = agents.get("defaults") if isinstance(agents, dict) else None
    return defaults if isinstance(defaults, dict) else {}


def _workspace(folder: Folder) -> str:
    """Return the path of the memory: the folder itself, or its ``workspace`` if it is an agent's home."""
    has_own = folder.is_folder("memory") or folder.is_folder("state")
    return "workspace" if folder.is_folder("workspace") and not has_own else ""


def _number(config: dict[str, Any], name: str) -> int | None:
    value = config.get(name)
    return value if type(value) is int and 0 < value <= 100_000 else None


def _nanobot(folder: Folder, *, is_certain: bool) -> DetectedLayout | None:
    workspace = _workspace(folder)
    sessions, memory = join_path(workspace, "sessions"), join_path(workspace, "memory")
    outer = folder.names("sessions")
    is_current = (
        any(WORKSPACE_ID.fullmatch(name) for name in outer)
        or folder.exists(join_path(workspace, ".nanobot/workspace-id"))
        or folder.exists(join_path(memory, "history.jsonl"))
    )
    has_sessions = any(name.endswith(".jsonl") for name in [*folder.names(sessions), *outer])
    has_memory = any(folder.exists(join_path(memory, name)) for name in ("MEMORY.md", "HISTORY.md"))
    if not (is_certain or is_current or has_sessions or has_memory):
        return None
    settings: dict[str, int | float | bool | str] = {}
    if window := _number(_config(folder, "config.json"), "memoryWindow"):
        settings["memory_window"] = window
    return DetectedLayout("nanobot", "0.3" if is_current else "0.1", "", workspace, settings)


def _grip(folder: Folder, *, is_certain: bool) -> DetectedLayout | None:
    workspace = _workspace(folder)
    config = _config(folder, "config.json")
    markers = (
        folder.exists(join_path(workspace, "memory/knowledge.json"))
        or folder.exists(join_path(workspace, "state/semantic_cache.json"))
        or "memory_window" in config
        or _has_grip_session(folder, join_path(workspace, "sessions"))
    )
    if not (is_certain or markers):
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
    return DetectedLayout("grip", "1", "", workspace, settings)


def _has_grip_session(folder: Folder, sessions: str) -> bool:
    names = [name for name in folder.names(sessions) if name.endswith(".json")]
    return any(_starts_with(folder, join_path(sessions, name), b'"messages"') for name in names[:MAX_PROBED])


def _starts_with(folder: Folder, path: str, *markers: bytes) -> bool:
    """Return whether the start of a file contains all markers; it may be truncated JSON."""
    try:
        head, _ = folder.read(path, lambda stream: stream.head())
    except UnreadableFile:
        return False
    return all(marker in head for marker in markers)


def _grid(folder: Folder, *, is_certain: bool) -> DetectedLayout | None:
    has_store = any(
        folder.exists(name) for name in ("kv.json", "semantic_graph.json", "observations.bleve/index_meta.json")
    )
    has_session = any(
        _starts_with(folder, path, b'"_type":"header"') for path in session_files(folder, "")[:MAX_PROBED]
    )
    has_observations = grid.observation_exports(folder, "") or grid.observation_lists(folder, "")
    if is_certain or has_store or has_session or has_observations:
        return DetectedLayout("grid", "", "", "")
    return None


def _agterm(folder: Folder, only: str, *, is_certain: bool) -> DetectedLayout | None:
    names = [only] if only else [name for name in folder.names() if name.endswith(".json")]
    is_export = any(_starts_with(folder, name, b'"entries"', b'"sessionId"') for name in names[:MAX_PROBED])
    return DetectedLayout("agterm", "", "", "") if is_certain or is_export else None
