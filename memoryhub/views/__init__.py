from memoryhub.views.front import health, home, open_demo, setup
from memoryhub.views.imports import import_again, import_report, new_import, workspace_files, workspace_imports
from memoryhub.views.workspaces import overview, session_context

__all__ = [
    "health",
    "home",
    "import_again",
    "import_report",
    "new_import",
    "open_demo",
    "overview",
    "session_context",
    "setup",
    "workspace_files",
    "workspace_imports",
]
