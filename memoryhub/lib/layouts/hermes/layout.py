"""Read Hermes Agent's home and its profiles: ``state.db`` and the memory files.

The columns and the rules for continued sessions are those of the program's ``hermes_state_common.py``, version 30.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from datetime import UTC, tzinfo
from functools import partial
from typing import Any

from memoryhub.lib.files.safe_folder import Folder, UnreadableFile, join_path
from memoryhub.lib.files.sqlite_source import LOG, Row, Store, is_store
from memoryhub.lib.layouts.agent_entries import decoded, short_text
from memoryhub.lib.layouts.documents import read_document, unread_file
from memoryhub.lib.layouts.hermes.messages import MESSAGE, read_rows
from memoryhub.lib.layouts.jsonl import title_of, without_binary
from memoryhub.lib.layouts.problem_counts import MAX_NAMED, ProblemCounts
from memoryhub.lib.layouts.records import DetectedLayout, DocumentLimit, FileRead, Problem, Project, SessionRecord
from memoryhub.lib.layouts.store_files import StoredSession, from_store, has_usable_id, read_store, unread_sessions
from memoryhub.lib.layouts.times import read_epoch
from memoryhub.lib.validation import brief

STORE = "state.db"
HOMES = ("", ".hermes")  # the second one in a user's home folder
DEFAULT = "default"  # the profile that is the home itself
NEWEST_SCHEMA = 30
SEPARATOR = "§"
DOCUMENTS = (  # with the number of characters that the program writes at most
    ("memories/MEMORY.md", 2200),
    ("memories/USER.md", 1375),
    ("SOUL.md", None),
)
RESETS = ("session_reset", "session_switch", "idle", "daily", "suspended", "resume_pending_expired")
SESSION = (
    "id",
    "source",
    "user_id",
    "session_key",
    "chat_id",
    "chat_type",
    "thread_id",
    "display_name",
    "title",
    "model",
    "model_config",
    "parent_session_id",
    "started_at",
    "ended_at",
    "end_reason",
    "last_activity_at",
    "cwd",
    "git_branch",
    "archived",
)
IN_FIELDS = ("title", "started_at", "last_activity_at")  # of a session; the other columns are kept as they are


def find(folder: Folder, *, is_certain: bool = False) -> DetectedLayout | None:
    """Return the layout of a Hermes home or profile, or of a user's home that contains it.

    ``is_certain``: the folder is Hermes's, so that its database may be damaged.
    """
    for home in HOMES:
        marks, store = ("config.yaml", "memories", "profiles"), join_path(home, STORE)
        has_mark = any(folder.exists(join_path(home, name)) for name in marks)
        if has_mark and (is_store(folder, store) or (is_certain and folder.exists(store))):
            return DetectedLayout("hermes", "", home=home, workspace=home)
    return None


def profiles(folder: Folder, home: str) -> dict[str, str]:
    """Return the paths of the profiles by their names; the home itself is the first."""
    parent = join_path(home, "profiles")
    found = {DEFAULT: home}
    for name in folder.names(parent):
        if folder.exists(f"{parent}/{name}/{STORE}") or folder.is_folder(f"{parent}/{name}/memories"):
            found[name] = f"{parent}/{name}"
    return found


def profile_folder(folder: Folder, name: str) -> str:
    """Return the path of a profile."""
    detected = find(folder, is_certain=True)
    home = detected.home if detected else ""
    return home if name == DEFAULT else join_path(home, f"profiles/{name}")


def profile_of_file(_folder: Folder, path: str) -> str | None:
    """Return the name of the profile that a file in a home belongs to."""
    _, is_profile, below = f"/{path}".partition("/profiles/")
    return below.partition("/")[0] if is_profile else DEFAULT


def projects(folder: Folder) -> list[Project]:
    """Return the profiles of a home."""
    detected = find(folder, is_certain=True)
    return [
        _project(folder, name, path) for name, path in profiles(folder, detected.home if detected else "").items()
    ]


def _project(folder: Folder, name: str, path: str) -> Project:
    store = join_path(path, STORE)
    files = [store, store + LOG, *(join_path(path, document) for document, _ in DOCUMENTS)]
    return Project(
        name=name,
        label="hermes" if name == DEFAULT else name,
        path=path,
        session_count=from_store(folder, store, _session_count, 0),
        byte_count=sum(int(stamp.split("-")[1]) for file in files if (stamp := folder.stamp(file))),
        last_active=folder.latest_change(files),
    )


def _session_count(store: Store) -> int:
    return len(store.state("messages", "session_id", ()))


def read(folder: Folder, detected: DetectedLayout, zone: tzinfo = UTC) -> Iterator[FileRead]:
    """Yield the sessions and the documents of one profile.

    If none is named, those of the home itself, and the sessions of all other profiles.
    """
    for name, path in profiles(folder, detected.home).items():
        if detected.project in ("", name):
            is_chosen = name in (detected.project, DEFAULT)
            yield from _read_profile(folder, path, zone, has_documents=is_chosen)


def _read_profile(folder: Folder, path: str, zone: tzinfo, *, has_documents: bool) -> Iterator[FileRead]:
    store = join_path(path, STORE)
    if folder.exists(store):
        yield from read_store(folder, store, lambda opened, problems: _sessions(opened, store, problems, zone))
    if folder.names(older := join_path(path, "sessions")):
        what = "contains sessions from before the database, or logs"
        yield FileRead(older, "other", None, problems=[Problem(older, None, what, "skipped", "ignored")])
    for name, limit in DOCUMENTS:
        place = join_path(path, name)
        if not folder.exists(place):
            continue
        if has_documents:
            kept = {"separator": SEPARATOR, "limit": DocumentLimit(chars=limit)} if limit else {}
            yield read_document(folder, place, **kept)
        else:
            action = "import that profile by its name"
            yield unread_file(place, "belongs to another profile", action, kind="document")


def _sessions(store: Store, path: str, problems: list[Problem], zone: tzinfo) -> Iterator[StoredSession]:
    missing = [name for name in ("sessions", "messages") if name not in store.tables]
    if missing:
        raise UnreadableFile(f"has no table {missing[0]}, so it isn't Hermes's database, or a newer one")
    numbers = ("id", "active", "compacted", "timestamp", "_compressed_summary")
    states = store.state("messages", "session_id", numbers, texts=("content", "tool_calls", "display_kind"))
    rows = {row["id"]: row for row in store.rows("sessions", SESSION, order="started_at, id")}
    problems += [*_store_problems(store, path), *unread_sessions(path, rows, states)]
    keys = session_keys(rows)
    epochs: Counter[str] = Counter()
    for name, row in rows.items():
        if name in states and has_usable_id(name):
            key = keys[name]
            changed_at = read_epoch(row["last_activity_at"])[0] or read_epoch(row["started_at"])[0]
            records = partial(_records, store, rows, keys, row, epochs[key], zone)
            yield StoredSession(name, f"{key}/{row}/{states[name]}", records, changed_at)
            epochs[key] += 1


def _store_problems(store: Store, path: str) -> list[Problem]:
    """Return what to report about the schema of the database."""
    counts = ProblemCounts(path)
    versions = [row["version"] for row in store.rows("schema_version", ("version",))]
    newest = max((version for version in versions if isinstance(version, int)), default=0)
    if newest > NEWEST_SCHEMA:
        what = f"has the schema {newest}; MemoryHub knows {NEWEST_SCHEMA}"
        counts.add(what, "what it knows is read", "noted")
    read = {"sessions": SESSION, "messages": ("session_id", *MESSAGE)}
    unread = [f"{table}.{brief(name)}" for table in read for name in store.tables[table] if name not in read[table]]
    if unread:
        counts.add(f"has columns that aren't imported: {', '.join(unread[:MAX_NAMED])}", "left out", "ignored")
    return counts.problems()


def session_keys(rows: dict[Any, Row]) -> dict[Any, str]:
    """Return the key of the conversation that each session belongs to.

    A session that goes on after a compression or a reset belongs to its parent's conversation.
    """
    keys: dict[Any, str] = {}
    for name in rows:
        chain: list[Any] = []
        current: Any = name
        while current not in keys and current not in chain:
            chain.append(current)
            parent = rows[current]["parent_session_id"]
            if parent not in rows or _relation(rows[current], rows[parent]) != "continues":
                keys[current] = _own_key(rows[current], rows.get(parent))
            else:
                current = parent
        key = keys.get(current) or _own_key(rows[name], None)
        keys |= dict.fromkeys(chain, key)
    return keys


def _own_key(row: Row, parent: Row | None) -> str:
    key = row["session_key"]
    is_own = isinstance(key, str) and key and (parent is None or parent["session_key"] != key)
    return key if is_own else f"{row['source']}:{row['id']}"


def _relation(row: Row, parent: Row) -> str:
    """Return how a session belongs to its parent: continues, branch or subagent."""
    config = _config(row)
    if parent["id"] == config.get("_branched_from") or parent["end_reason"] == "branched":
        return "branch"
    if parent["id"] == config.get("_delegate_from"):
        return "subagent"
    if parent["end_reason"] == "compression" or config.get("_reset_from"):
        return "continues"
    is_reset = parent["end_reason"] in RESETS and row["session_key"] and row["session_key"] == parent["session_key"]
    return "continues" if is_reset else "subagent"


def _config(row: Row) -> dict[str, Any]:
    value = decoded(row["model_config"], "", ProblemCounts("")) if row["model_config"] else None
    return value if isinstance(value, dict) else {}


def _records(
    store: Store,
    rows: dict[Any, Row],
    keys: dict[Any, str],
    row: Row,
    epoch: int,
    zone: tzinfo,
    counts: ProblemCounts,
) -> list[SessionRecord]:
    name = row["id"]
    found = read_rows(name, store.rows("messages", MESSAGE, where={"session_id": name}, order="id"), counts, zone)
    if not found.entries and not found.summaries:
        return []
    parent = rows.get(row["parent_session_id"])
    relation = _relation(row, parent) if parent else ""
    parent_key = keys[parent["id"]] if parent else ""
    said = next((entry.content for entry in found.entries if entry.role == "user" and not entry.is_injected), "")
    return [
        SessionRecord(
            key=keys[name],
            entries=found.entries,
            summaries=found.summaries,
            title=title_of(short_text(row["title"] or row["display_name"] or said, 1000)),
            created_at=read_epoch(row["started_at"])[0],
            updated_at=read_epoch(row["last_activity_at"])[0],
            epoch=epoch,
            is_by_id=True,
            parent_key=parent_key if relation == "subagent" else "",
            forked_from=parent_key if relation == "branch" else "",
            extra=without_binary({name: row[name] for name in SESSION if _is_kept(name, row)}),
        )
    ]


def _is_kept(name: str, row: Row) -> bool:
    """Tell whether a column of a session is kept as it is: it has no field of its own, or isn't a valid time."""
    is_odd = name in ("started_at", "last_activity_at") and read_epoch(row[name])[0] is None
    return row[name] is not None and (name not in IN_FIELDS or is_odd)
