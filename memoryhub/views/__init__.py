from memoryhub.views import (
    access_log,
    agents,
    backups,
    forget,
    graph,
    hygiene,
    live,
    review,
    runs,
    saved_searches,
    search,
    search_actions,
    sessions,
    sync,
)
from memoryhub.views.configure import (
    activity,
    delete_webhook,
    new_workspace,
    webhooks,
    workspace_settings,
)
from memoryhub.views.export import download_export, export_plan
from memoryhub.views.front import health, home, open_demo, setup
from memoryhub.views.imports import import_again, import_report, new_import, workspace_files, workspace_imports
from memoryhub.views.recall import recall
from memoryhub.views.workspaces import overview, session_context

__all__ = [
    "access_log",
    "activity",
    "agents",
    "backups",
    "delete_webhook",
    "download_export",
    "export_plan",
    "forget",
    "graph",
    "health",
    "home",
    "hygiene",
    "import_again",
    "import_report",
    "live",
    "new_import",
    "new_workspace",
    "open_demo",
    "overview",
    "recall",
    "review",
    "runs",
    "saved_searches",
    "search",
    "search_actions",
    "session_context",
    "sessions",
    "setup",
    "sync",
    "webhooks",
    "workspace_files",
    "workspace_imports",
    "workspace_settings",
]
