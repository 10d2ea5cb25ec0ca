"""Saved searches (own and shared, with counts of new matches) and recent searches."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import Max, Q, QuerySet
from django.utils.translation import gettext

from memoryhub.lib.errors import Invalid
from memoryhub.lib.search.query import parse
from memoryhub.models import RecentSearch, SavedSearch
from memoryhub.search.filters import Scope
from memoryhub.search.kinds import KINDS
from memoryhub.search.listing import ResultCounts, count_matches
from sessions_app.models import Workspace

MAX_SAVED = 100  # of one person
KEPT_RECENT = 20  # of one person


def searches_for(user: User, workspace: Workspace | None) -> QuerySet[SavedSearch]:
    """Return the saved searches that a user can open in a workspace (None: the hub): their own and shared ones."""
    condition = Q(user=user, workspace=workspace)
    if workspace is not None:
        condition |= Q(is_shared=True, workspace=workspace)
    return SavedSearch.objects.filter(condition).select_related("user").order_by("name", "id")


@transaction.atomic
def save_search(
    user: User,
    workspace: Workspace | None,
    *,
    name: str,
    query: str,
    params: Mapping[str, str],
    is_shared: bool,
    now: datetime,
) -> SavedSearch:
    """Save a search, replacing one of the same name. Raises Invalid."""
    clean = " ".join(name.split())[:100]
    if not clean:
        raise Invalid(gettext("Give the search a name."), code="search_not_saved")
    kept = SavedSearch.objects.filter(user=user)
    if kept.count() >= MAX_SAVED and not kept.filter(workspace=workspace, name=clean).exists():
        raise Invalid(
            gettext("You have %(count)s saved searches: delete one first.") % {"count": MAX_SAVED},
            code="search_not_saved",
        )
    saved, _ = SavedSearch.objects.update_or_create(
        user=user,
        workspace=workspace,
        name=clean,
        defaults={
            "query": query[:512],
            "params": dict(params),
            "is_shared": is_shared and workspace is not None,
            "seen": latest_keys(_scope(workspace)),
            "seen_at": now,
        },
    )
    return saved


def record_visit(saved: SavedSearch, now: datetime) -> None:
    """Mark all current matches of a saved search as seen by its owner."""
    SavedSearch.objects.filter(pk=saved.pk).update(seen=latest_keys(_scope(saved.workspace)), seen_at=now)


def count_new(saved: SavedSearch, scope: Scope, now: datetime) -> ResultCounts:
    """Count the matches that are new since the owner last opened a saved search."""
    query = parse(saved.query, now=now, match_all=saved.params.get("match") == "all")
    kinds = [kind for kind in KINDS if kind == saved.params.get("kind")]
    scope = replace(scope, own_sessions=saved.params.get("own") == "1")
    return count_matches(scope, query, kinds=kinds, above={kind: saved.seen.get(kind, 0) for kind in KINDS})


def latest_keys(scope: Scope) -> dict[str, int]:
    """Return the highest primary key of each kind in a scope, or 0."""
    workspaces = None if scope.workspaces is None else list(scope.workspaces)
    return {name: kind.rows(workspaces).aggregate(last=Max("pk"))["last"] or 0 for name, kind in KINDS.items()}


def _scope(workspace: Workspace | None) -> Scope:
    return Scope(None if workspace is None else (workspace.pk,))


@transaction.atomic
def record_search(user: User, workspace: Workspace | None, query: str, now: datetime) -> None:
    """Add a query to the user's 20 recent searches; it replaces a repeat and a shorter version just typed."""
    text = query.strip()[:512]
    if not text:
        return
    mine = RecentSearch.objects.filter(user=user, workspace=workspace)
    latest = mine.order_by("-searched_at", "-id").first()
    if latest and text.startswith(latest.query) and (now - latest.searched_at).total_seconds() < 30:
        latest.delete()
    mine.filter(query=text).delete()
    RecentSearch.objects.create(user=user, workspace=workspace, query=text, searched_at=now)
    kept = RecentSearch.objects.filter(user=user).order_by("-searched_at", "-id").values("pk")[:KEPT_RECENT]
    RecentSearch.objects.filter(user=user).exclude(pk__in=list(kept.values_list("pk", flat=True))).delete()


def recent_searches(user: User, workspace: Workspace | None) -> list[str]:
    """Return the user's recent searches in a workspace (None: the hub), latest first."""
    rows = RecentSearch.objects.filter(user=user, workspace=workspace).order_by("-searched_at", "-id")
    return list(rows.values_list("query", flat=True))


def clear_recent(user: User, workspace: Workspace | None) -> None:
    """Delete the user's recent searches in a workspace (None: the hub)."""
    RecentSearch.objects.filter(user=user, workspace=workspace).delete()
