"""The navigation that every page shows: the person's workspaces and the parts of the current one."""

from __future__ import annotations

from datetime import datetime
from typing import Any
from urllib.parse import urlsplit

from django.db.models import IntegerField, Model, QuerySet
from django.db.models.expressions import RawSQL
from django.http import HttpRequest
from django.urls import Resolver404, resolve, reverse
from django.utils.translation import gettext, gettext_noop

from knowledge_app.models import (
    CachedResponse,
    Concern,
    HeldChange,
    HeldRow,
    HistoryEntry,
    KeyValue,
    KnowledgeEntry,
    MemoryDocument,
    Observation,
    Term,
)
from knowledge_app.services.held_rows import LINKS
from memoryhub.backups.create import hub_version
from memoryhub.jobs.listing import live_count
from memoryhub.permissions import has_role, is_hub_operator
from sessions_app.models import Membership, Run, Session, Workspace
from sessions_app.models.runs import UNSETTLED_STATUSES

PARTS = [  # label, url name, icon, count
    (gettext_noop("Overview"), "workspace", "overview", None),
    (gettext_noop("Review"), "review", "inbox", "held_total"),
    (gettext_noop("Search"), "search", "search", None),
    (gettext_noop("Sessions"), "sessions:list", "sessions", "session_total"),
    (gettext_noop("Memory"), "documents:documents", "memory", "document_total"),
    (gettext_noop("History"), "documents:history", "history", "history_total"),
    (gettext_noop("Knowledge"), "knowledge:knowledge", "knowledge", "knowledge_total"),
    (gettext_noop("Observations"), "knowledge:observations", "observations", "observation_total"),
    (gettext_noop("Key-values"), "knowledge:key-values", "keyvalues", "key_value_total"),
    (gettext_noop("Terms"), "terms", "terms", "term_total"),
    (gettext_noop("Cached responses"), "knowledge:cached-responses", "cache", "cached_total"),
    (gettext_noop("Hygiene"), "hygiene", "hygiene", "concern_total"),
    (gettext_noop("Runs"), "runs", "fold", "live_total"),
    (gettext_noop("Activity"), "activity", "clock", None),
    (gettext_noop("Past"), "past", "restart", None),
    (gettext_noop("Access log"), "access", "user", None),
    (gettext_noop("Statistics"), "sessions:statistics", "statistics", None),
    (gettext_noop("Imports"), "workspace-imports", "imports", None),
    (gettext_noop("Sync"), "sync", "restart", None),
    (gettext_noop("Connect"), "connect", "link", None),
]
FOR_OPERATORS = [
    (gettext_noop("Forget"), "forget", "forget", None),
    (gettext_noop("People"), "workspace-people", "user", None),
    (gettext_noop("Settings"), "workspace-settings", "settings", None),
]
PART_OF = {  # subpages
    "sessions:detail": "sessions:list",
    "sessions:session-statistics": "sessions:list",
    "session-context": "sessions:list",
    "compress-session": "sessions:list",
    "compress-due": "runs",
    "job": "runs",
    "delete-session": "sessions:list",
    "delete-sessions": "sessions:list",
    "new-session": "sessions:list",
    "run": "runs",
    "compare-past": "past",
    "webhooks": "workspace-settings",
    "workspace-invite": "workspace-people",
    "agents": "connect",
    "new-token": "connect",
    "revoke-token": "connect",
    "import-report": "workspace-imports",
    "workspace-files": "workspace-imports",
    "export-workspace": "workspace-imports",
    "documents:document": "documents:documents",
    "documents:edit-document": "documents:documents",
    "documents:compare": "documents:documents",
    "documents:compact": "documents:documents",
    "documents:learnt": "sessions:list",
    "documents:edit-fact": "documents:documents",
    "documents:blame": "documents:documents",
    "documents:facts": "documents:documents",
    "documents:fact": "documents:documents",
    "held-change": "review",
    "knowledge:new-key-value": "knowledge:key-values",
    "knowledge:new-observation": "knowledge:observations",
    "knowledge:offered": "knowledge:observations",
    "knowledge:observation": "knowledge:observations",
    "saved-searches": "search",
    "recall": "knowledge:observations",
    "knowledge:new-knowledge": "knowledge:knowledge",
    "knowledge:merge-knowledge": "knowledge:knowledge",
    "knowledge:knowledge-context": "knowledge:knowledge",
    "knowledge:knowledge-entry": "knowledge:knowledge",
    "knowledge:key-value": "knowledge:key-values",
    "term": "terms",
    "relate-terms": "terms",
    "knowledge:cached-response": "knowledge:cached-responses",
}


COUNTED: dict[str, tuple[type[Model], str, tuple[str, ...]]] = {  # model, SQL condition and its parameters
    "session_total": (Session, "AND archived_at IS NULL", ()),
    "document_total": (MemoryDocument, "", ()),
    "history_total": (HistoryEntry, "", ()),
    "knowledge_total": (KnowledgeEntry, "AND withdrawn_at IS NULL", ()),
    "observation_total": (Observation, "AND withdrawn_at IS NULL", ()),
    "key_value_total": (KeyValue, "AND withdrawn_at IS NULL", ()),
    "term_total": (Term, "", ()),
    "cached_total": (CachedResponse, "", ()),
    "concern_total": (Concern, "AND status = %s", (Concern.Status.OPEN,)),
    "live_total": (Run, f"AND status IN ({', '.join(['%s'] * len(UNSETTLED_STATUSES))})", tuple(UNSETTLED_STATUSES)),
    "held_total": (HeldChange, "AND status = %s", (HeldChange.Status.PENDING,)),
    "held_row_total": (
        HeldRow,
        " ".join(
            f"AND NOT EXISTS (SELECT 1 FROM {model._meta.db_table} held WHERE held.withdrawn_at IS NOT NULL"  # noqa: S608
            f" AND held.id = {HeldRow._meta.db_table}.{link}_id)"
            for model, link in LINKS.items()
        ),
        (),
    ),
}


