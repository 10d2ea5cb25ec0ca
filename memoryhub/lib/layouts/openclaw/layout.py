"""Read OpenClaw's home, with its agents' sessions, and its workspaces of Markdown files.

https://docs.openclaw.ai/concepts/agent-workspace
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, tzinfo

from memoryhub.lib.files.safe_folder import Folder, SkippedPath, join_path
from memoryhub.lib.files.sqlite_source import LOG
from memoryhub.lib.layouts.documents import read_document, unread_file
from memoryhub.lib.layouts.openclaw.files import INDEX, read_files, session_names
from memoryhub.lib.layouts.openclaw.store import sessions
from memoryhub.lib.layouts.records import DetectedLayout, DocumentLimit, FileRead, Project
from memoryhub.lib.layouts.store_files import from_store, read_store

HOME = ".openclaw"
STORE = "agent/openclaw-agent.sqlite"
DOCUMENTS = ("MEMORY.md", "memory.md", "USER.md", "SOUL.md", "IDENTITY.md", "DREAMS.md")
INSTRUCTIONS = ("AGENTS.md", "TOOLS.md", "HEARTBEAT.md", "BOOTSTRAP.md")
OWN_SIGNS = ("IDENTITY.md", "BOOTSTRAP.md")
NANOBOT_SIGNS = (".nanobot", "memory/MEMORY.md", "memory/HISTORY.md", "memory/history.jsonl", "sessions")
PROMPT_LIMIT = DocumentLimit(chars=20_000)  # agents.defaults.bootstrapMaxChars


def find(folder: Folder) -> DetectedLayout | None:
    """Return the layout of an OpenClaw home, of the folder that contains it as ``.openclaw``, or of a workspace."""
    if _is_workspace(folder, ""):
        return DetectedLayout("openclaw", "")
    agents = agent_ids(folder)
    if not agents:
        return None
    workspace = workspace_of(folder, agents[0]) if len(agents) == 1 else ""
    return DetectedLayout("openclaw", "", home_of(folder), workspace)


def home_of(folder: Folder) -> str:
    """Return the path of the home, "" or ``.openclaw``."""
    return HOME if folder.is_folder(f"{HOME}/agents") and not folder.is_folder("agents") else ""


def _is_workspace(folder: Folder, path: str) -> bool:
    if not all(folder.is_file(join_path(path, name)) for name in ("AGENTS.md", "SOUL.md")):
        return False
    if any(folder.is_file(join_path(path, name)) for name in OWN_SIGNS):
        return not any(folder.exists(join_path(path, name)) for name in (".nanobot", "memory/history.jsonl"))
    is_shared = any(folder.exists(join_path(path, name)) for name in NANOBOT_SIGNS)
    return folder.is_file(join_path(path, "HEARTBEAT.md")) and not is_shared


def agent_ids(folder: Folder) -> list[str]:
    """Return the ids of the agents that have sessions."""
    parent = join_path(home_of(folder), "agents")
    return [name for name in folder.names(parent) if _has_sessions(folder, f"{parent}/{name}")]


def _has_sessions(folder: Folder, parent: str) -> bool:
    return (
        folder.exists(f"{parent}/{STORE}")
        or folder.is_file(f"{parent}/sessions/{INDEX}")
        or bool(session_names(folder, f"{parent}/sessions"))
    )


def workspace_of(folder: Folder, agent: str) -> str:
    """Return the default path of an agent's workspace; "" if there is none in the home.

    A configured path isn't known: ``openclaw.json`` may contain keys, so it isn't read.
    """
    own = [f"workspace-{agent}", f"workspace/{agent}"]
    shared = ["workspace"] if agent == "main" or len(agent_ids(folder)) == 1 else []
    home = home_of(folder)
    return next((path for name in own + shared if folder.is_folder(path := join_path(home, name))), "")


def agent_of_file(folder: Folder, path: str) -> str | None:
    """Return the id of the agent that a file in a home belongs to; None if it may concern any of them."""
    parent = f"{join_path(home_of(folder), 'agents')}/"
    if path.startswith(parent):
        return path.removeprefix(parent).partition("/")[0]
    owners = [agent for agent in agent_ids(folder) if path.startswith(f"{workspace_of(folder, agent) or '//'}/")]
    return owners[0] if len(owners) == 1 else None


def projects(folder: Folder) -> list[Project]:
    """Return the agents of a home."""
    return [_project(folder, agent) for agent in agent_ids(folder)]


def _project(folder: Folder, agent: str) -> Project:
    parent = join_path(home_of(folder), f"agents/{agent}")
    files = [f"{parent}/sessions/{name}" for name in session_names(folder, f"{parent}/sessions")]
    store = f"{parent}/{STORE}"
    count = from_store(folder, store, lambda opened: len(opened.state("transcript_events", "session_id", ())), 0)
    stamps = [stamp for path in (store, store + LOG, *files) if (stamp := folder.stamp(path))]
    return Project(
        name=agent,
        label=agent,
        path=workspace_of(folder, agent),
        session_count=max(count, len(files)),
        byte_count=sum(int(stamp.split("-")[1]) for stamp in stamps),
        last_active=folder.latest_change((store, store + LOG, *files)),
    )


def read(folder: Folder, detected: DetectedLayout, zone: tzinfo = UTC) -> Iterator[FileRead]:
    """Yield the sessions and the documents of one agent, or of all if no project is named."""
    agents = [name for name in agent_ids(folder) if detected.project in ("", name)]
    for agent in agents:
        stored: set[str] = set()
        parent = join_path(detected.home, f"agents/{agent}")
        if folder.exists(f"{parent}/{STORE}"):
            for found in _read_store(folder, f"{parent}/{STORE}", zone):
                stored.add(found.path.rpartition("#")[2])
                yield found
        yield from read_files(folder, f"{parent}/sessions", agent, stored, zone)
    workspaces = [workspace_of(folder, agent) for agent in agents] if agents else [detected.workspace]
    if _is_workspace(folder, ""):
        workspaces = [""]
    elif agents:
        workspaces = [path for path in workspaces if path]
    for place, workspace in enumerate(dict.fromkeys(workspaces)):
        yield from _read_documents(folder, workspace, is_first=place == 0)


def _read_store(folder: Folder, path: str, zone: tzinfo) -> Iterator[FileRead]:
    yield from read_store(folder, path, lambda store, problems: sessions(store, path, problems, zone))


def _read_documents(folder: Folder, workspace: str, *, is_first: bool) -> Iterator[FileRead]:
    """Yield the documents of a workspace, named by their paths in it.

    Only those of the first one fit into the hub's workspace.
    """
    names = [name for name in (*DOCUMENTS, *INSTRUCTIONS) if folder.exists(join_path(workspace, name))]
    if "MEMORY.md" in names and folder.stamp(join_path(workspace, "memory.md")) == folder.stamp(
        join_path(workspace, "MEMORY.md")
    ):
        names = [name for name in names if name != "memory.md"]  # one file on a disk that ignores case
    prefix = f"{workspace}/" if workspace else ""
    for file in folder.files(join_path(workspace, "memory")):
        if isinstance(file, SkippedPath):
            yield unread_file(file.path, file.reason, "not read", "rejected")
        elif file.endswith(".md") and not any(part.startswith(".") for part in file.split("/")):
            names.append(file.removeprefix(prefix))
    for name in names:
        path = join_path(workspace, name)
        if is_first:
            limit = PROMPT_LIMIT if "/" not in name else None
            yield read_document(folder, path, name=name, limit=limit, is_instructions=name in INSTRUCTIONS)
        else:
            action = "import that agent by its name"
            yield unread_file(path, "belongs to another agent", action, kind="document")
