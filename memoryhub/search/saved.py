"""Searches that people come back to: saved ones, their own and shared, with what is new; and the last ones."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import Max, Q, QuerySet
from django.utils.translation import gettext

from memoryhub.lib.errors import MemoryHubError
from memoryhub.lib.search.query import parse
from memoryhub.models import RecentSearch, SavedSearch
from memoryhub.search.filters import Scope
from memoryhub.search.kinds import KINDS
from memoryhub.search.listing import ResultCounts, count_matches
from sessions_app.models import Workspace

MAX_SAVED = 100  # of one person
KEPT_RECENT = 20  # of one person


class SearchNotSaved(MemoryHubError):
    """The search has no name, the name is taken, or there are too many."""

    code = "search_not_saved"


def searches_for(user: User, workspace: Workspace | None) -> QuerySet[SavedSearch]:
    """Return the saved searches that a person may use at a place: their own, and those shared in the workspace."""
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
    """Save a search under a name, in the place of an earlier one of that name. Raises SearchNotSaved."""
    clean = " ".join(name.split())[:100]
    if not clean:
        raise SearchNotSaved(gettext("Give the search a name."))
    kept = SavedSearch.objects.filter(user=user)
    if kept.count() >= MAX_SAVED and not kept.filter(workspace=workspace, name=clean).exists():
        raise SearchNotSaved(gettext("You have %(count)s saved searches: delete one first.") % {"count": MAX_SAVED})
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
    """Remember that its owner has seen what there is by now."""
    SavedSearch.objects.filter(pk=saved.pk).update(seen=latest_keys(_scope(saved.workspace)), seen_at=now)


def count_new(saved: SavedSearch, scope: Scope, now: datetime) -> ResultCounts:
    """Count what fits a saved search and came after its owner last looked."""
    query = parse(saved.query, now=now, match_all=saved.params.get("match") == "all")
    kinds = [kind for kind in KINDS if kind == saved.params.get("kind")]
    return count_matches(scope, query, kinds=kinds, above={kind: saved.seen.get(kind, 0) for kind in KINDS})


def latest_keys(scope: Scope) -> dict[str, int]:
    """Return by kind the highest key of the rows of a scope, 0 where there are none."""
    workspaces = None if scope.workspaces is None else list(scope.workspaces)
    return {name: kind.rows(workspaces).aggregate(last=Max("pk"))["last"] or 0 for name, kind in KINDS.items()}


def _scope(workspace: Workspace | None) -> Scope:
    return Scope(None if workspace is None else (workspace.pk,))


@transaction.atomic
def record_search(user: User, workspace: Workspace | None, query: str, now: datetime) -> None:
    """Keep a query among the last 20 of a person; the same one moves up, and so does one that was typed on."""
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
    """Return the last queries of a person at a place, the latest first."""
    rows = RecentSearch.objects.filter(user=user, workspace=workspace).order_by("-searched_at", "-id")
    return list(rows.values_list("query", flat=True))


def clear_recent(user: User, workspace: Workspace | None) -> None:
    """Forget the last queries of a person at a place."""
    RecentSearch.objects.filter(user=user, workspace=workspace).delete()