LETTERS = {  # keys after g, the same in every language: a letter of the English name if one was free
    "workspace": "o",
    "review": "r",
    "search": "/",
    "sessions:list": "s",
    "documents:documents": "m",
    "documents:history": "h",
    "knowledge:knowledge": "k",
    "knowledge:observations": "b",
    "knowledge:key-values": "v",
    "terms": "t",
    "knowledge:cached-responses": "c",
    "hygiene": "x",
    "runs": "u",
    "activity": "a",
    "past": "p",
    "access": "l",
    "sessions:statistics": "d",
    "workspace-imports": "i",
    "sync": "y",
    "connect": "n",
    "forget": "f",
    "workspace-people": "e",
    "workspace-settings": "w",
}


def navigation(request: HttpRequest) -> dict[str, Any]:
    """Context processor: ``nav`` for base.html, None for anonymous users. Five queries at most."""
    if not request.user.is_authenticated:
        return {"nav": None}
    current: Workspace | None = getattr(request, "memory_workspace", None)
    workspaces = [
        {"name": name, "slug": slug, "url": reverse("workspace", args=[slug])}
        for name, slug in Workspace.objects.visible_to(request.user)
        .order_by("name", "id")
        .values_list("name", "slug")[:100]
    ]
    items = _items(request, current) if current else []
    search_url = reverse("search", args=[current.slug]) if current else reverse("hub-search")
    nav: dict[str, Any] = {"workspace": current, "workspaces": workspaces, "items": items, "search_url": search_url}
    is_operator = is_hub_operator(request.user)
    nav["work_count"] = live_count(Workspace.objects.visible_to(request.user), of_hub=is_operator)
    nav["version"] = hub_version()
    return {"nav": nav | _live(request, current)}


def _live(request: HttpRequest, current: Workspace | None) -> dict[str, Any]:
    """Return the URL that an open page polls for changes, and the last audit record it knows; "" on static pages."""
    newest: int | None = getattr(request, "newest_record", None)
    if newest is None:
        return {"changes_url": "", "after": 0}
    url = reverse("changes", args=[current.slug]) if current else reverse("hub-changes")
    return {"changes_url": url, "after": newest}


def _items(request: HttpRequest, workspace: Workspace) -> list[dict[str, Any]]:
    counts = count_parts(Workspace.objects.filter(pk=workspace.pk))[workspace.pk]
    here = _current_page(request)
    part = PART_OF.get(here, here)
    may_configure = has_role(request.user, workspace, Membership.Role.OPERATOR)
    return [
        {
            "label": gettext(label),
            "url": reverse(name, args=[workspace.slug]),
            "icon": icon,
            "count": counts[count] if count else None,
            "oldest": _oldest_held(workspace) if name == "review" and counts["held_total"] else None,
            "current": part == name,
            "key": LETTERS[name],
        }
        for label, name, icon, count in PARTS + (FOR_OPERATORS if may_configure else [])
    ]


def _current_page(request: HttpRequest) -> str:
    """Return the URL name of the page, or of the page that requests its navigation again."""
    here = request.resolver_match.view_name if request.resolver_match else ""
    requesting_page: str | None = request.htmx.current_url_abs_path if here == "live-navigation" else None  # type: ignore[attr-defined]
    if not requesting_page:
        return here
    try:
        return resolve(urlsplit(requesting_page).path).view_name
    except Resolver404:
        return ""


def _oldest_held(workspace: Workspace) -> datetime | None:
    changes = HeldChange.objects.filter(workspace=workspace, status=HeldChange.Status.PENDING)
    rows = HeldRow.objects.filter(workspace=workspace).waiting()
    oldest = [held.order_by("id").values_list("created_at", flat=True).first() for held in (changes, rows)]
    return min((at for at in oldest if at), default=None)


def count_parts(workspaces: QuerySet[Workspace]) -> dict[int, dict[str, int]]:
    """Count the rows of each part, in one query: by workspace primary key, then by part.

    ``held_total`` counts held changes and held rows.

    Written in SQL, because every page runs it and Django takes longer to build eleven subqueries than to run them.
    """
    rows = workspaces.order_by().values_list("pk", *[_count(*counted) for counted in COUNTED.values()])
    found = {pk: dict(zip(COUNTED, counts, strict=True)) for pk, *counts in rows}
    return {
        pk: counts | {"held_total": counts["held_total"] + counts["held_row_total"]} for pk, counts in found.items()
    }


def _count(model: type[Model], condition: str, values: tuple[str, ...]) -> RawSQL:
    table = model._meta.db_table
    of_workspace = f"{table}.workspace_id = {Workspace._meta.db_table}.id"
    return RawSQL(f"SELECT count(*) FROM {table} WHERE {of_workspace} {condition}", values, IntegerField())  # noqa: S608, S611
