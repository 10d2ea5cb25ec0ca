from __future__ import annotations

import json
import sys
from argparse import ArgumentParser
from datetime import datetime
from typing import Any

from django.utils import timezone
from django.utils.dateparse import parse_datetime

from memoryhub.find_by_name import find_workspace
from memoryhub.lib.errors import Invalid
from memoryhub.management.json_command import JsonCommand
from memoryhub.search import KINDS, Scope
from memoryhub.search.results import Question, answer, answer_as_grid, answer_as_grip

MODES = ("grid", "grip-memory", "grip-history", "grip-knowledge")


class Command(JsonCommand):
    help = "Search all memory by words, phrases, exclusions, fields or a question."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("query", nargs="?", default="", help="the query")
        parser.add_argument("--stdin", action="store_true", help="read one query from each line of standard input")
        parser.add_argument("--workspace", default="", help="the workspace (default: all)")
        parser.add_argument(
            "--in", dest="kinds", default="", help=f"kinds to search, separated by commas: {', '.join(KINDS)}"
        )
        parser.add_argument("--limit", type=int, default=20, help="number of results")
        parser.add_argument("--all", dest="match_all", action="store_true", help="require every word")
        parser.add_argument("--explain", action="store_true", help="show how each score was computed")
        parser.add_argument(
            "--recency", choices=("off", "floored", "grip", "newest"), default="off", help="effect of age"
        )
        parser.add_argument("--no-graph", action="store_true", help="don't add words from the semantic graph")
        parser.add_argument(
            "--own-sessions", action="store_true", help="include agents' own sessions (dream, heartbeat, cron)"
        )
        parser.add_argument(
            "--whole", action="store_true", help="take up to 20 times longer rather than leave results out"
        )
        parser.add_argument("--as-typed", action="store_true", help="correct no words")
        parser.add_argument("--mode", choices=MODES, help="search as Grip does, or keys and values as grid does")
        parser.add_argument("--category", default="", help="with --mode: only this category")
        parser.add_argument("--decay", type=float, help="Grip's decay rate per hour (Grip's default: 0.001)")
        parser.add_argument("--now", default="", help="the time to measure age from, in ISO format (default: now)")

    def handle(self, *args: Any, **options: Any) -> None:
        if not options["stdin"]:
            super().handle(*args, **options)
            return
        for line in sys.stdin:
            super().handle(*args, **options | {"query": line.strip("\r\n"), "stdin": False})
            self.stdout.flush()

    def run(self, *, query: str, workspace: str, mode: str | None, **options: Any) -> dict[str, Any]:
        now = _moment(options["now"])
        found = find_workspace(workspace) if workspace else None
        if mode:
            if found is None:
                raise Invalid(f"--mode {mode} needs a workspace: use --workspace.", code="wrong_arguments")
            if mode == "grid":
                return answer_as_grid(found, query, limit=options["limit"])
            decay = 0.001 if options["decay"] is None else options["decay"]
            return answer_as_grip(
                found, query, mode=mode, category=options["category"], decay=decay, now=now, limit=options["limit"]
            )
        kinds = [name.strip() for name in options["kinds"].split(",") if name.strip()]
        if unknown := [name for name in kinds if name not in KINDS]:
            raise Invalid(f"Unknown kind {unknown[0]}: use {', '.join(KINDS)}.", code="wrong_arguments")
        recency = "grip" if options["decay"] is not None else options["recency"]
        question = Question(
            query,
            kinds=tuple(kinds),
            limit=options["limit"],
            recency=recency,
            decay=0.001 if options["decay"] is None else options["decay"],
            match_all=options["match_all"],
            graph=not options["no_graph"],
            whole=options["whole"],
            as_typed=options["as_typed"],
        )
        scope = Scope(None if found is None else (found.pk,), own_sessions=options["own_sessions"])
        return answer(scope, question, now=now, explain=options["explain"])

    def show(self, result: dict[str, Any]) -> None:
        for note in result.get("notes", []):
            self.line(f"({note})")
        for one in result["results"]:
            place = f"{one['workspace']} {one['session'] or ''}".strip()
            where = f"{place} #{one['position']}" if one["position"] is not None else place
            score = "" if one["score"] is None else f"{one['score']:.3f}  "
            self.line(f"{score}{one['kind']} {one['id']}  {where}  {one['occurred_at'] or ''}")
            self.line(f"    {one['snippet']}")
            if "explanation" in one:
                self.line(f"    {json.dumps(one['explanation'], ensure_ascii=False)}")
        if not result["results"]:
            self.line("No results.")


def _moment(text: str) -> datetime:
    if not text:
        return timezone.now()
    try:
        moment = parse_datetime(text)
    except ValueError:
        moment = None
    if moment is None:
        raise Invalid(f"Invalid time for --now: {text}. Use the format 2026-11-21T12:00:00Z.", code="wrong_arguments")
    return moment if timezone.is_aware(moment) else timezone.make_aware(moment)
