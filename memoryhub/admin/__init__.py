"""The admin site: all tables read-only, bulk edits, tables as files.

It is above both apps, because some actions use more than one package (exporting a session's file, starting a new
epoch).
"""

from memoryhub.admin import knowledge, memory, people, sessions, workspaces

__all__ = ["knowledge", "memory", "people", "sessions", "workspaces"]
