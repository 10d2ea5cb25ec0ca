"""Restore a verified backup, and move the present database aside."""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path

from django.conf import settings
from django.contrib.auth.models import User
from django.db import DatabaseError
from django.db.backends.base.base import BaseDatabaseWrapper
from django.utils.translation import gettext

from memoryhub.backups import postgres, sqlite
from memoryhub.backups.agents_files import stop_writing
from memoryhub.backups.archive import DATABASES, SECRET_KEY, SESSION_TABLES, Content, Manifest
from memoryhub.backups.create import STAMP, WORK, key_check, key_file, verified_backup, work_lock
from memoryhub.backups.ended_methods import Again
from memoryhub.backups.in_use_lock import database_label, exclusive_database, unfinished_file
from memoryhub.backups.kept_revocations import (
    Kept,
    applicable,
    has_changed_accounts,
    is_newer_than,
    kept_file,
    read_kept,
    write_kept,
)
from memoryhub.backups.revocations import (
    Receipt,
    Revocations,
    apply_revocations,
    newest_record,
    read_revocations,
    what_is_lacking,
)
from memoryhub.lib.database.migrations import OLDEST, is_too_old, pending_migrations, unknown_migrations
from memoryhub.lib.errors import MemoryHubError, Refused
from sessions_app.models import Workspace

WORDS = {"sqlite": "SQLite", "postgresql": "PostgreSQL"}
USE_TABLES = [model._meta.db_table for model in (Workspace, User)]  # empty in an unused database


@dataclass(frozen=True)
class Restored:
    """``database``: its label; ``aside``: the file or schema with the previous database.

    ``pending``: migrations that the backup lacks. ``secret_key``: "restored", "the same" or "another"; with another
    key, tokens and forgetting receipts don't match. ``revocations``: of the previous database, of which ``unapplied``
    couldn't be applied; its receipts are left to ``memoryhub.forgetting.reapply``. ``kept``: what the backup lacks,
    kept for later restores. ``ended``: what the backup has, and what has ended or changed since.
    ``no_longer_written``: the workspaces whose agents' files aren't written to any more.
    """

    manifest: Manifest
    database: str
    aside: str
    pending: list[str]
    secret_key: str
    revocations: Revocations = field(default_factory=Revocations)
    unapplied: list[str] = field(default_factory=list)
    kept: list[str] = field(default_factory=list)
    ended: list[str] = field(default_factory=list)
    no_longer_written: list[str] = field(default_factory=list)


def restore_backup(
    file: Path, *, database: BaseDatabaseWrapper, replace: bool, now: datetime, accept_unapplied: bool = False
) -> Restored:
    """Replace the database with a backup, all or nothing, and move the present one aside. The hub must not run.

    ``replace``: also if the present database has accounts or workspaces. What was revoked there is revoked again;
    ``accept_unapplied``: also restore if that isn't possible. Call ``finish_restore`` when the receipts are applied:
    until then the hub doesn't start. Raises BadBackup, Invalid, BackupFailed, BackupUnderWay, Refused, Busy.
    """
    _refuse_pooler()
    stamp = f"{now.astimezone(UTC):{STAMP}}"
    parent = Path(database.settings_dict["NAME"]).parent if database.vendor == "sqlite" else settings.MEMORYHUB_HOME
    parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    with work_lock(), exclusive_database(database):
        for leftover in parent.glob(f"{WORK}*") if database.vendor == "sqlite" else ():
            shutil.rmtree(leftover, ignore_errors=True)
        with _opened(file, database, parent) as (manifest, folder):
            if not replace and is_used(database):
                here = database_label(database)
                raise Refused(
                    f"{here} contains data. Add --yes to move it aside and restore the backup.",
                    code="restore_refused",
                )
            revocations = _read_revocations(database, accept_unapplied=accept_unapplied)
            known_file = kept_file(database, parent)
            earlier, interrupted = (
                _read_kept(one, accept_unapplied=accept_unapplied) for one in (known_file, unfinished_file(database))
            )
            interrupted = [one for one in interrupted if one.revocations != revocations]
            replace_with = _replace_file if database.vendor == "sqlite" else _replace_schema
            with _interruptible(unfinished_file(database), interrupted, revocations):
                aside = replace_with(database, folder / DATABASES[manifest.vendor], manifest, stamp)
            _delete_sessions(database)
            again = _apply_again(database, earlier, interrupted, revocations, known_file)
            no_longer_written = stop_writing(database)
            secret_key = _restore_secret_key(manifest, folder / SECRET_KEY, stamp)
            if not again[0].receipts:
                finish_restore(database)
    pending = pending_migrations(set(manifest.migrations))
    return Restored(manifest, database_label(database), aside, pending, secret_key, *again, no_longer_written)


