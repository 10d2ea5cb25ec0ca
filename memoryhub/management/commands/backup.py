from __future__ import annotations

from argparse import ArgumentParser
from dataclasses import asdict
from pathlib import Path
from typing import Any

from django.db import connection
from django.utils import timezone

from memoryhub.backups.archive import Manifest
from memoryhub.backups.create import backup_lock, create_backup, key_check, verified_backup, work_lock
from memoryhub.backups.folder import create_in_storage, record_backup
from memoryhub.management.json_command import JsonCommand
from sessions_app.services.audit import Actor, By

COMMAND = Actor("command", "backup")


class Command(JsonCommand):
    help = "Back up the whole hub to one verified file while it runs, or verify a backup."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "dest", nargs="?", default="", help="a folder or a new file (default: MEMORYHUB_BACKUP_DIR)"
        )
        parser.add_argument("--verify", metavar="FILE", help="only verify this backup")

    def run(self, *, dest: str, verify: str | None, **_options: Any) -> dict[str, Any]:
        if verify:
            file = Path(verify)
            with work_lock(), verified_backup(file, database=connection) as (manifest, _):
                size = file.stat().st_size
                return {"file": str(file), "bytes": size, "warnings": warnings(manifest)} | document(manifest)
        with backup_lock():
            if dest:
                made = create_backup(Path(dest), database=connection, clock=timezone.now)
            else:
                made = create_in_storage(clock=timezone.now)
        record_backup(made, by=By(COMMAND, timezone.now()))
        return {"file": str(made.file), "bytes": made.size, "encrypted": made.is_encrypted} | document(made.manifest)

    def show(self, result: dict[str, Any]) -> None:
        self.line(f"{result['file']} ({result['bytes'] / 1e6:,.1f} MB) is verified")
        show_manifest(self, result)
        for warning in result.get("warnings", []):
            self.line(f"Warning: {warning}")
        if result.get("encrypted") is False:
            self.line(
                "It isn't encrypted, and contains everything agents remember, including secrets. "
                "Set MEMORYHUB_BACKUP_KEY to encrypt backups."
            )


def document(manifest: Manifest) -> dict[str, Any]:
    """Return a manifest as a JSON document."""
    return asdict(manifest) | {"rows": manifest.rows}


def warnings(manifest: Manifest) -> list[str]:
    """Return why a backup that isn't damaged may need attention."""
    found = []
    if not manifest.mac:
        found.append("It has no MAC, because an older version created it. So a forged backup can't be recognized.")
    elif manifest.key_check != key_check():
        found.append("Its MAC can't be verified: it was created with another secret key.")
    if manifest.session_count:
        found.append(
            f"It contains the keys of {manifest.session_count:,} login sessions. While they are valid, anybody with "
            "the backup can sign in. Keep it safe or delete it."
        )
    return found


def show_manifest(command: JsonCommand, result: dict[str, Any]) -> None:
    command.line(f"  database     {result['database']}, MemoryHub {result['hub']}")
    command.line(f"  taken at     {result['taken_at']} (copying ended at {result['ended_at']})")
    command.line(f"  rows         {result['rows']:,} in {len(result['tables'])} tables")
    command.line(f"  digest       {result['digest']}")
    command.line(f"  secret key   {result['secret_key']}")
