from memoryhub.accounts.views import account, preferences
from memoryhub.accounts.views import invitations as people_invitations
from memoryhub.accounts.views import members as people_workspace
from memoryhub.accounts.views import people as people_hub
from memoryhub.accounts.views.joining import invitation
from memoryhub.agents import views as agents
from memoryhub.audit.views import access_log
from memoryhub.audit.views.audit_log import activity, export_activity
from memoryhub.backups import views as backups
from memoryhub.conversations.views import actions as sessions
from memoryhub.conversations.views import bulk as session_bulk
from memoryhub.conversations.views import markdown as as_markdown
from memoryhub.dashboard import design_views as design
from memoryhub.dashboard import live_views as live
from memoryhub.dashboard import palette_views as palette
from memoryhub.dashboard.hub_settings_views import hub_settings
from memoryhub.dashboard.settings_views import (
    delete_webhook,
    new_workspace,
    webhooks,
    workspace_settings,
)
from memoryhub.dashboard.views import health, home, open_demo, setup
from memoryhub.dashboard.workspace_views import overview, session_context
from memoryhub.forgetting import views as forget
from memoryhub.graph.views import term as graph_term
from memoryhub.graph.views import terms as graph
from memoryhub.hygiene import views as hygiene
from memoryhub.jobs import views as work
from memoryhub.runs.views import bulk as run_bulk
from memoryhub.runs.views import compress_due as compress_due_views
from memoryhub.runs.views import review, review_bulk, runs
from memoryhub.search.views import actions as search_actions
from memoryhub.search.views import markdown as search_markdown
from memoryhub.search.views import rebuild as search_rebuild
from memoryhub.search.views import saved as saved_searches
from memoryhub.search.views import search
from memoryhub.search.views.recall import recall
from memoryhub.sync.views import imports, sync
from memoryhub.sync.views.export import download_export, export_plan
from memoryhub.sync.views.imports import import_again, import_report, new_import, workspace_files, workspace_imports
from memoryhub.time_travel.views import compare as past_compare
from memoryhub.time_travel.views import page as past

__all__ = [
    "compress_due_views",
    "search_markdown",
    "search_rebuild",
    "access_log",
    "account",
    "activity",
    "agents",
    "as_markdown",
    "backups",
    "delete_webhook",
    "design",
    "download_export",
    "export_activity",
    "export_plan",
    "forget",
    "graph",
    "graph_term",
    "health",
    "home",
    "hub_settings",
    "hygiene",
    "import_again",
    "import_report",
    "imports",
    "invitation",
    "live",
    "new_import",
    "new_workspace",
    "open_demo",
    "overview",
    "palette",
    "past",
    "past_compare",
    "people_hub",
    "people_invitations",
    "people_workspace",
    "preferences",
    "recall",
    "review",
    "review_bulk",
    "run_bulk",
    "runs",
    "saved_searches",
    "search",
    "search_actions",
    "session_bulk",
    "session_context",
    "sessions",
    "setup",
    "sync",
    "webhooks",
    "work",
    "workspace_files",
    "workspace_imports",
    "workspace_settings",
]
