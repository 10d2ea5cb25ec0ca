from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from memoryhub.documents.by_person import documents_by_person
from memoryhub.find_by_name import find_workspace
from memoryhub.management.json_command import JsonCommand
from sessions_app.models import Workspace


class Command(JsonCommand):
    help = "List the memory documents about each person, in all workspaces or one."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--name", default="", help="only people whose name contains this")
        parser.add_argument("--workspace", default="", help="slug or name of a workspace (default: all)")

    def run(self, *, name: str, workspace: str, **_options: Any) -> dict[str, Any]:
        workspaces = Workspace.objects.all()
        if workspace:
            workspaces = workspaces.filter(pk=find_workspace(workspace).pk)
        return {
            "people": [
                {
                    "name": person.name,
                    "documents": [
                        {"workspace": document.workspace.slug, "name": document.name} for document in person.documents
                    ],
                }
                for person in documents_by_person(workspaces, name)
            ]
        }

    def show(self, result: dict[str, Any]) -> None:
        for person in result["people"]:
            self.line(person["name"] or "(no name given)")
            for document in person["documents"]:
                self.line(f"  {document['workspace']}: {document['name']}")
