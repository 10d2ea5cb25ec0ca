"""Pages and commands that the palette offers without a query, by who may use them."""

from __future__ import annotations

from dataclasses import dataclass, field

from django.conf import settings
from django.http import HttpRequest
from django.urls import Resolver404, resolve, reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from memoryhub.dashboard.navigation import OVERVIEW, SECTIONS, visible_tabs
from memoryhub.demo.building import is_demo_offered
from memoryhub.permissions import has_role, is_hub_operator
from sessions_app.models import Membership, Workspace

VIEWER, EDITOR, OPERATOR = Membership.Role.VIEWER, Membership.Role.EDITOR, Membership.Role.OPERATOR
SESSION_PAGES = ("sessions:detail", "sessions:session-statistics", "session-context", "compress-session")
HUB_PAGES = [  # label, url name, icon, superusers only
    (gettext_lazy("All workspaces"), "home", "overview", False),
    (gettext_lazy("Inbox of all workspaces"), "hub-inbox", "inbox", False),
    (gettext_lazy("Decided in all workspaces"), "hub-decided", "inbox", False),
    (gettext_lazy("Search all workspaces"), "hub-search", "search", False),
    (gettext_lazy("Saved searches"), "hub-saved-searches", "search", False),
    (gettext_lazy("Documents by person"), "people-documents", "user", False),
    (gettext_lazy("Background jobs"), "work", "clock", False),
    (gettext_lazy("Preferences: theme, time zone, language"), "preferences", "user", False),
    (gettext_lazy("Password"), "password", "key", False),
    (gettext_lazy("Sign-ins"), "sign-ins", "key", False),
    (gettext_lazy("People"), "people", "user", True),
    (gettext_lazy("Data about a person: find, export, forget"), "person-data", "forget", True),
    (gettext_lazy("Backups"), "backups", "download", True),
    (gettext_lazy("Hub activity"), "hub-activity", "clock", True),
    (gettext_lazy("Hub settings"), "hub-settings", "settings", True),
]
ADMINISTRATION = [  # label, url name; if it is on
    (gettext_lazy("Administration"), "admin:index"),
    (gettext_lazy("Administration: knowledge entries"), "admin:knowledge_app_knowledgeentry_changelist"),
]
HUB_COMMANDS = [  # label, url name, icon, whether it posts at once; superusers only
    (gettext_lazy("Import a folder or file"), "import", "imports", False),
    (gettext_lazy("Create a workspace"), "new-workspace", "plus", False),
    (gettext_lazy("Open the demo"), "demo", "search", True),
    (gettext_lazy("Make a backup"), "make-backup", "download", True),
    (gettext_lazy("Invite a person"), "invite", "user", False),
]
COMMANDS = [  # label, url name, icon, role, whether it posts at once
    (gettext_lazy("New conversation"), "new-session", "plus", EDITOR, False),
    (gettext_lazy("Add knowledge"), "knowledge:new-knowledge", "plus", EDITOR, False),
    (gettext_lazy("Add an observation"), "knowledge:new-observation", "plus", EDITOR, False),
    (gettext_lazy("Add a key-value"), "knowledge:new-key-value", "plus", EDITOR, False),
    (gettext_lazy("Consolidate due sessions"), "consolidate-due", "fold", EDITOR, True),
    (gettext_lazy("Scan memory for problems"), "scan-hygiene", "hygiene", EDITOR, True),
    (gettext_lazy("Export this workspace"), "export-workspace", "download", VIEWER, False),
    (gettext_lazy("Import again"), "import-again", "imports", OPERATOR, True),
    (gettext_lazy("Sync now"), "sync-now", "restart", OPERATOR, True),
    (gettext_lazy("Create a token for an agent"), "new-token", "key", OPERATOR, False),
    (gettext_lazy("Invite a person to this workspace"), "workspace-invite", "user", OPERATOR, False),
    (gettext_lazy("Recall what is relevant"), "recall", "search", VIEWER, False),
]
SESSION_COMMANDS = [
    (gettext_lazy("Compress this session…"), "compress-session", "fold", EDITOR, False),
    (gettext_lazy("Consolidate this session"), "consolidate-session", "fold", EDITOR, True),
    (gettext_lazy("Context of this session"), "session-context", "context", VIEWER, False),
    (gettext_lazy("Statistics of this session"), "sessions:session-statistics", "statistics", VIEWER, False),
    (gettext_lazy("Delete this session…"), "delete-session", "forget", OPERATOR, False),
]
THEMES = [
    ("light", gettext_lazy("Theme: light")),
    ("dark", gettext_lazy("Theme: dark")),
    ("", gettext_lazy("Theme: as the system has it")),
]


@dataclass(frozen=True)
class Row:
    """One row of the palette. ``is_done``: a button that posts ``fields`` to the address; otherwise a link."""

    label: str
    icon: str
    url: str
    note: str = ""
    is_done: bool = False
    fields: list[tuple[str, str]] = field(default_factory=list)


def pages(request: HttpRequest, workspace: Workspace | None) -> list[Row]:
    """Return the pages of the current workspace and of the hub."""
    is_superuser = is_hub_operator(request.user)
    hub = [Row(str(label), icon, reverse(name)) for label, name, icon, only in HUB_PAGES if is_superuser or not only]
    if is_superuser and settings.MEMORYHUB_ADMIN:
        hub += [Row(str(label), "settings", reverse(name)) for label, name in ADMINISTRATION]
    if workspace is None:
        return hub
    is_operator = has_role(request.user, workspace, OPERATOR)
    tabs = [OVERVIEW, *(tab for section in SECTIONS for tab in visible_tabs(section, is_operator=is_operator))]
    own = [Row(_(tab.label), tab.icon, reverse(tab.url_name, args=[workspace.slug]), workspace.name) for tab in tabs]
    return own + hub


def commands(request: HttpRequest, workspace: Workspace | None, here: str) -> list[Row]:
    """Return the available commands: for the session shown at ``here``, the workspace and the hub."""
    rows: list[Row] = []
    if workspace is not None:
        of_session = [(*row, [workspace.slug, pk]) for row in SESSION_COMMANDS for pk in _session_at(here, workspace)]
        of_workspace = [(*row, [workspace.slug]) for row in COMMANDS]
        rows += [
            Row(str(label), icon, reverse(name, args=args), workspace.name, is_done=is_done)
            for label, name, icon, role, is_done, args in of_session + of_workspace
            if has_role(request.user, workspace, role)
        ]
    if is_hub_operator(request.user):
        offered = [row for row in HUB_COMMANDS if row[1] != "demo" or is_demo_offered()]
        rows += [Row(str(label), icon, reverse(name), is_done=done) for label, name, icon, done in offered]
    return rows + _of_oneself(here)


def _of_oneself(here: str) -> list[Row]:
    themes = [
        Row(str(label), "settings", reverse("set-theme"), is_done=True, fields=[("theme", value), ("back", here)])
        for value, label in THEMES
    ]
    return [*themes, Row(_("Log out"), "user", reverse("logout"), is_done=True)]


def _session_at(here: str, workspace: Workspace) -> list[int]:
    """Return the key of the session that the page shows, if it belongs to this workspace."""
    try:
        match = resolve(here)
    except Resolver404:
        return []
    is_session = match.view_name in SESSION_PAGES and match.kwargs.get("slug") == workspace.slug
    return [match.kwargs["pk"]] if is_session else []
