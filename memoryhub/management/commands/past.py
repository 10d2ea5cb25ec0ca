from __future__ import annotations

from argparse import ArgumentParser
from dataclasses import asdict
from datetime import datetime
from typing import Any

from django.utils import timezone

from memoryhub.find_by_name import find_workspace
from memoryhub.lib.text.diff import MARKS
from memoryhub.management.json_command import JsonCommand
from memoryhub.time_travel.parsing import parse_moment, url_time
from memoryhub.time_travel.snapshots import Comparison, WorkspaceAt, as_of, compare

PARTS = ("documents", "facts", "knowledge", "observations", "key_values", "history", "sessions")


class Command(JsonCommand):
    help = "Show a workspace as it was at a past moment, or what changed between two moments."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("workspace", help="slug or name of the workspace")
        parser.add_argument("when", help='a date, an ISO time, or "7d", "36h", "yesterday", "today", "now"')
        parser.add_argument("--compare", metavar="WHEN", help="show what changed between WHEN and this")

    def run(self, *, workspace: str, when: str, **options: Any) -> dict[str, Any]:
        found, now = find_workspace(workspace), timezone.now()
        at = _moment(when, now)
        if options["compare"] is None:
            return {"workspace": found.slug} | _document(as_of(found, at))
        first, second = sorted((at, _moment(options["compare"], now)))
        return {"workspace": found.slug} | _document(compare(found, first, second))

    def show(self, result: dict[str, Any]) -> None:
        if "first" in result:
            self._show_changes(result)
        else:
            self._show_past(result)
        for gap in result["gaps"]:
            self.line(f"Not known: {gap['text']}")

    def _show_past(self, result: dict[str, Any]) -> None:
        self.line(f"{result['workspace']} at {result['at']} (history starts at {result['since']})")
        self.line(", ".join(f"{len(result[part])} {part.replace('_', '-')}" for part in PARTS))
        for document in result["documents"]:
            self.line(f"\n{document['name']}, revision {document['revision']} by {document['author']}")
            self.line(document["content"])
        for session in result["sessions"]:
            words = f"epoch {session['epoch']}, pointer {session['pointer']}, {session['entry_count']} entries"
            self.line(f"{session['key']}: {words}, {len(session['summaries'])} summaries")

    def _show_changes(self, result: dict[str, Any]) -> None:
        self.line(f"{result['workspace']}: changes from {result['first']} to {result['second']}")
        for document in result["documents"]:
            self.line(f"\n{document['name']}")
            self._show_diff(document["diff"])
        for part in ("knowledge", "observations", "key_values"):
            for row in result[part]:
                name = (row["after"] or row["before"]).get("key", row["pk"])
                self.line(f"\n{part.replace('_', '-')} {name}: {row['became']}")
                self._show_diff(row["diff"])
        for row in result["new_history"]:
            self.line(f"history #{row['position']}: {row['content']}")
        for row in result["withdrawn_history"]:
            self.line(f"history #{row['position']}: withdrawn")
        for session in result["sessions"]:
            after = session["after"]
            words = f"{session['new_entries']} new entries, {len(session['new_summaries'])} new summaries"
            self.line(f"{session['key']}: {words}, pointer {after['pointer']} of epoch {after['epoch']}")

    def _show_diff(self, diff: list[dict[str, Any]]) -> None:
        for line in diff:
            self.line(f"{MARKS[line['mark']]} {line['text']}")


def _moment(text: str, now: datetime) -> datetime:
    return parse_moment(text, zone=timezone.get_default_timezone(), now=now)


def _document(found: WorkspaceAt | Comparison) -> dict[str, Any]:
    """Return a result as plain lists and mappings, with times in UTC."""
    document: dict[str, Any] = _plain(asdict(found))
    return document


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _plain(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return url_time(value) if isinstance(value, datetime) else value
