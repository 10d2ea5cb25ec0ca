from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from memoryhub.find_by_name import find_workspace
from memoryhub.management.json_command import JsonCommand
from sessions_app.models import Session, Workspace
from sessions_app.services.stats import count_tokens_of


class Command(JsonCommand):
    help = "Show compression statistics. Token counts are estimates."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("workspace", nargs="?", help="slug or name of the workspace (default: all)")

    def run(self, *, workspace: str | None, **_options: Any) -> dict[str, Any]:
        chosen = [find_workspace(workspace)] if workspace else list(Workspace.objects.order_by("slug"))
        return {"workspaces": [_figures(row) for row in chosen]}

    def show(self, result: dict[str, Any]) -> None:
        for row in result["workspaces"]:
            ratio = f"{row['ratio']:.1f}×" if row["ratio"] else "—"
            self.line(
                f"{row['name']}: {row['sessions']:,} sessions, {row['entries']:,} entries, "
                f"{row['original_tokens']:,} tokens, {row['active_tokens']:,} active, "
                f"{row['summary_tokens']:,} in summaries, {row['saved_tokens']:,} saved, {ratio}"
            )


def _figures(workspace: Workspace) -> dict[str, Any]:
    figures = count_tokens_of(Session.objects.filter(workspace=workspace))
    return {
        "name": workspace.slug,
        "sessions": figures.sessions,
        "entries": figures.entries,
        "active_entries": figures.active_entries,
        "original_tokens": figures.original_tokens,
        "active_tokens": figures.active_tokens,
        "summary_tokens": figures.summary_tokens,
        "saved_tokens": figures.saved_tokens,
        "ratio": figures.ratio,
    }
