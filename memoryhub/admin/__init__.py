"""The admin site's pages: all tables to look at, curating many rows at once, tables as files.

They stand above both apps, not inside them, because some actions are flows (a session's file, a new beginning).
"""

from memoryhub.admin import knowledge, memory, sessions, workspaces

__all__ = ["knowledge", "memory", "sessions", "workspaces"]