@contextmanager
def _interruptible(file: Path, interrupted: Sequence[Kept], present: Revocations) -> Iterator[None]:
    """Keep what has to be applied after the block in a file, in case this process is killed.

    If the block fails, the previous database is in place, and the file is as it was. A disk without room for the file
    doesn't prevent a restore.
    """
    with suppress(OSError):
        write_kept(file, [*interrupted, Kept(None, present)])
    try:
        yield
    except MemoryHubError:
        if interrupted:
            write_kept(file, interrupted)
        else:
            file.unlink(missing_ok=True)
        raise


def finish_restore(database: BaseDatabaseWrapper) -> None:
    """Let the hub start: all that was revoked and forgotten is applied."""
    unfinished_file(database).unlink(missing_ok=True)


def _apply_again(
    database: BaseDatabaseWrapper,
    earlier: list[Kept],
    interrupted: list[Kept],
    present: Revocations,
    file: Path,
) -> tuple[Revocations, list[str], list[str], list[str]]:
    """Revoke again what replaced databases knew, and keep what the present one knew for later restores.

    ``interrupted``: what restores that didn't finish have replaced. The present database is then half restored, so
    that its permissions say nothing. Return the present revocations with all receipts, what couldn't be applied, what
    was kept, and what ended again.
    """
    newest = newest_record(database)
    again = Again()
    kept: list[str] = []
    receipts: list[Receipt] = []
    found = applicable([*earlier, *interrupted], present, newest)
    for one in found:
        done = apply_revocations(database, one)
        again.ended += done.ended
        again.unapplied += done.unapplied
        kept += what_is_lacking(database, one)
        receipts += [receipt for receipt in one.receipts if receipt not in receipts]
    if found[-1] is not present and has_changed_accounts([*earlier, *interrupted], present):
        again.unapplied.append(
            gettext(
                "changes of roles, passwords, ways to sign in, folders and settings since the last restore, which "
                "the backup precedes"
            )
        )
    new = [replace(one, base=newest) for one in interrupted]
    new += [Kept(newest, present)] if is_newer_than(present, newest) else []
    if new:
        try:
            write_kept(file, [*earlier, *new])
        except OSError as error:
            again.unapplied.append(gettext("nothing could be kept for later restores: %(error)s") % {"error": error})
    unapplied, kept, ended = (list(dict.fromkeys(texts)) for texts in (again.unapplied, kept, again.ended))
    return replace(present, receipts=receipts), unapplied, kept, ended


def _read_kept(file: Path, *, accept_unapplied: bool) -> list[Kept]:
    """Return what earlier restores kept. Raises Refused if it can't be read, unless that is accepted."""
    try:
        return read_kept(file)
    except (OSError, ValueError) as error:
        if accept_unapplied:
            return []
        raise Refused(
            f"{file}, which contains what was revoked and forgotten before earlier restores, can't be read. Add "
            "--accept-unapplied to restore anyway.",
            code="restore_unapplied",
        ) from error


def _refuse_pooler() -> None:
    """Raise Refused if the connection is through a pooler, which would keep its sessions and their search_path."""
    if settings.DIRECT_DATABASE:
        message = (
            "A backup can't be restored through a connection pooler. Stop the pooler, set DATABASE_URL to the value "
            "of DATABASE_DIRECT_URL, unset the latter, and restore again."
        )
        raise Refused(message, code="restore_refused")


def _read_revocations(database: BaseDatabaseWrapper, *, accept_unapplied: bool) -> Revocations:
    """Return what to re-apply after the restore. Raises Refused if some of it can't be, unless that is accepted."""
    if database.vendor == "sqlite" and not Path(database.settings_dict["NAME"]).exists():
        return Revocations()
    found = read_revocations(database)
    if accept_unapplied:
        return found or Revocations()
    if found is None:
        raise Refused(
            "The present database can't be read. So what was revoked since the backup would work again, and "
            "forgotten text would come back. Add --accept-unapplied to restore anyway.",
            code="restore_unapplied",
        )
    if lost := [receipt for receipt in found.receipts if not receipt.digests]:
        names = ", ".join(f"{receipt.id} ({receipt.workspace}, {receipt.kind})" for receipt in lost)
        raise Refused(
            f"What these receipts are about can't be forgotten again, because they have no hashes: {names}. "
            "Add --accept-unapplied to restore anyway.",
            code="restore_unapplied",
        )
    return found


