"""No line is lost, whatever people do in the hub and an agent does to its file, in any order."""

from __future__ import annotations

import os
import shutil
import tempfile
from contextlib import suppress
from datetime import timedelta
from itertools import count
from pathlib import Path
from unittest.mock import patch

import pytest
from django.db import transaction
from django.test import override_settings
from django.utils import timezone
from hypothesis import HealthCheck
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from knowledge_app.models import HeldChange, MemoryDocument
from knowledge_app.services.documents.editing import EditConflict, save_text
from memoryhub.lib.errors import Conflict
from memoryhub.runs.review import approve, reject
from memoryhub.sync import write_back
from memoryhub.sync.importing import import_workspace
from memoryhub.sync.syncing import sync_workspace
from sessions_app.models import Workspace
from sessions_app.services.audit import Actor, By
from sessions_app.services.syncing import switch_sync
from tests.hub import PERSON

EXAMPLES = int(os.environ.get("MERGE_EXAMPLES", "20"))
AGENT_THINKS = timedelta(minutes=10)
START = (
    "# Memory\n\n## Facts\n\n" + "".join(f"- fact {letter}\n" for letter in "abcdefgh") + "\n## Notes\n\nA note.\n"
)
POSITION = st.integers(0, 40)
CHANGES = st.sampled_from(["append", "insert", "rewrite", "delete"])


class Killed(BaseException):
    pass


def changed(text: str, change: str, position: int, line: str) -> str:
    """Return a text with a line added, rewritten or deleted."""
    lines = text.split("\n")
    bullets = [number for number, other in enumerate(lines) if other.startswith("- ")]
    if change == "append" or not bullets:
        return text.rstrip("\n") + f"\n{line}\n"
    place = bullets[position % len(bullets)]
    if change == "insert":
        lines.insert(place, line)
    elif change == "rewrite":
        lines[place] = line
    else:
        del lines[place]
    return "\n".join(lines)


