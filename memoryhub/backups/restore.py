"""Restoring a backup: checked whole before anything is touched, and what was there is put aside, not overwritten."""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from django.conf import settings
from django.contrib.auth.models import User
from django.db import DatabaseError
from django.db.backends.base.base import BaseDatabaseWrapper

from memoryhub.backups import postgres, sqlite
from memoryhub.backups.archive import DATABASES, SECRET_KEY, Content, Manifest
from memoryhub.backups.create import STAMP, WORK, key_check, key_file, only_backup, opened_backup
from memoryhub.backups.in_use_lock import alone_with_database, database_words
from memoryhub.lib.errors import Refused
from memoryhub.lib.migrations import OLDEST, is_too_old, known_migrations, pending_migrations
from sessions_app.models import Workspace

WORDS = {"sqlite": "SQLite", "postgresql": "PostgreSQL"}
TELLING = [model._meta.db_table for model in (Workspace, User)]  # a database with none of these rows was never used


@dataclass(frozen=True)
class Restored:
    """``database``: what was restored, in words; ``aside``: the file or schema that holds what was there before.

    ``pending``: migrations of this MemoryHub that the backup is too old for. ``secret_key``: "restored", "the same",
    or "another": then tokens and what was forgotten are not known here.
    """

    manifest: Manifest
    database: str
    aside: str
    pending: list[str]
    secret_key: str


def restore_backup(file: Path, *, database: BaseDatabaseWrapper, replace: bool, now: datetime) -> Restored:
    """Let a backup take the place of the database, whose hub must not run. All or nothing.

    ``replace``: also where the present database holds people or workspaces; it is put aside in any case. Raises
    BadBackup, Invalid, BackupFailed, BackupUnderWay, Refused, Busy.
    """
    stamp = f"{now.astimezone(UTC):{STAMP}}"
    near = Path(database.settings_dict["NAME"]).parent if database.vendor == "sqlite" else settings.MEMORYHUB_HOME
    near.mkdir(parents=True, exist_ok=True, mode=0o700)
    with only_backup(), alone_with_database(database):
        for left in near.glob(f"{WORK}*") if database.vendor == "sqlite" else ():
            shutil.rmtree(left, ignore_errors=True)
        with _opened(file, database, near) as (manifest, folder):
            if not replace and holds_rows(database):
                here = database_words(database)
                raise Refused(
                    f"{here} holds rows: with --yes it is put aside and the backup takes its place.",
                    code="restore_refused",
                )
            put = _put_file if database.vendor == "sqlite" else _put_schema
            aside = put(database, folder / DATABASES[manifest.vendor], manifest, stamp)
            secret_key = _restore_secret_key(manifest, folder / SECRET_KEY, stamp)
    pending = pending_migrations(set(manifest.migrations))
    return Restored(manifest, database_words(database), aside, pending, secret_key)


def holds_rows(database: BaseDatabaseWrapper) -> bool:
    """Tell whether anybody ever used a database; one that can't be read counts as used."""
    if database.vendor == "sqlite" and not Path(database.settings_dict["NAME"]).exists():
        return False
    try:
        with database.cursor() as cursor:
            there = set(database.introspection.table_names(cursor))
            for table in there.intersection(TELLING):
                cursor.execute(f"SELECT 1 FROM {database.ops.quote_name(table)} LIMIT 1")  # noqa: S608  our own names
                if cursor.fetchone():
                    return True
    except DatabaseError:
        return True
    finally:
        database.close()
    return False


def _opened(file: Path, database: BaseDatabaseWrapper, near: Path) -> AbstractContextManager[tuple[Manifest, Path]]:
    return opened_backup(file, database=database, near=near, refuse=lambda read: _refuse_misfit(database, read))


def _refuse_misfit(database: BaseDatabaseWrapper, manifest: Manifest) -> None:
    if manifest.vendor != database.vendor:
        here, there = WORDS[database.vendor], WORDS[manifest.vendor]
        raise Refused(
            f"It is a backup of {there}, and this hub uses {here}: a backup goes back to the kind of database that "
            "it came from. To change over, export each workspace and import it in the other hub.",
            code="restore_refused",
        )
    applied = set(manifest.migrations)
    if unknown := sorted(applied - known_migrations()):
        raise Refused(
            f"It was made by a newer MemoryHub ({manifest.hub}), whose tables this one doesn't know ({unknown[0]}): "
            "update MemoryHub, and restore then.",
            code="restore_refused",
        )
    if is_too_old(applied):
        raise Refused(
            f"It is from before commit {OLDEST}. Restore it with that version, run `migrate` there, and make a new "
            "backup to restore here.",
            code="restore_refused",
        )


def _put_file(database: BaseDatabaseWrapper, copy: Path, manifest: Manifest, stamp: str) -> str:
    file = Path(database.settings_dict["NAME"])
    aside = file.with_name(f"{file.name}.before-restore-{stamp}")
    database.close()
    sqlite.take_hold(file)
    there_was = sqlite.replace_database(copy, file, aside)

    def take_back() -> None:
        if there_was:
            aside.replace(file)
        else:
            file.unlink()

    _compare(lambda: sqlite.contents(file), manifest, take_back)
    return str(aside) if there_was else ""


def _put_schema(database: BaseDatabaseWrapper, dump: Path, manifest: Manifest, stamp: str) -> str:
    aside = f"before_restore_{stamp.lower()}"
    try:
        postgres.take_hold(database)
        there_was = postgres.replace_database(database, dump, aside)
        _compare(
            lambda: postgres.contents(database), manifest, lambda: postgres.take_back(database, aside, there_was)
        )
    finally:
        database.close()
    return aside if there_was else ""


def _compare(contents: Callable[[], dict[str, Content]], manifest: Manifest, take_back: Callable[[], None]) -> None:
    try:
        is_same = contents() == manifest.tables
    except (sqlite3.Error, DatabaseError):
        is_same = False
    if not is_same:
        take_back()
        raise Refused(
            "What was restored doesn't hold the rows of the backup, so all is as it was before.",
            code="restore_refused",
        )


def _restore_secret_key(manifest: Manifest, copy: Path, stamp: str) -> str:
    """Put the backup's secret key in its file, the present one aside; tell how the two compare."""
    if manifest.key_check == key_check():
        return "the same"
    present = key_file()
    if present is None or manifest.secret_key != "inside":  # noqa: S105  no secret
        return "another"
    shutil.copy2(present, present.with_name(f"secret_key.before-restore-{stamp}"))
    draft = present.with_name(f"secret_key.{stamp}")
    draft.touch(mode=0o600)
    draft.write_text(copy.read_text())
    with draft.open() as handle:
        os.fsync(handle.fileno())
    draft.replace(present)
    return "restored"
