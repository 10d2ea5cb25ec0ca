"""The check of the hub's secret key in the database, which keeps hubs with another key from using it.

With another key, tokens and sign-ins are rejected, and hashes of forgotten text don't match. The check is an HMAC.
"""

from __future__ import annotations

from django.conf import settings
from django.db import connection, transaction
from django.utils.crypto import constant_time_compare, salted_hmac

from memoryhub.lib.database import db_retry
from memoryhub.lib.errors import Refused
from memoryhub.models import StoredSetting
from sessions_app.services.audit import By, record

NAME = "MEMORYHUB_SECRET_KEY"  # of the row of StoredSetting
DIFFERENT_KEY = (
    "This database belongs to a hub with another secret key: set MEMORYHUB_SECRET_KEY to that key or copy its file "
    "to {file}, or run `python3 manage.py secret_key --accept` to change the key (docs/deploying.md)."
)


class DifferentKey(Refused):
    """The database belongs to a hub with another secret key."""

    code = "different_secret_key"

    def __init__(self) -> None:
        super().__init__(DIFFERENT_KEY.format(file=settings.MEMORYHUB_HOME / "secret_key"))


def has_known_key() -> bool:
    """Return whether the hub's key is the database's. True if the database has no check yet."""
    stored = _stored_check() if _has_table() else None
    return stored is None or constant_time_compare(stored, _check())


def require_known_key() -> None:
    """Raise DifferentKey unless the hub's key is the database's. A database without a check gets that of this key."""
    if not _has_table():
        return
    if _stored_check() is None:
        row = StoredSetting(name=NAME, value=_check(), updated_by="the first start")
        db_retry.try_write(
            lambda: StoredSetting.objects.bulk_create([row], ignore_conflicts=True), "the check of the secret key"
        )
    if not has_known_key():
        raise DifferentKey


@db_retry.retried
@transaction.atomic
def accept_key(*, by: By) -> bool:
    """Make the hub's key the database's; return whether it was another one."""
    if _stored_check() == _check():
        return False
    defaults = {"value": _check(), "updated_by": by.actor.name[:200], "updated_at": by.at}
    StoredSetting.objects.update_or_create(name=NAME, defaults=defaults)
    record(by, "hub.key_changed", "hub", "", "The hub's secret key was changed")
    return True


def _has_table() -> bool:
    return StoredSetting._meta.db_table in connection.introspection.table_names()


def _stored_check() -> str | None:
    return StoredSetting.objects.filter(name=NAME).values_list("value", flat=True).first()


def _check() -> str:
    return salted_hmac("memoryhub.secret_key", "check", algorithm="sha256").hexdigest()