class MergeMachine(RuleBasedStateMachine):
    """``wanted``: lines that must be in the head or in a held change."""

    @initialize(policy=st.sampled_from(Workspace.AgentChanges.values))
    def begin(self, policy: str) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="memoryhub-merge-"))
        self.file = self.folder / "memory" / "MEMORY.md"
        self.file.parent.mkdir()
        self.now = timezone.now()
        self.write(START)
        self.atomic = transaction.atomic()
        self.atomic.__enter__()
        self.workspace = import_workspace(self.folder, by=self.by(), name="Merge").workspace
        switch_sync(self.workspace, follow=True, write_back=True, by=self.by())
        Workspace.objects.filter(pk=self.workspace.pk).update(agent_changes=policy)
        self.workspace.refresh_from_db()
        self.numbers = count()
        self.wanted: set[str] = set()
        self.unsynced: set[str] = set()
        self.read: tuple[str, object] | None = None
        self.page = (self.head().content, self.head().number)

    def teardown(self) -> None:
        if hasattr(self, "atomic"):
            transaction.set_rollback(True)
            self.atomic.__exit__(None, None, None)
            shutil.rmtree(self.folder, ignore_errors=True)

    def by(self) -> By:
        return By(PERSON, self.now)

    def head(self):
        return MemoryDocument.objects.select_related("head").get(name="MEMORY.md").head

    def write(self, text: str) -> None:
        self.file.write_text(text)
        os.utime(self.file, (self.now.timestamp(), self.now.timestamp()))

    def write_as_agent(self, before: str, after: str) -> None:
        """Write a text made from another one: what is gone was removed knowingly, unless another program added it."""
        old, new = set(before.split("\n")), set(after.split("\n"))
        self.wanted -= old - new
        self.unsynced = {line for line in self.unsynced if line in new} | {
            line for line in new - old if "agent" in line
        }
        self.write(after)

    def save(self, text: str, number: int) -> None:
        document = MemoryDocument.objects.get(name="MEMORY.md")
        base = set(document.revisions.get(number=number).content.split("\n"))
        lines = set(text.split("\n"))
        before = set(self.head().content.split("\n"))
        try:
            save_text(document, text, base_number=number, by=self.by(), reason="edited")
        except EditConflict:  # the page shows both texts
            return
        self.wanted -= before & (base - lines)
        self.wanted |= {line for line in lines - base if line.strip()}

    @rule(change=CHANGES, position=POSITION)
    def person_edits(self, change: str, position: int) -> None:
        head = self.head()
        self.save(changed(head.content, change, position, f"- hub fact {next(self.numbers)}"), head.number)

    @rule()
    def person_opens_the_editor(self) -> None:
        self.page = (self.head().content, self.head().number)

    @rule(change=CHANGES, position=POSITION)
    def person_saves_the_open_editor(self, change: str, position: int) -> None:
        text, number = self.page
        self.save(changed(text, change, position, f"- hub fact {next(self.numbers)}"), number)
        self.page = (self.head().content, self.head().number)

    @rule(change=CHANGES, position=POSITION)
    def agent_edits(self, change: str, position: int) -> None:
        text = self.file.read_text()
        self.write_as_agent(text, changed(text, change, position, f"- agent fact {next(self.numbers)}"))

    @rule()
    def agent_reads(self) -> None:
        self.read = (self.file.read_text(), self.now)

    @precondition(lambda self: self.read is not None)
    @rule(changes=st.lists(st.tuples(CHANGES, POSITION), max_size=3))
    def agent_writes_what_it_thought(self, changes: list[tuple[str, int]]) -> None:
        text, read_at = self.read
        self.read = None
        if self.now - read_at > AGENT_THINKS:
            return
        after = text
        for change, position in changes:
            after = changed(after, change, position, f"- agent fact {next(self.numbers)}")
        self.wanted -= {
            line for line in self.wanted if "agent" in line and line not in text and line in self.file.read_text()
        }
        self.write_as_agent(text, after)

    @rule(share=st.floats(0, 1), position=POSITION)
    def agent_truncates_and_writes(self, share: float, position: int) -> None:
        text = self.file.read_text()
        after = changed(text, "insert", position, f"- agent fact {next(self.numbers)}")
        part = after[: int(len(after) * share)]
        self.write(part)
        self.sync()
        is_untouched = self.file.read_text() == part  # else it goes on writing into the file that the hub replaced
        self.write_as_agent(text, after) if is_untouched else self.write_as_agent(text, part)

    @rule(seconds=st.integers(1, 600))
    def time_passes(self, seconds: int) -> None:
        self.now += timedelta(seconds=seconds)

    @rule()
    def sync(self) -> None:
        self.want_what_is_in_the_file()
        sync_workspace(self.workspace, by=By(Actor("sync", "worker"), self.now), wait=False)
        self.now += timedelta(seconds=1)

    @rule()
    def sync_is_killed_after_writing(self) -> None:
        self.want_what_is_in_the_file()
        by = By(Actor("sync", "worker"), self.now)
        with patch.object(write_back, "record_written", side_effect=Killed), suppress(Killed):
            sync_workspace(self.workspace, by=by, wait=False)

    def want_what_is_in_the_file(self) -> None:
        self.now += timedelta(seconds=1)
        synced = self.unsynced & set(self.file.read_text().split("\n"))
        self.wanted |= synced
        self.unsynced -= synced

    @rule(accept=st.booleans())
    def person_decides(self, *, accept: bool) -> None:
        change = HeldChange.objects.filter(status="pending").order_by("id").first()
        if change is None:
            return
        before = set(self.head().content.split("\n"))
        try:
            approve(change, by=self.by()) if accept else reject(change, by=self.by())
        except Conflict:
            return
        self.wanted -= before - set(self.head().content.split("\n"))

    @invariant()
    def every_line_is_kept(self) -> None:
        if not hasattr(self, "wanted"):
            return
        texts = [self.head().content]
        texts += HeldChange.objects.exclude(status="superseded").values_list("proposed", flat=True)
        kept = {line for text in texts for line in text.split("\n")}
        kept |= {line for line in self.file.read_text().split("\n") if "agent" in line}  # the next sync imports it
        assert self.wanted <= kept, sorted(self.wanted - kept)


@pytest.mark.slow
@pytest.mark.django_db
def test_no_line_is_lost() -> None:
    options = {"max_examples": EXAMPLES, "stateful_step_count": 15, "deadline": None, "derandomize": True}
    budget = hypothesis_settings(**options, suppress_health_check=list(HealthCheck))
    with override_settings(MEMORYHUB_QUIET_SECONDS=0):
        run_state_machine_as_test(MergeMachine, settings=budget)
