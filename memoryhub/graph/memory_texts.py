"""The texts of a workspace's memory from which its graph is made, and the nodes that each belongs to.

Withdrawn, held and removed rows, secret values and the agent's own sessions are left out; secrets are masked.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from django.db.models import QuerySet, TextField
from django.db.models.functions import Substr

from knowledge_app.models import Fact, FactSource, HistoryEntry, KeyValue, KnowledgeEntry, Observation
from memoryhub.lib.masked_text import masked
from memoryhub.lib.search.tokenizing import fold
from memoryhub.lib.secrets import looks_secret
from memoryhub.lib.text.forgotten import without_mark
from sessions_app.models import Entry, Session, Summary, Workspace
from sessions_app.querysets import of_own_sessions

MOST_SESSIONS = 5_000
MOST_ROWS = 2_500  # newest rows of each other table: more take many seconds and hardly change a graph of 2,000 nodes
MOST_MESSAGES = 4_000
MOST_CHARS = 600  # of each text
FACT, KNOWLEDGE, HISTORY, SUMMARY, SAID, ANSWERED = 3.0, 3.0, 2.0, 2.0, 1.0, 0.5  # weights
_MAY_HOLD_SECRET = re.compile(r"[^\s]{16}|://|passw|passphrase|pwd|secret|credential|token|key", re.IGNORECASE)
_PROJECT_SOURCE = re.compile(r"(?:GOAL|PROJECT|REPO|EPIC|TASK):\s*(\S.{0,80})", re.IGNORECASE)


@dataclass(frozen=True)
class Owner:
    """A node that texts belong to: a section, a session, a tag or a project."""

    key: str
    kind: str
    label: str


@dataclass(frozen=True)
class MemoryText:
    """A text, with secrets masked. ``names``: whether names of people and projects are searched in it.

    ``row``: the kind and primary key by which its embedding is stored.
    """

    text: str
    weight: float
    at: datetime | None = None
    section: str = ""
    owners: list[Owner] = field(default_factory=list)
    names: bool = True
    row: tuple[str, int] | None = None


def memory_texts(workspace: Workspace) -> Iterator[MemoryText]:
    """Yield the texts of a workspace's memory, always in the same order. Ten queries."""
    sessions = _sessions(workspace)
    yield from _facts(workspace, sessions)
    yield from _knowledge(workspace)
    yield from _observations(workspace)
    yield from _key_values(workspace)
    yield from _history(workspace, sessions)
    yield from _messages(workspace, sessions)


def tag_owner(name: str) -> Owner:
    """Return the node of a category or tag. Categories that the hub knows get their label when they are shown."""
    return Owner(f"tag:{fold(name)[:80]}", "tag", name[:80])


def project_of(source: str) -> str:
    """Return the project that a source such as GOAL:dome-incident names, or ""."""
    found = _PROJECT_SOURCE.fullmatch(source.strip())
    return found[1] if found else ""


def project_owner(name: str) -> Owner:
    return Owner(f"project:{fold(name)}", "project", name)


def section_owner(document: int, document_name: str, section: str) -> Owner:
    title = safe_text(section)[:200]
    return Owner(f"section:{document}:{title}", "section", (title or document_name)[:80])


def key_words(key: str) -> str:
    """Return the words of a key such as on_call.weekend."""
    return " ".join(re.split(r"[\W_]+", key))


def safe_text(text: str) -> str:
    """Return a text with secrets masked, without marks of erased text. Most texts can't contain a secret, and aren't
    scanned."""
    text = without_mark(text)
    return masked(text) if _MAY_HOLD_SECRET.search(text) else text


def _cut(rows: QuerySet[Any], column: str = "content") -> QuerySet[Any]:
    """Annotate rows with the beginning of their text, longer than what is used so that no secret is cut."""
    beginning: Any = Substr(column, 1, MOST_CHARS * 2, output_field=TextField())
    cut: QuerySet[Any] = rows.annotate(beginning=beginning).order_by("-pk")
    return cut


def _sessions(workspace: Workspace) -> dict[int, Owner]:
    rows = Session.objects.filter(workspace=workspace, archived_at=None).exclude(of_own_sessions())
    found = rows.only("title", "key").order_by("-updated_at", "-pk")[:MOST_SESSIONS]
    return {row.pk: Owner(f"session:{row.pk}", "session", str(row)[:80]) for row in found}


