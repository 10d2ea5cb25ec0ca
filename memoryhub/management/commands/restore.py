from __future__ import annotations

from argparse import ArgumentParser
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from django.core.management import call_command
from django.db import connection
from django.utils import timezone

from memoryhub.backups.restore import finish_restore, restore_backup
from memoryhub.forgetting.forget import vacuum
from memoryhub.forgetting.reapply import count_without_workspace, reapply_receipts
from memoryhub.integrity import check_memory
from memoryhub.management.commands.backup import document, show_manifest, warnings
from memoryhub.management.json_command import JsonCommand
from sessions_app.services.audit import Actor, By, record

COMMAND = Actor("command", "restore")
SHOWN = 10
ANOTHER_KEY = (
    "This hub's secret key differs from the backup's, which the backup doesn't contain, so the hub won't start. Copy "
    "the file secret_key from the old hub's folder. If it is lost, run `python3 manage.py secret_key --accept`: "
    "agents then need new tokens, webhooks are signed with another key, and imports may bring back forgotten text."
)


class Command(JsonCommand):
    help = "Replace the database with a verified backup. Stop the hub first."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("source", help="the backup")
        parser.add_argument("--yes", action="store_true", help="move aside a database that isn't empty")
        parser.add_argument(
            "--accept-unapplied",
            action="store_true",
            help="restore even if what was forgotten or revoked since the backup can't be re-applied",
        )

    def run(self, *, source: str, yes: bool, accept_unapplied: bool, **_options: Any) -> dict[str, Any]:
        now = timezone.now()
        restored = restore_backup(
            Path(source), database=connection, replace=yes, now=now, accept_unapplied=accept_unapplied
        )
        receipts = restored.revocations.receipts
        if receipts and restored.pending:  # forgetting needs the present tables
            call_command("migrate", interactive=False, verbosity=0)
            restored = replace(restored, pending=[])
        not_forgotten = reapply_receipts(receipts, by=By(COMMAND, now))
        if receipts:
            vacuum()
        finish_restore(connection)
        result = document(restored.manifest) | {
            "file": source,
            "restored_to": restored.database,
            "put_aside": restored.aside,
            "pending_migrations": restored.pending,
            "secret_key_now": restored.secret_key,
            "warnings": warnings(restored.manifest),
            "forgotten_again": len(receipts)
            - len(not_forgotten)
            - (count_without_workspace(receipts) if receipts else 0),
            "unapplied": restored.unapplied + not_forgotten,
            "kept": restored.kept,
            "ended_again": restored.ended,
            "no_longer_written": restored.no_longer_written,
            "broken": None,
        }
        if not restored.pending:
            result["broken"] = [asdict(row) for row in check_memory().broken]
            self.exit_status = 1 if result["broken"] else 0
            name, words = Path(source).name[:64], f"restored a backup of {restored.manifest.rows:,} rows"
            detail = {"taken_at": restored.manifest.taken_at}
            record(By(COMMAND, timezone.now()), "backup.restored", "backup", name, words, detail=detail)
        return result

    def show(self, result: dict[str, Any]) -> None:
        self.line(f"Restored {result['file']} to {result['restored_to']}")
        show_manifest(self, result)
        for warning in result["warnings"]:
            self.line(f"Warning: {warning}")
        if result["put_aside"]:
            self.line(f"  moved aside  {result['put_aside']}: delete it when all is well")
        if result["forgotten_again"]:
            self.line(f"  forgotten    {result['forgotten_again']} receipts re-applied")
        self._show_again(result)
        if result["pending_migrations"]:
            self.line(f"Pending migrations: {len(result['pending_migrations'])}")
            self.line("`migrate` or the next `serve` applies them. Then run check_memory.")
        else:
            self._show_check(result["broken"])
        if result["secret_key_now"] == "another":  # noqa: S105  no secret
            self.line(ANOTHER_KEY)

    def _show_again(self, result: dict[str, Any]) -> None:
        if slugs := ", ".join(result["no_longer_written"]):
            self.line(f"Agents' files aren't written any more: {slugs}. They may be newer than the backup:")
            self.line("compare them on the Sync pages, then turn two-way sync on again.")
        for what in result["ended_again"]:
            self.line(f"Ended or changed again: {what}")
        for what in result["unapplied"]:
            self.line(f"Not re-applied: {what}")
        if result["kept"]:
            self.line(f"Kept for the next restore, because the backup lacks them: {', '.join(result['kept'])}")

    def _show_check(self, broken: list[dict[str, str]]) -> None:
        if not broken:
            self.line("check_memory: all invariants hold")
            return
        self.line(
            f"check_memory found {len(broken)} broken invariants. They were broken when the backup was made: the"
        )
        self.line("restored rows match the backup. Run `check_memory` for the full list; the first are:")
        for row in broken[:SHOWN]:
            self.line(f"  {row['invariant']}: {row['where']}: {row['what']}")
