"""Create the demo's agents' folders in MEMORYHUB_HOME, and a memory change that waits for review."""

from __future__ import annotations

from datetime import date, datetime
from pathlib import Path

from django.conf import settings

from knowledge_app.models import HeldChange, MemoryDocument
from knowledge_app.services.documents.proposals import propose_text
from memoryhub.demo import proposed_memory, write_demo
from sessions_app.models import Workspace
from sessions_app.services.audit import Actor, By

AGENT = Actor("agent", "Atlas")


def prepare_demo(today: date) -> dict[str, Path]:
    """Write the demo's folders to MEMORYHUB_HOME; return their paths by workspace name.

    The story ends on the day of the first call, so that opening the demo again changes nothing.
    """
    folder = _folder()
    folder.mkdir(parents=True, exist_ok=True)
    last_day = folder / "last-day"
    if not last_day.exists():
        last_day.write_text(today.isoformat())
    return write_demo(folder, today=_last_day())


def let_the_demo_propose(workspace: Workspace, *, now: datetime) -> None:
    """Propose a new MEMORY.md for the demo's Atlas workspace, once. Does nothing for other workspaces."""
    if workspace.path != str(_folder() / "atlas"):
        return
    document = MemoryDocument.objects.filter(workspace=workspace, name="MEMORY.md").first()
    if document is None or HeldChange.objects.filter(document=document).exists():
        return
    propose_text(
        document, proposed_memory(_last_day()), base_number=None, by=By(AGENT, now), reason="Tidied up after 1.9"
    )


def _folder() -> Path:
    folder: Path = settings.MEMORYHUB_HOME / "agents" / "demo"
    return folder


def _last_day() -> date:
    return date.fromisoformat((_folder() / "last-day").read_text())