def _facts(workspace: Workspace, sessions: dict[int, Owner]) -> Iterator[MemoryText]:
    origins: dict[int, dict[int, datetime | None]] = {}
    of_facts = FactSource.objects.filter(fact__workspace=workspace, fact__died=None, entry__isnull=False)
    for fact, session, at in of_facts.order_by("pk").values_list("fact", "entry__session", "entry__occurred_at"):
        origins.setdefault(fact, {}).setdefault(session, at)
    rows = Fact.objects.filter(workspace=workspace, died=None).order_by("-pk")
    columns = ("pk", "text", "section", "category", "document", "document__name", "born__created_at")
    for pk, text, section, category, document, name, born in rows.values_list(*columns)[:MOST_ROWS]:
        times = [at for at in origins.get(pk, {}).values() if at]
        owners = [section_owner(document, name, section)]
        owners += [tag_owner(safe_text(category))] if category else []
        owners += [sessions[session] for session in list(origins.get(pk, ()))[:3] if session in sessions]
        yield MemoryText(
            safe_text(text)[:MOST_CHARS], FACT, min(times, default=born), section, owners, row=("memory", pk)
        )


def _knowledge(workspace: Workspace) -> Iterator[MemoryText]:
    rows = KnowledgeEntry.objects.filter(workspace=workspace, withdrawn_at=None, hold=None)
    columns = ("beginning", "category", "tags", "source", "created_at", "updated_at", "pk")
    for text, category, tags, source, created, updated, pk in _cut(rows).values_list(*columns)[:MOST_ROWS]:
        owners = [tag_owner(category), *(tag_owner(safe_text(str(tag))) for tag in tags if str(tag).strip())]
        project = project_of(safe_text(source))
        owners += [project_owner(project)] if project else []
        yield MemoryText(
            safe_text(text)[:MOST_CHARS], KNOWLEDGE, created or updated, owners=owners, row=("knowledge", pk)
        )


def _observations(workspace: Workspace) -> Iterator[MemoryText]:
    rows = Observation.objects.filter(workspace=workspace, withdrawn_at=None, hold=None)
    columns = ("beginning", "category", "source", "occurred_at", "recorded_at", "pk")
    for text, category, source, occurred, recorded, pk in _cut(rows).values_list(*columns)[:MOST_ROWS]:
        project = project_of(safe_text(source))
        owners = [tag_owner(category), *([project_owner(project)] if project else [])]
        yield MemoryText(
            safe_text(text)[:MOST_CHARS], KNOWLEDGE, occurred or recorded, owners=owners, row=("observation", pk)
        )


def _key_values(workspace: Workspace) -> Iterator[MemoryText]:
    rows = KeyValue.objects.filter(workspace=workspace, withdrawn_at=None, hold=None, is_secret=False)
    for key, value, at in _cut(rows, "value").values_list("key", "beginning", "updated_at")[:MOST_ROWS]:
        if looks_secret(key, value):
            continue
        yield MemoryText(f"{key_words(safe_text(key))}: {safe_text(value)[:MOST_CHARS]}", KNOWLEDGE, at)


def _history(workspace: Workspace, sessions: dict[int, Owner]) -> Iterator[MemoryText]:
    rows = HistoryEntry.objects.filter(workspace=workspace, withdrawn_at=None, hold=None)
    columns = ("beginning", "session", "occurred_at", "recorded_at", "pk")
    for text, session, occurred, recorded, pk in _cut(rows).values_list(*columns)[:MOST_ROWS]:
        owners = [sessions[session]] if session in sessions else []
        yield MemoryText(
            safe_text(text)[:MOST_CHARS], HISTORY, occurred or recorded, owners=owners, row=("history", pk)
        )
    summaries = Summary.objects.filter(workspace=workspace, session__in=list(sessions))
    of_summary = ("beginning", "session", "ends_at", "created_at")
    for text, session, ended, created in _cut(summaries).values_list(*of_summary)[:MOST_ROWS]:
        yield MemoryText(safe_text(text)[:MOST_CHARS], SUMMARY, ended or created, owners=[sessions[session]])


def _messages(workspace: Workspace, sessions: dict[int, Owner]) -> Iterator[MemoryText]:
    rows = Entry.objects.in_conversation().filter(
        workspace=workspace, kind=Entry.Kind.MESSAGE, role__in=("user", "assistant")
    )
    columns = ("beginning", "session", "role", "occurred_at", "recorded_at", "pk")
    for text, session, role, occurred, recorded, pk in _cut(rows).values_list(*columns)[:MOST_MESSAGES]:
        if session in sessions and text.strip():
            is_said = role == "user"
            weight, owners = SAID if is_said else ANSWERED, [sessions[session]]
            at, row = occurred or recorded, ("entry", pk)
            yield MemoryText(safe_text(text)[:MOST_CHARS], weight, at, owners=owners, names=is_said, row=row)