def is_used(database: BaseDatabaseWrapper) -> bool:
    """Return whether a database has accounts or workspaces, or can't be read."""
    if database.vendor == "sqlite" and not Path(database.settings_dict["NAME"]).exists():
        return False
    try:
        with database.cursor() as cursor:
            there = set(database.introspection.table_names(cursor))
            for table in there.intersection(USE_TABLES):
                cursor.execute(f"SELECT 1 FROM {database.ops.quote_name(table)} LIMIT 1")  # noqa: S608  our own names
                if cursor.fetchone():
                    return True
    except DatabaseError:
        return True
    finally:
        database.close()
    return False


def _opened(file: Path, database: BaseDatabaseWrapper, parent: Path) -> AbstractContextManager[tuple[Manifest, Path]]:
    return verified_backup(
        file, database=database, parent=parent, check_manifest=lambda read: _check_compatible(database, read)
    )


def _check_compatible(database: BaseDatabaseWrapper, manifest: Manifest) -> None:
    if manifest.vendor != database.vendor:
        here, there = WORDS[database.vendor], WORDS[manifest.vendor]
        raise Refused(
            f"The backup is from {there}, and this hub uses {here}. To change the database, export each workspace "
            "and import it into the other hub.",
            code="restore_refused",
        )
    applied = set(manifest.migrations)
    if unknown := unknown_migrations(applied):
        raise Refused(
            f"The backup was created by a newer MemoryHub ({manifest.hub}) with an unknown migration ({unknown[0]}). "
            "Upgrade MemoryHub, then restore.",
            code="restore_refused",
        )
    if is_too_old(applied):
        raise Refused(
            f"The backup is from before commit {OLDEST}. Restore it with that version, run `migrate` there, and "
            "create a new backup to restore here.",
            code="restore_refused",
        )


def _replace_file(database: BaseDatabaseWrapper, copy: Path, manifest: Manifest, stamp: str) -> str:
    file = Path(database.settings_dict["NAME"])
    aside = file.with_name(f"{file.name}.before-restore-{stamp}")
    database.close()
    sqlite.require_exclusive_access(file)
    had_database = sqlite.replace_database(copy, file, aside)

    def roll_back() -> None:
        if had_database:
            aside.replace(file)
        else:
            file.unlink()

    _compare(lambda: sqlite.contents(file), manifest, roll_back)
    return str(aside) if had_database else ""


def _replace_schema(database: BaseDatabaseWrapper, dump: Path, manifest: Manifest, stamp: str) -> str:
    aside = f"before_restore_{stamp.lower()}"
    try:
        postgres.require_exclusive_access(database)
        had_database = postgres.replace_database(database, dump, aside)
        _compare(
            lambda: postgres.contents(database), manifest, lambda: postgres.roll_back(database, aside, had_database)
        )
    finally:
        database.close()
    return aside if had_database else ""


def _delete_sessions(database: BaseDatabaseWrapper) -> None:
    """Sign everybody out: backups of older versions contain login sessions."""
    if database.vendor == "sqlite" and not Path(database.settings_dict["NAME"]).exists():
        return
    try:
        with database.cursor() as cursor:
            for table in set(database.introspection.table_names(cursor)).intersection(SESSION_TABLES):
                cursor.execute(f"DELETE FROM {table}")  # noqa: S608  our own names
    finally:
        database.close()


def _compare(contents: Callable[[], dict[str, Content]], manifest: Manifest, roll_back: Callable[[], None]) -> None:
    try:
        is_same = contents() == manifest.tables
    except (sqlite3.Error, DatabaseError):
        is_same = False
    if not is_same:
        roll_back()
        raise Refused(
            "The restored rows don't match the backup. The previous database was put back.",
            code="restore_refused",
        )


def _restore_secret_key(manifest: Manifest, copy: Path, stamp: str) -> str:
    """Replace the secret key with the backup's, and keep the present one; return how the two compare."""
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
