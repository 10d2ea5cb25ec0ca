"""The navigation that every page shows: the person's workspaces and the parts of the current one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.db.models import Model, QuerySet
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
from memoryhub.demo.building import is_demo_offered
from memoryhub.inbox.queue import count_waiting
from memoryhub.jobs.listing import live_count
from memoryhub.lib.database.fixed_sql import keys_sql, planned_cursor
from memoryhub.live.streams import PATH, open_streams
from memoryhub.permissions import has_role, is_hub_operator
from sessions_app.models import Membership, Run, Session, Workspace
from sessions_app.models.runs import UNSETTLED_STATUSES


@dataclass(frozen=True)
class Tab:
    """One page of a section. ``count``: the rows that it lists; the tab is in a menu while there are none."""

    label: str
    url_name: str
    icon: str
    count: str = ""
    operators_only: bool = False


@dataclass(frozen=True)
class Section:
    """One entry of the navigation: it opens the first of its pages that the person may see."""

    label: str
    icon: str
    key: str  # after g, the same in every language: a letter of the English label
    tabs: tuple[Tab, ...]


OVERVIEW = Tab(gettext_noop("Overview"), "workspace", "overview")
OVERVIEW_KEY = "o"
SECTIONS = (
    Section(
        gettext_noop("Inbox"),
        "inbox",
        "i",
        (
            Tab(gettext_noop("Queue"), "inbox", "inbox"),
            Tab(gettext_noop("Findings"), "hygiene", "hygiene"),
            Tab(gettext_noop("Decided"), "decided-changes", "inbox"),
        ),
    ),
    Section(
        gettext_noop("Memory"),
        "memory",
        "m",
        (
            Tab(gettext_noop("All"), "memory", "memory"),
            Tab(gettext_noop("Knowledge"), "knowledge:knowledge", "knowledge", "knowledge_total"),
            Tab(gettext_noop("Observations"), "knowledge:observations", "observations", "observation_total"),
            Tab(gettext_noop("Key-values"), "knowledge:key-values", "keyvalues", "key_value_total"),
            Tab(gettext_noop("History"), "documents:history", "history", "history_total"),
            Tab(gettext_noop("Cached responses"), "knowledge:cached-responses", "cache", "cached_total"),
        ),
    ),
    Section(
        gettext_noop("Conversations"),
        "sessions",
        "c",
        (Tab(gettext_noop("Conversations"), "sessions:list", "sessions"),),
    ),
    Section(
        gettext_noop("Search"),
        "search",
        "s",
        (
            Tab(gettext_noop("Search"), "search", "search"),
            Tab(gettext_noop("Saved searches"), "saved-searches", "search"),
        ),
    ),
    Section(
        gettext_noop("Insights"),
        "statistics",
        "n",
        (
            Tab(gettext_noop("Charts"), "sessions:statistics", "statistics"),
            Tab(gettext_noop("Graph"), "graph", "graph"),
            Tab(gettext_noop("Terms"), "terms", "terms", "term_total"),
        ),
    ),
    Section(
        gettext_noop("Timeline"),
        "clock",
        "t",
        (
            Tab(gettext_noop("Timeline"), "timeline", "clock"),
            Tab(gettext_noop("Activity"), "activity", "clock"),
            Tab(gettext_noop("Runs"), "runs", "fold"),
            Tab(gettext_noop("Time travel"), "past", "history"),
            Tab(gettext_noop("Access log"), "access", "user"),
        ),
    ),
    Section(
        gettext_noop("Settings"),
        "settings",
        "e",
        (
            Tab(gettext_noop("General"), "workspace-settings", "settings", operators_only=True),
            Tab(gettext_noop("Sync"), "sync", "restart"),
            Tab(gettext_noop("Connect"), "connect", "link"),
            Tab(gettext_noop("Tokens"), "agents", "key", operators_only=True),
            Tab(gettext_noop("Imports"), "workspace-imports", "imports"),
            Tab(gettext_noop("Files"), "workspace-files", "folder"),
            Tab(gettext_noop("Export"), "export-workspace", "download"),
            Tab(gettext_noop("People"), "workspace-people", "user", operators_only=True),
            Tab(gettext_noop("Webhooks"), "webhooks", "link", operators_only=True),
            Tab(gettext_noop("Forget"), "forget", "forget", operators_only=True),
        ),
    ),
)
HUB_TABS = ((gettext_noop("Queue"), "hub-inbox"), (gettext_noop("Decided"), "hub-decided"))
TAB_OF = {  # subpages
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
    "workspace-invite": "workspace-people",
    "new-token": "agents",
    "revoke-token": "agents",
    "import-report": "workspace-imports",
    "documents:document": "memory",
    "documents:edit-document": "memory",
    "documents:compare": "memory",
    "documents:revisions": "memory",
    "documents:compact": "memory",
    "documents:learnt": "sessions:list",
    "documents:edit-fact": "memory",
    "documents:blame": "memory",
    "documents:facts": "memory",
    "documents:fact": "memory",
    "held-change": "inbox",
    "accept-safe": "inbox",
    "review": "inbox",
    "knowledge:new-key-value": "knowledge:key-values",
    "knowledge:new-observation": "knowledge:observations",
    "knowledge:offered": "knowledge:observations",
    "knowledge:observation": "knowledge:observations",
    "recall": "knowledge:observations",
    "knowledge:new-knowledge": "knowledge:knowledge",
    "knowledge:merge-knowledge": "knowledge:knowledge",
    "knowledge:knowledge-context": "knowledge:knowledge",
    "knowledge:knowledge-entry": "knowledge:knowledge",
    "knowledge:key-value": "knowledge:key-values",
    "graph-node": "graph",
    "term": "terms",
    "relate-terms": "terms",
    "knowledge:cached-response": "knowledge:cached-responses",
}


COUNTED: dict[str, tuple[type[Model], str]] = {  # model and SQL condition
    "session_total": (Session, "AND archived_at IS NULL"),
    "document_total": (MemoryDocument, ""),
    "history_total": (HistoryEntry, ""),
    "knowledge_total": (KnowledgeEntry, "AND withdrawn_at IS NULL"),
    "observation_total": (Observation, "AND withdrawn_at IS NULL"),
    "key_value_total": (KeyValue, "AND withdrawn_at IS NULL"),
    "term_total": (Term, ""),
    "cached_total": (CachedResponse, ""),
    "concern_total": (Concern, f"AND status = '{Concern.Status.OPEN}'"),
    "live_total": (Run, f"AND status IN ({', '.join(map(repr, UNSETTLED_STATUSES))})"),
    "held_total": (HeldChange, f"AND status = '{HeldChange.Status.PENDING}'"),
    "held_row_total": (
        HeldRow,
        " ".join(
            f"AND NOT EXISTS (SELECT 1 FROM {model._meta.db_table} held WHERE held.withdrawn_at IS NOT NULL"  # noqa: S608
            f" AND held.id = {HeldRow._meta.db_table}.{link}_id)"
            for model, link in LINKS.items()
        ),
    ),
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
    search_url = reverse("search", args=[current.slug]) if current else reverse("hub-search")
    nav: dict[str, Any] = {"workspace": current, "workspaces": workspaces, "search_url": search_url}
    nav |= _sections(request, current) if current else {"sections": [], "tabs": _hub_tabs(request)}
    is_operator = is_hub_operator(request.user)
    nav["work_count"] = live_count(Workspace.objects.visible_to(request.user), of_hub=is_operator)
    nav["version"] = hub_version()
    nav["offers_demo"] = is_demo_offered  # called only where it is shown
    nav["admin_url"] = reverse("admin:index") if is_operator and settings.MEMORYHUB_ADMIN else ""
    return {"nav": nav | _live(request, current)}


def _live(request: HttpRequest, current: Workspace | None) -> dict[str, Any]:
    """Return the URL that an open page asks for changes, and the last audit record it knows; "" on static pages.

    ``stream_url``: says when to ask, if this process serves streams; else the page polls.
    """
    newest: int | None = getattr(request, "newest_record", None)
    if newest is None:
        return {"changes_url": "", "stream_url": "", "after": 0}
    url = reverse("changes", args=[current.slug]) if current else reverse("hub-changes")
    return {"changes_url": url, "stream_url": PATH if open_streams.is_followed else "", "after": newest}


def _sections(request: HttpRequest, workspace: Workspace) -> dict[str, Any]:
    """Return the workspace's sections, and the tabs of the page's section if the page is one of them."""
    own = Workspace.objects.filter(pk=workspace.pk)
    counts = count_parts(own)[workspace.pk]
    waiting: int | None = getattr(request, "waiting_count", None)  # the inbox has counted them
    waiting = count_waiting(own) if waiting is None else waiting
    here = _current_page(request)
    page = TAB_OF.get(here, here)
    is_operator = has_role(request.user, workspace, Membership.Role.OPERATOR)
    sections, tabs = [], []
    for section in SECTIONS:
        shown = visible_tabs(section, is_operator=is_operator)
        names = [tab.url_name for tab in shown]
        sections.append(
            {
                "label": gettext(section.label),
                "url": reverse(names[0], args=[workspace.slug]),
                "icon": section.icon,
                "key": section.key,
                "current": page in names,
                "waiting": waiting if section is SECTIONS[0] else 0,
            }
        )
        if here in names and len(names) > 1:
            tabs = [_tab(tab, here, counts, workspace) for tab in shown]
    overview = {
        "label": gettext(OVERVIEW.label),
        "url": reverse(OVERVIEW.url_name, args=[workspace.slug]),
        "icon": OVERVIEW.icon,
        "key": OVERVIEW_KEY,
        "current": here == OVERVIEW.url_name,
    }
    return {
        "overview": overview,
        "sections": sections,
        "tabs": [tab for tab in tabs if not tab["is_empty"]],
        "empty_tabs": [tab for tab in tabs if tab["is_empty"]],
    }


def _hub_tabs(request: HttpRequest) -> list[dict[str, Any]]:
    """Return the tabs of the inbox of all workspaces if the page is one of them."""
    here = _current_page(request)
    tabs = [
        {"label": gettext(label), "url": reverse(name), "current": name == here, "count": None}
        for label, name in HUB_TABS
    ]
    return tabs if any(tab["current"] for tab in tabs) else []


def visible_tabs(section: Section, *, is_operator: bool) -> list[Tab]:
    """Return the tabs of a section that a person sees."""
    return [tab for tab in section.tabs if is_operator or not tab.operators_only]


def _tab(tab: Tab, here: str, counts: dict[str, int], workspace: Workspace) -> dict[str, Any]:
    is_current = tab.url_name == here
    return {
        "label": gettext(tab.label),
        "url": reverse(tab.url_name, args=[workspace.slug]),
        "current": is_current,
        "count": counts[tab.count] if tab.count else None,
        "is_empty": bool(tab.count) and not counts[tab.count] and not is_current,
    }


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


def count_parts(workspaces: QuerySet[Workspace]) -> dict[int, dict[str, int]]:
    """Count the rows of each part, in one query: by workspace primary key, then by part.

    ``held_total`` counts held changes and held rows.

    Written in SQL, because every page runs it and Django takes longer to build eleven subqueries than to run them.
    """
    shown, params = keys_sql(workspaces)
    counts = ", ".join(_count(*counted) for counted in COUNTED.values())
    table = Workspace._meta.db_table
    with planned_cursor() as cursor:
        cursor.execute(f"SELECT id, {counts} FROM {table} WHERE id IN ({shown})", params)  # noqa: S608
        found = {pk: dict(zip(COUNTED, row, strict=True)) for pk, *row in cursor.fetchall()}
    for parts in found.values():
        parts["held_total"] += parts["held_row_total"]
    return found


def _count(model: type[Model], condition: str) -> str:
    table = model._meta.db_table
    of_workspace = f"{table}.workspace_id = {Workspace._meta.db_table}.id"
    return f"(SELECT count(*) FROM {table} WHERE {of_workspace} {condition})"  # noqa: S608
