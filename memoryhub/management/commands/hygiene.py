from __future__ import annotations

from argparse import ArgumentParser
from datetime import date
from typing import Any

from django.utils import timezone

from knowledge_app.models import Concern, HygieneScore
from memoryhub.find_by_name import find_workspace
from memoryhub.hygiene import resolution
from memoryhub.hygiene.findings import count_open, score_of
from memoryhub.hygiene.rows import rows_at, shown_text
from memoryhub.hygiene.scanning import request_scan
from memoryhub.lib.errors import NotFound
from memoryhub.management.json_command import JsonCommand
from memoryhub.runs.executing import complete, undo_run
from sessions_app.models import Run, Workspace
from sessions_app.services.audit import Actor, By

COMMAND = Actor("command", "hygiene")
RESOLUTIONS = ("dismiss", "reopen", "withdraw", "keep-first", "keep-other", "verify", "review")
ACTIONS = ("scan", "list", "score", *RESOLUTIONS, "undo")


class Command(JsonCommand):
    help = "Scan a workspace for duplicates, contradictions, stale rows, secrets and the like, and resolve findings."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("workspace", help="slug or name of the workspace")
        parser.add_argument("action", nargs="?", choices=ACTIONS, default="list", help="what to do")
        parser.add_argument("numbers", nargs="*", type=int, help="numbers of findings; for undo: of the run")
        parser.add_argument("--kind", choices=Concern.Kind.values, help="for list: only this kind")
        parser.add_argument(
            "--status", choices=Concern.Status.values, default="open", help="for list: only this status"
        )
        parser.add_argument("--limit", type=int, default=100, help="for list: number of findings")
        parser.add_argument("--by", type=date.fromisoformat, help="for review: the next review date, YYYY-MM-DD")

    def run(
        self, *, workspace: str, action: str, numbers: list[int], by: date | None, **options: Any
    ) -> dict[str, Any]:
        found = find_workspace(workspace)
        now = timezone.now()
        if action == "list":
            return {"concerns": _listed(found, options["kind"], options["status"], options["limit"])}
        if action == "scan":
            run, _ = request_scan(found, by=By(COMMAND, now))
            done = complete(run, now=timezone.now)
            self.exit_status = 0 if done.status == Run.Status.DONE else 1
            return _score(found) | {
                "run": done.pk,
                "status": done.status,
                "error": done.error or None,
                **done.proposal,
            }
        if action == "score":
            return _score(found)
        if action == "undo":
            settled = Run.objects.filter(workspace=found, kind=Run.Kind.EDIT, pk__in=numbers[:1])
            edit = settled.select_related("workspace").first()
            if edit is None:
                raise NotFound(f"{found.slug} has no edit {numbers[0] if numbers else ''}.")
            undoing = undo_run(edit, by=By(COMMAND, now))
            return {"run": undoing.pk if undoing else None, "done": "undone"}
        edit = _resolve(found, action, numbers, by, now=now)
        return {"run": edit.pk, "done": edit.options["along"]["words"], "settled": edit.proposal.get("changed", 0)}

    def show(self, result: dict[str, Any]) -> None:
        if "concerns" in result:
            for concern in result["concerns"]:
                self.line(f"{concern['id']:>6}  {concern['kind']:<14} {concern['what']}")
                for row in concern["rows"]:
                    self.line(f"        {row['table']} {row['id']}: {row['text']}")
        elif "open" in result:
            if result.get("error"):
                self.line(result["error"])
            score = "never scanned" if result["now"] is None else f"{result['now']:.0f} of 100"
            self.line(
                f"{score}; open: " + (", ".join(f"{n} {k}" for k, n in result["open"].items() if n) or "nothing")
            )
        else:
            self.line(f"{result['done']}; undo with: undo {result['run']}")


def _resolve(workspace: Workspace, action: str, numbers: list[int], day: date | None, *, now: Any) -> Run:
    by = By(COMMAND, now)
    if action in ("keep-first", "keep-other"):
        return resolution.keep(workspace, numbers, other=action == "keep-other", by=by)
    if action == "review":
        return resolution.review(workspace, numbers, day=day, by=by)
    resolutions = {
        "dismiss": resolution.dismiss,
        "reopen": resolution.reopen,
        "withdraw": resolution.withdraw,
        "verify": resolution.verify,
    }
    return resolutions[action](workspace, numbers, by=by)


def _score(workspace: Workspace) -> dict[str, Any]:
    scores = list(HygieneScore.objects.filter(workspace=workspace).order_by("-id")[:365])
    return {
        "now": round(score_of(workspace, scores[0].row_count), 1) if scores else None,
        "open": count_open(workspace),
        "scores": [
            {"at": score.at, "score": round(score.score, 1), "rows": score.row_count, "open": score.counts}
            for score in scores
        ],
    }


def _listed(workspace: Workspace, kind: str | None, status: str, limit: int) -> list[dict[str, Any]]:
    concerns = Concern.objects.filter(workspace=workspace, status=status).order_by("-id")
    if kind:
        concerns = concerns.filter(kind=kind)
    found = list(concerns[: max(1, limit)])
    wanted: dict[str, set[int]] = {}
    for concern in found:
        for table, pk in _places(concern):
            wanted.setdefault(table, set()).add(pk)
    rows = {table: rows_at(workspace, table, pks) for table, pks in wanted.items()}
    return [
        {
            "id": concern.pk,
            "kind": concern.kind,
            "status": concern.status,
            "what": concern.what,
            "found_at": concern.found_at,
            "rows": [
                {"table": table, "id": pk, "text": shown_text(rows[table][pk], concern.kind)}
                for table, pk in _places(concern)
                if pk in rows[table]
            ],
        }
        for concern in found
    ]


def _places(concern: Concern) -> list[tuple[str, int]]:
    places = [(concern.table, concern.object_id)]
    return places if concern.other_id is None else [*places, (concern.other_table, concern.other_id)]
