"""Short functions that follow an agent's folder, sync it, and edit its memory on either side."""

import os
from pathlib import Path

from django.utils import timezone

from knowledge_app.models import MemoryDocument
from knowledge_app.services.documents.editing import save_text
from memoryhub.sync.importing import import_workspace
from memoryhub.sync.syncing import sync_workspace
from sessions_app.models import Workspace
from sessions_app.services.audit import Actor, By
from sessions_app.services.syncing import switch_sync
from tests.hub import PERSON

ACTOR = Actor("command", "test")
TEXT = "# Facts\n\n" + "".join(f"- fact {word}\n" for word in "abcdefghijklmnopqrst")


def followed(folder: Path) -> Workspace:
    workspace = import_workspace(folder, by=By(ACTOR, timezone.now()), name="Atlas").workspace
    switch_sync(workspace, write_back=True, by=By(PERSON, timezone.now()))
    return workspace


def sync(workspace: Workspace, **options):
    return sync_workspace(workspace, by=By(ACTOR, options.pop("now", timezone.now())), **options)


def memory() -> MemoryDocument:
    return MemoryDocument.objects.select_related("head", "synced_revision").get(name="MEMORY.md")


def edit(old: str, new: str) -> None:
    document = memory()
    text = document.head.content.replace(old, new)
    save_text(document, text, base_number=document.head.number, by=By(PERSON, timezone.now()), reason="edited")


def replace(file: Path, old: str, new: str) -> None:
    file.write_text(file.read_text().replace(old, new))


def private(file: Path) -> list[str]:
    return [name for name in os.listdir(file.parent) if "memoryhub" in name]
