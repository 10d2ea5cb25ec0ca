"""Short functions that create searchable rows and search them."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import count
from typing import Any

from knowledge_app.models import HistoryEntry, KnowledgeEntry, Observation
from memoryhub.lib.search.query import Query, parse
from memoryhub.search import Scope, SearchResults, find
from memoryhub.search.listing import newest
from memoryhub.search.ranking import RankOptions
from memoryhub.search.results import text_of
from sessions_app.models import Entry, Workspace
from tests.hub import NOW, add, open_at

_NUMBERS = count(1)


def say(workspace: Workspace, *contents: str, key: str = "", **values: Any) -> list[Entry]:
    """Add messages, each in its own session so that neighbours don't affect scores, or in the session ``key``."""
    last = Entry.objects.order_by("-pk").values_list("pk", flat=True).first() or 0
    for content in contents:
        add(open_at(workspace, key or f"cli:{next(_NUMBERS)}"), [{"role": "user", "content": content} | values])
    return list(Entry.objects.filter(pk__gt=last).order_by("pk"))


def as_agent(workspace: Workspace) -> Scope:
    """Return the scope of an agent's searches."""
    return Scope((workspace.pk,), for_agent=True)


def know(workspace: Workspace, content: str, **values: Any) -> KnowledgeEntry:
    given = {"content_id": f"k{next(_NUMBERS)}", "category": "learned_fact", "created_at": NOW} | values
    return KnowledgeEntry.objects.create(workspace=workspace, content=content, **given)


def observe(workspace: Workspace, content: str, **values: Any) -> Observation:
    given = {"uid": f"o{next(_NUMBERS)}", "category": "finding", "occurred_at": NOW} | values
    return Observation.objects.create(workspace=workspace, content=content, **given)


def log(workspace: Workspace, content: str, **values: Any) -> HistoryEntry:
    given = {"position": next(_NUMBERS), "source_hash": "x", "occurred_at": NOW} | values
    return HistoryEntry.objects.create(workspace=workspace, content=content, **given)


def scope_of(*workspaces: Workspace) -> Scope:
    return Scope(tuple(workspace.pk for workspace in workspaces) or None)


def asked(text: str, *, match_all: bool = False, prefix: bool = False) -> Query:
    return parse(text, now=NOW, match_all=match_all, prefix=prefix)


def search(
    text: str, *workspaces: Workspace, kinds: Iterable[str] = (), options: RankOptions | None = None, **parsing: Any
) -> SearchResults:
    """Return the results of a query in some workspaces (default: all)."""
    return find(scope_of(*workspaces), asked(text, **parsing), now=NOW, kinds=kinds, options=options, limit=200)


def texts(text: str, *workspaces: Workspace, kinds: Iterable[str] = (), **options: Any) -> list[str]:
    """Return the texts of a query's results, best first."""
    return [text_of(hit.kind, hit.row) for hit in search(text, *workspaces, kinds=kinds, **options).hits]


def latest(text: str, *workspaces: Workspace, kinds: Iterable[str] = ()) -> list[str]:
    """Return the texts of a query's matches, newest first."""
    rows, _ = newest(scope_of(*workspaces), asked(text), kinds=kinds, limit=200)
    return [text_of(one.kind, one.row) for one in rows]
