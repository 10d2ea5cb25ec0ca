from __future__ import annotations

from argparse import ArgumentParser
from datetime import date
from typing import Any

from django.utils import timezone

from knowledge_app.models import KnowledgeEntry
from knowledge_app.services.rows import knowledge as service
from knowledge_app.services.rows.exporting import knowledge_file
from memoryhub.as_json import knowledge_document
from memoryhub.find_by_name import find_workspace
from memoryhub.lib.errors import NotFound
from memoryhub.lib.text.similarity import DEFAULT_THRESHOLD
from memoryhub.management.arguments import count
from memoryhub.management.json_command import JsonCommand, output_document
from memoryhub.management.row_edits import edit_now, finish, given, show_outcome
from sessions_app.models import Workspace
from sessions_app.services.audit import Actor, By

COMMAND = Actor("command", "knowledge")
EDITS = ("edit", "move", "tag", "verify", "review", "withdraw", "return")
ACTIONS = ("list", "show", "add", *EDITS, "merge", "context", "export")


class Command(JsonCommand):
    help = "List, add, edit, tag, withdraw, merge and export knowledge entries, or print them as a prompt."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("action", choices=ACTIONS, help="what to do")
        parser.add_argument("workspace", help="slug or name of the workspace")
        parser.add_argument("ids", nargs="*", type=int, help="ids of entries (see list)")
        parser.add_argument(
            "--query", default="", help="for list: only entries with one of these words in content, tags or source"
        )
        parser.add_argument(
            "--category", default="", help="one of the five categories; unknown ones become learned_fact"
        )
        parser.add_argument("--content", help="for add and edit")
        parser.add_argument("--source", help="for add and edit")
        parser.add_argument("--tag", action="append", help="for add, edit and tag; repeatable")
        parser.add_argument("--untag", action="append", default=[], help="for tag: a tag to remove; repeatable")
        parser.add_argument("--reason", default="", help="for withdraw")
        parser.add_argument("--by", type=date.fromisoformat, help="for review: the date, YYYY-MM-DD")
        parser.add_argument("--limit", type=count, default=20, help="for list: number of entries")
        parser.add_argument(
            "--threshold", type=float, default=DEFAULT_THRESHOLD, help="for merge: minimum similarity"
        )
        parser.add_argument(
            "--apply", action="store_true", help="for merge: merge the groups instead of only showing them"
        )
        parser.add_argument("--max-chars", type=int, default=service.CONTEXT_CHARS, help="for context: limit")
        parser.add_argument("--max-tokens", type=int, help="for context: limit (default: none)")
        parser.add_argument("--output", help="for export: write to this file")

    def run(self, *, action: str, workspace: str, ids: list[int], **options: Any) -> dict[str, Any]:
        found = find_workspace(workspace)
        if action == "list":
            rows = service.search_knowledge(
                found, options["query"], category=options["category"], max_results=options["limit"]
            )
            return {"entries": [knowledge_document(row) for row in rows]}
        if action == "context":
            text = service.context_export(found, max_chars=options["max_chars"], max_tokens=options["max_tokens"])
            return {"text": text}
        if action == "export":
            return output_document(knowledge_file(found), options["output"])
        if action == "add":
            return _add(found, options)
        if action == "merge":
            return _merge(found, options)
        if action == "show":
            return {"entries": [knowledge_document(_entry(found, pk)) for pk in ids]}
        return _change(found, action, ids, options)

    def show(self, result: dict[str, Any]) -> None:
        for entry in result.get("entries", []):
            mark = " (held for review)" * entry["held"]
            self.line(f"{entry['id']}. [{entry['category']}]{mark} {entry['content']}")
        for group in result.get("groups", []):
            self.line(f"keep    {group['keep']['content']}")
            for other in group["merge"]:
                self.line(f"  merge {other['content']}  ({group['similarity']})")
        show_outcome(self, result)


def _entry(workspace: Workspace, pk: int) -> KnowledgeEntry:
    entry = KnowledgeEntry.objects.select_related("workspace", "hold").filter(workspace=workspace, pk=pk).first()
    if entry is None:
        raise NotFound(f"{workspace.slug} has no knowledge entry {pk}.")
    return entry


def _add(workspace: Workspace, options: dict[str, Any]) -> dict[str, Any]:
    added = service.add_knowledge(
        workspace,
        options["content"] or "",
        category=options["category"] or service.DEFAULT_CATEGORY,
        source=options["source"] or "",
        tags=options["tag"] or [],
        by=By(COMMAND, timezone.now()),
    )
    note = f"Unknown category {options['category']!r}: saved as learned_fact." * added.was_unknown
    return {"entries": [knowledge_document(added.entry)], "added": added.is_new, "note": note}


def _merge(workspace: Workspace, options: dict[str, Any]) -> dict[str, Any]:
    groups = service.plan_merges(workspace, threshold=options["threshold"])
    document: dict[str, Any] = {
        "groups": [
            {
                "keep": knowledge_document(group.keep),
                "merge": [knowledge_document(other) for other in group.others],
                "similarity": round(group.similarity, 3),
            }
            for group in groups
        ],
        "run": None,
    }
    if options["apply"] and groups:
        units = [[group.keep.pk, *(other.pk for other in group.others)] for group in groups]
        document["run"] = finish(service.merge_groups(workspace, units, by=By(COMMAND, timezone.now())))
    return document


def _change(workspace: Workspace, action: str, ids: list[int], options: dict[str, Any]) -> dict[str, Any]:
    if action == "edit":
        entry = _entry(workspace, ids[0] if ids else 0)
        values = given(options, content="content", source="source", tags="tag", category="category")
        return {"run": finish(service.save_entry(entry, values, by=By(COMMAND, timezone.now())))}
    if action == "move":
        run, behind = service.recategorise(workspace, ids, options["category"], by=By(COMMAND, timezone.now()))
        note = f"{behind} not moved: the category already has the same content." if behind else ""
        return {"run": finish(run), "note": note}
    values = {"reason": options["reason"]}
    if action == "tag":
        values = {"add": service.clean_tags(options["tag"] or []), "remove": options["untag"]}
    elif action == "review":
        values = {"review_by": options["by"].isoformat() if options["by"] else ""}
    return {"run": edit_now(COMMAND, workspace, "knowledge", action, ids, values)}
