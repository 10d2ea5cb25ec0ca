from __future__ import annotations

import sys
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.utils import timezone

from memoryhub.conversations.appending import record_entries
from memoryhub.find_by_name import find_workspace
from memoryhub.lib.errors import Invalid
from memoryhub.lib.validation import BadJSON, decode_json
from memoryhub.management.json_command import JsonCommand
from sessions_app.services.audit import Actor, By
from sessions_app.services.parsing import read_batch


class Command(JsonCommand):
    help = "Append a batch of entries to a session, completely or not at all. Creates the session if needed."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("workspace", help="slug or name of the workspace")
        parser.add_argument("session_key", help="the session's key")
        parser.add_argument(
            "--file", help="JSON: an entry, a list of entries, or one on each line (default: standard input)"
        )
        parser.add_argument("--key", default="", help="idempotency key: a batch with the same key is added only once")

    def run(self, *, workspace: str, session_key: str, file: str | None, key: str, **_options: Any) -> dict[str, Any]:
        found = find_workspace(workspace)
        now = timezone.now()
        records = read_batch(_rows(_text(file)), now=now)
        appended = record_entries(
            found, session_key, records, by=By(Actor("command", "append"), now), idempotency_key=key
        )
        return {
            "workspace": found.slug,
            "session": appended.session.key,
            "epoch": appended.epoch,
            "first": appended.first_position,
            "last": appended.first_position + appended.entry_count - 1,
            "added": 0 if appended.is_repeat else appended.entry_count,
            "repeat": appended.is_repeat,
        }

    def show(self, result: dict[str, Any]) -> None:
        words = "Already added" if result["repeat"] else "Added"
        self.line(f"{words}: entries #{result['first']} to #{result['last']} of {result['session']}")


def _text(file: str | None) -> str:
    try:
        return Path(file).read_text(encoding="utf-8-sig") if file else sys.stdin.buffer.read().decode()
    except UnicodeDecodeError as error:
        raise Invalid("The input is not UTF-8.", code="bad_entry") from error
    except OSError as error:
        raise Invalid(f"{file} can't be read: {error.strerror}.", code="bad_entry") from error


def _rows(text: str) -> list[Any]:
    """Return the entries of a JSON list, a JSON object or JSON Lines. Raises Invalid for what can't be stored."""
    try:
        values = [decode_json(text)]
    except BadJSON:
        values = [decode_json(line) for line in text.split("\n") if line.strip()]
    repairs = [repair for value in values for repair in value.repairs]
    if repairs:
        raise Invalid(f"The input can't be stored unchanged: {repairs[0]}.", code="bad_entry")
    rows = [value.value for value in values]
    return rows[0] if len(rows) == 1 and isinstance(rows[0], list) else rows
