"""What OpenCode's database and its older files have in common: sessions, and the projects that they belong to."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from datetime import tzinfo
from typing import Any

from memoryhub.lib.layouts.agent_entries import short_text
from memoryhub.lib.layouts.jsonl import title_of, without_binary
from memoryhub.lib.layouts.opencode.messages import Message, read_messages, undone
from memoryhub.lib.layouts.problem_counts import ProblemCounts
from memoryhub.lib.layouts.records import Project, SessionRecord
from memoryhub.lib.layouts.times import read_epoch

SESSION = (
    "id",
    "project_id",
    "parent_id",
    "slug",
    "directory",
    "title",
    "version",
    "share_url",
    "metadata",
    "cost",
    "revert",
    "agent",
    "model",
    "time_created",
    "time_updated",
    "time_archived",
)
KEPT = ("slug", "directory", "version", "share_url", "metadata", "cost", "agent", "model", "time_archived")
GLOBAL = "global"  # the project of folders outside repositories
_UNTITLED = re.compile(r"(?:New session|Child session) - \d{4}-")


def project_path(row: dict[str, Any], worktrees: dict[str, str]) -> str:
    """Return the folder that a session belongs to: its project's, or its own outside repositories."""
    worktree = worktrees.get(str(row.get("project_id")), "")
    if row.get("project_id") != GLOBAL and worktree.strip("/"):
        return worktree
    return short_text(row.get("directory"), 4096) or worktree


def grouped(rows: Iterable[dict[str, Any]], worktrees: dict[str, str], byte_count: int) -> list[Project]:
    """Return the projects of sessions. ``byte_count``: of all sessions; each project's share is an estimate."""
    found: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        found.setdefault(project_path(row, worktrees), []).append(row)
    count = sum(map(len, found.values()))
    return [
        Project(
            name=path,
            label=path.rstrip("/").rpartition("/")[2] or path or GLOBAL,
            path=path,
            session_count=len(own),
            byte_count=byte_count * len(own) // count,
            last_active=max((at for row in own if (at := read_epoch(row.get("time_updated"))[0])), default=None),
        )
        for path, own in sorted(found.items())
    ]


def session_record(
    row: dict[str, Any], messages: list[Message], parent_call: str, counts: ProblemCounts, zone: tzinfo
) -> SessionRecord | None:
    """Return a session; None if nothing was said in it. ``row``: with the names of the database's columns."""
    found = read_messages(messages, undone(row.get("revert")), counts, zone)
    if not found.entries and not found.summaries:
        return None
    title = row.get("title")
    if not isinstance(title, str) or not title.strip() or _UNTITLED.match(title):
        title = next((entry.content for entry in found.entries if entry.role == "user" and not entry.is_injected), "")
    parent = row.get("parent_id")
    return SessionRecord(
        key=f"opencode:{row['id']}",
        entries=found.entries,
        summaries=found.summaries,
        title=title_of(unquoted(title)),
        created_at=read_epoch(row.get("time_created"))[0],
        updated_at=read_epoch(row.get("time_updated"))[0],
        is_by_id=True,
        parent_key=f"opencode:{parent}" if isinstance(parent, str) and parent else "",
        parent_call_id=parent_call,
        extra=without_binary({name: row[name] for name in KEPT if row.get(name) is not None}),
    )


def unquoted(text: str) -> str:
    """Return a prompt as typed: ``opencode run`` stores it as a JSON string."""
    if text.startswith('"') and text.endswith('"'):
        try:
            value = json.loads(text)
        except ValueError:
            return text
        return value if isinstance(value, str) and value.isprintable() else text
    return text
