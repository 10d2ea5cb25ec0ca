from __future__ import annotations

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.db.models import Count, Q
from django.utils import timezone

from knowledge_app.models import KnowledgeEntry, Observation, SemanticGraph, Term
from memoryhub.as_json import run_document
from memoryhub.find_by_name import find_workspace
from memoryhub.graph.embedding_run import outlook, request_embedding
from memoryhub.graph.export import graph_document, graph_parts
from memoryhub.graph.neighbours import Related, neighbours_of
from memoryhub.graph.occurrences import rows_with_word
from memoryhub.graph.relations import ACTIONS, decide, find_term
from memoryhub.lib.database.any_case import any_case
from memoryhub.lib.errors import Invalid
from memoryhub.management.json_command import JsonCommand
from memoryhub.runs.executing import complete
from sessions_app.models import Run, Workspace
from sessions_app.services.audit import Actor, By

COMMAND = Actor("command", "terms")
NEEDED = {"show": 1} | dict.fromkeys(ACTIONS, 2)  # number of terms for each action (others: 0)


class Command(JsonCommand):
    help = "Show, correct, build and export the semantic graph."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("workspace", help="slug or name of the workspace")
        parser.add_argument(
            "action",
            nargs="?",
            default="list",
            choices=("list", "show", *ACTIONS, "embed", "rebuild", "export"),
            help="embed: only missing terms; rebuild: all terms; export: as grid's file",
        )
        parser.add_argument("terms", nargs="*", metavar="TERM", help="one term for show, two for a relation")
        parser.add_argument("--contains", default="", help="for list: only terms that contain this")
        parser.add_argument("--limit", type=int, default=1000, help="for list: number of terms")
        parser.add_argument("--output", help="for export: write to this file")

    def run(
        self, *, workspace: str, action: str, terms: list[str], contains: str, limit: int, **options: Any
    ) -> dict[str, Any]:
        found = find_workspace(workspace)
        if len(terms) != NEEDED.get(action, 0):
            raise Invalid(
                f"{action} needs {NEEDED.get(action, 0)} terms, but {len(terms)} were given.", code="wrong_terms"
            )
        if action == "list":
            return _list(found, contains, limit)
        if action in ("embed", "rebuild"):
            return self._embed(found, rebuild=action == "rebuild")
        if action == "export":
            return _export(found, options["output"])
        term = find_term(found, terms[0])
        if action != "show":
            decide(term, find_term(found, terms[1]), action, by=By(COMMAND, timezone.now()))
        return _show(found, term)

    def show(self, result: dict[str, Any]) -> None:
        for term in result.get("terms", []) if "graph" in result else []:
            self.line(f"{term['text']}  ({term['neighbours']})")
        if "graph" in result:
            graph = result["graph"]
            made = f"built with {graph['provider']} {graph['model']}" if graph else "not built yet"
            self.line(f"{result['count']:,} terms, {result['waiting']:,} without an embedding; {made}")
        for neighbour in result.get("neighbours", []):
            cosine = "   —" if neighbour["cosine"] is None else f"{neighbour['cosine']:.2f}"
            marks = [name for name in ("related", "pinned", "removed") if neighbour[name]]
            self.line(f"{cosine}  {neighbour['text']}  {', '.join(marks)}")
        for run in result.get("runs", []):
            self.line(f"run {run['id']}: {run['status']}{', ' + run['error'] if run['error'] else ''}")
        if "file" in result:
            self.line(f"file: {result['file']}")
        if "meta" in result:
            self.line(f"{len(result['terms']):,} terms: --json prints them, --output writes a file for grid")

    def _embed(self, workspace: Workspace, *, rebuild: bool) -> dict[str, Any]:
        asked = request_embedding(workspace, rebuild=rebuild, once=True, by=By(COMMAND, timezone.now()))
        run = complete(asked, now=timezone.now)
        self.exit_status = 0 if run.status in (Run.Status.DONE, Run.Status.QUEUED) else 1
        return {"runs": [run_document(run) | {"embedded": run.proposal.get("embedded", 0)}]}


def _list(workspace: Workspace, contains: str, limit: int) -> dict[str, Any]:
    rows = Term.objects.filter(any_case("text__icontains", contains), workspace=workspace).order_by("text")
    counted = rows.annotate(n=Count("relations", filter=Q(relations__is_removed=False)))
    graph = SemanticGraph.objects.filter(workspace=workspace).first()
    expected = outlook(workspace)
    return {
        "graph": {
            "provider": graph.provider,
            "model": graph.model,
            "base_url": graph.base_url,
            "dimensions": graph.dimensions,
            "built_at": graph.built_at or graph.built_at_text or None,
        }
        if graph
        else None,
        "count": expected.terms,
        "waiting": expected.waiting,
        "rebuild_tokens": expected.tokens,
        "rebuild_cost": expected.cost,
        "terms": [
            {"text": text, "neighbours": count} for text, count in counted.values_list("text", "n")[: max(1, limit)]
        ],
    }


def _show(workspace: Workspace, term: Term) -> dict[str, Any]:
    return {
        "term": term.text,
        "fingerprint": term.fingerprint or None,
        "neighbours": [_neighbour(row) for row in neighbours_of(term.relations.order_by("rank", "id"))],
        "observations": [row.uid for row in rows_with_word(Observation.objects.all(), workspace, term.text)],
        "knowledge": [row.content_id for row in rows_with_word(KnowledgeEntry.objects.all(), workspace, term.text)],
    }


def _neighbour(row: Related) -> dict[str, Any]:
    return {
        "text": row.term.text,
        "cosine": row.cosine,
        "related": row.is_related and not row.is_removed,
        "pinned": row.pinned,
        "removed": row.is_removed,
    }


def _export(workspace: Workspace, output: str | None) -> dict[str, Any]:
    if not output:
        return graph_document(workspace)
    with Path(output).open("w", encoding="utf-8") as file:
        file.writelines(graph_parts(workspace))
    return {"file": output}
