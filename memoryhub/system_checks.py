"""Database checks, which `migrate` runs first."""

from __future__ import annotations

from collections.abc import Sequence

from django.core.checks import CheckMessage, Error, Tags, register
from django.db import connections

from memoryhub.lib.database.migrations import OLDEST, applied_migrations, is_too_old
from sessions_app.services.secret_key import DifferentKey, has_known_key

TOO_OLD = f"This database is from before commit {OLDEST}. This version can't upgrade it."
UPGRADE_FIRST = (
    f"Check out {OLDEST}, run `python3 manage.py migrate` there, then check out this version and start it again."
)


@register(Tags.database)
def check_database_age(databases: Sequence[str] | None = None, **_options: object) -> list[CheckMessage]:
    """Return an error for each database that lacks migrations which were squashed."""
    old = [name for name in databases or () if is_too_old(applied_migrations(connections[name]))]
    return [Error(TOO_OLD, hint=UPGRADE_FIRST, id="memoryhub.E001") for _ in old]


@register(Tags.database)
def check_secret_key(databases: Sequence[str] | None = None, **_options: object) -> list[CheckMessage]:
    """Return an error if the database belongs to a hub with another secret key."""
    if "default" not in (databases or ()) or has_known_key():
        return []
    return [Error(DifferentKey().message, id="memoryhub.E002")]
