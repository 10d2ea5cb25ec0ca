from memoryhub.views import (
    forget,
    graph,
    hygiene,
    review,
    runs,
    saved_searches,
    search,
    search_actions,
    sessions,
)
from memoryhub.views.configure import (
    activity,
    delete_webhook,
    new_workspace,
    webhooks,
    workspace_settings,
)
from memoryhub.views.front import health, home, open_demo, setup
from memoryhub.views.imports import import_again, import_report, new_import, workspace_files, workspace_imports
from memoryhub.views.recall import recall
from memoryhub.views.workspaces import overview, session_context

__all__ = [
    "activity",
    "delete_webhook",
    "forget",
    "graph",
    "health",
    "home",
    "hygiene",
    "import_again",
    "import_report",
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
    "webhooks",
    "workspace_files",
    "workspace_imports",
    "workspace_settings",
]
