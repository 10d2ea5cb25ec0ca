from __future__ import annotations

import json
import sys
from argparse import ArgumentParser
from datetime import datetime
from typing import Any

from django.utils import timezone
from django.utils.dateparse import parse_datetime

from memoryhub.lib.errors import MemoryHubError
from memoryhub.lookup import find_workspace
from memoryhub.management.json_command import JsonCommand
from memoryhub.search import KINDS, Scope
from memoryhub.search.results import Question, answer, answer_as_grip

GRIP_MODES = ("grip-memory", "grip-history", "grip-knowledge")


class WrongQuestion(MemoryHubError):
    """An argument that doesn't go with the others."""

    code = "wrong_arguments"


class Command(JsonCommand):
    help = "Search everything that agents keep: words, phrases, exclusions and fields, or a question."

    def add_arguments(self, parser: ArgumentParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("query", nargs="?", default="")
        parser.add_argument("--stdin", action="store_true", help="a query a line; each is answered by a line")
        parser.add_argument("--workspace", default="", help="its slug; all of them where it isn't named")
        parser.add_argument("--in", dest="kinds", default="", help=f"kinds, separated by commas: {', '.join(KINDS)}")
        parser.add_argument("--limit", type=int, default=20)
        parser.add_argument("--all", dest="match_all", action="store_true", help="every word has to be there")
        parser.add_argument("--explain", action="store_true", help="how each score came about")
        parser.add_argument("--recency", choices=("off", "floored", "grip", "newest"), default="off")
        parser.add_argument("--no-graph", action="store_true", help="don't look further by the semantic graph")
        parser.add_argument("--mode", choices=GRIP_MODES, help="as Grip itself searches")
        parser.add_argument("--category", default="", help="of Grip's memory or knowledge")
        parser.add_argument("--decay", type=float, help="Grip's rate an hour, 0.001 by its own default")
        parser.add_argument("--now", default="", help="the time from which age is measured, ISO")

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
                raise WrongQuestion(f"--mode {mode} searches one workspace: name it with --workspace.")
            decay = 0.001 if options["decay"] is None else options["decay"]
            return answer_as_grip(
                found, query, mode=mode, category=options["category"], decay=decay, now=now, limit=options["limit"]
            )
        kinds = [name.strip() for name in options["kinds"].split(",") if name.strip()]
        if unknown := [name for name in kinds if name not in KINDS]:
            raise WrongQuestion(f"There is no kind {unknown[0]}: there are {', '.join(KINDS)}.")
        recency = "grip" if options["decay"] is not None else options["recency"]
        question = Question(
            query,
            kinds=tuple(kinds),
            limit=options["limit"],
            recency=recency,
            decay=0.001 if options["decay"] is None else options["decay"],
            match_all=options["match_all"],
            graph=not options["no_graph"],
        )
        return answer(Scope(None if found is None else (found.pk,)), question, now=now, explain=options["explain"])

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
            self.line("Nothing was found.")


def _moment(text: str) -> datetime:
    if not text:
        return timezone.now()
    try:
        moment = parse_datetime(text)
    except ValueError:
        moment = None
    if moment is None:
        raise WrongQuestion(f"--now {text} is no time: write it like 2026-11-21T12:00:00Z.")
    return moment if timezone.is_aware(moment) else timezone.make_aware(moment)
