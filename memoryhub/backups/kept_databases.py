"""Find what restores kept: it isn't changed when something is forgotten."""

from __future__ import annotations

from pathlib import Path

from django.conf import settings
from django.db import connection

from memoryhub.backups.kept_revocations import kept_file

SCHEMAS = r"SELECT nspname FROM pg_namespace WHERE nspname LIKE 'before\_restore\_%' ORDER BY nspname"


def kept_databases() -> list[str]:
    """Return the names of previous databases, and of the file with what was revoked in them."""
    file = Path(connection.settings_dict["NAME"])
    if connection.vendor == "sqlite":
        folder = file.parent
        names = sorted(found.name for found in folder.glob(f"{file.name}.before-restore-*"))
    else:
        folder = settings.MEMORYHUB_HOME
        with connection.cursor() as cursor:
            cursor.execute(SCHEMAS)
            names = [f"schema {name}" for (name,) in cursor.fetchall()]
    revoked = kept_file(connection, folder)
    return [*names, *([revoked.name] if revoked.exists() else [])]
