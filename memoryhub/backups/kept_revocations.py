"""What databases that were replaced by a backup knew as revoked, kept in a file for later restores.

Without it, restoring an older backup by mistake and then the right one would lose what the older one doesn't contain.
The file is beside the database, or in the home of a hub on PostgreSQL.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from datetime import datetime
from pathlib import Path
from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper

from memoryhub.backups.revocations import Permissions, Receipt, Revocations
from memoryhub.backups.sqlite import fsync_folder


@dataclass(frozen=True)
class Kept:
    """The revocations of a replaced database. ``base``: the time of the newest audit record of the backup."""

    base: Any
    revocations: Revocations

    @property
    def newest_record(self) -> Any:
        return self.revocations.permissions.newest_record if self.revocations.permissions else None


def kept_file(database: BaseDatabaseWrapper, folder: Path) -> Path:
    return folder / f"{Path(database.settings_dict['NAME']).name}.revoked.json"


def read_kept(file: Path) -> list[Kept]:
    """Return what was kept, the oldest first. Raises OSError, ValueError."""
    if not file.exists():
        return []
    try:
        found = json.loads(file.read_text())["databases"]
        return [Kept(_value(one["base"]), _revocations(_value(one["revocations"]))) for one in found]
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"{file} can't be read") from error


def write_kept(file: Path, kept: Sequence[Kept]) -> None:
    """Replace the file, which only its owner can read. Raises OSError."""
    draft = file.with_name(f"{file.name}.new")
    draft.unlink(missing_ok=True)
    draft.touch(mode=0o600)
    with draft.open("w") as handle:
        json.dump(
            {"databases": [{"base": _plain(one.base), "revocations": _plain(one.revocations)} for one in kept]},
            handle,
            ensure_ascii=False,
        )
        handle.flush()
        os.fsync(handle.fileno())
    draft.replace(file)
    fsync_folder(file.parent)


def applicable(kept: Sequence[Kept], present: Revocations, newest: Any) -> list[Revocations]:
    """Return what to apply to a backup whose newest audit record is of that time, the present database's last.

    Backups that came after a database, and so contain what it knew, need nothing of it. A database that was restored
    from an older backup than this one says nothing about the time between: that an account isn't there doesn't mean
    that it was deleted.
    """
    found, knows_backup = [], True
    for one in kept:
        if _is_before(newest, one.newest_record, or_same=True):
            found.append(_known(one.revocations, knows_backup=knows_backup))
            knows_backup = knows_backup and not _is_before(one.base, newest)
    return [*found, _known(present, knows_backup=knows_backup)]


def _known(revocations: Revocations, *, knows_backup: bool) -> Revocations:
    return revocations if knows_backup else replace(revocations, permissions=None)


def is_newer_than(revocations: Revocations, newest: Any) -> bool:
    """Return whether a database has newer audit records than a backup."""
    present = revocations.permissions
    return present is not None and present.newest_record is not None and _is_before(newest, present.newest_record)


def has_changed_accounts(kept: Sequence[Kept], present: Revocations) -> bool:
    """Return whether accounts, roles or settings changed since the last restore."""
    changed = present.permissions and present.permissions.accounts_changed
    return any(_is_before(one.newest_record, changed) for one in kept[-1:])


def _is_before(first: Any, second: Any, *, or_same: bool = False) -> bool:
    """Compare times of audit records; None is before all."""
    if first is None or second is None:
        return first is None and (or_same or second is not None)
    return bool(first < second or (or_same and first == second))


def _revocations(found: dict[str, Any]) -> Revocations:
    permissions = found.pop("permissions")
    receipts = [Receipt(**one) for one in found.pop("receipts")]
    return Revocations(receipts, **found, permissions=permissions and Permissions(**permissions))


def _plain(value: Any) -> Any:
    """Return a value as JSON takes it: what it has no kind for becomes an object with one key."""
    if isinstance(value, Receipt | Permissions | Revocations):
        value = {field.name: getattr(value, field.name) for field in fields(value)}
    if isinstance(value, dict):
        return {"map": [[_plain(key), _plain(one)] for key, one in value.items()]}
    if isinstance(value, tuple | frozenset):
        return {"row" if isinstance(value, tuple) else "set": [_plain(one) for one in value]}
    if isinstance(value, datetime):
        return {"time": value.isoformat()}
    return [_plain(one) for one in value] if isinstance(value, list) else value


def _value(plain: Any) -> Any:
    """Return the value that ``_plain`` was given, dataclasses as dicts."""
    if isinstance(plain, list):
        return [_value(one) for one in plain]
    if not isinstance(plain, dict):
        return plain
    ((kind, inner),) = plain.items()
    if kind == "map":
        return {_value(key): _value(one) for key, one in inner}
    if kind == "time":
        return datetime.fromisoformat(inner)
    return {"row": tuple, "set": frozenset}[kind](map(_value, inner))
