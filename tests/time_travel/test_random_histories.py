"""Snapshots of random histories equal what was seen at each moment."""

from __future__ import annotations

import contextlib
import random
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import pytest

from knowledge_app.models import Fact, HistoryEntry, KeyValue, KnowledgeEntry, MemoryDocument, Observation
from knowledge_app.services.documents.consolidation import apply_proposal, plan_consolidation, undo_consolidation
from knowledge_app.services.documents.consolidation_guard import Proposal
from knowledge_app.services.documents.editing import curate_facts, restore_revision, save_text, start_document
from knowledge_app.services.documents.history import add_note
from knowledge_app.services.rows.key_values import write_value
from knowledge_app.services.rows.knowledge import KnowledgeExists, add_knowledge, merge_groups, save_entry
from knowledge_app.services.rows.observations import NewObservation, store
from knowledge_app.services.rows.undoable_edits import edit_rows, undo_edit
from memoryhub.lib.scanners import MASK
from memoryhub.processes import this_process
from memoryhub.time_travel.snapshots import as_of
from sessions_app.models import Run, Session, Workspace
from sessions_app.services.audit import By
from sessions_app.services.compressing.compression import apply_summary, plan_compression, undo_compression
from sessions_app.services.lifecycle import clear_session, open_session
from sessions_app.services.runs import RunNotFitting, claim_run, request_run
from tests.hub import NOW, PERSON, add, turn

pytestmark = pytest.mark.django_db
WORDS = ["tea", "milk", "harbour", "deploy", "Friday", "pool", "limit", "courier", "window", "paper"]


@dataclass
class Hub:
    """A workspace with random changes, one minute apart."""

    workspace: Workspace
    pick: random.Random
    now: datetime = NOW

    def by(self) -> By:
        return By(PERSON, self.now)

    def text(self, count: int = 5) -> str:
        return f"{' '.join(self.pick.choices(WORDS, k=count))} {self.pick.randrange(10_000)}"

    def one_of(self, rows: Any) -> Any:
        found = list(rows.order_by("pk"))
        return self.pick.choice(found) if found else None

    def step(self) -> str:
        self.now += timedelta(minutes=1)
        step = self.pick.choice(STEPS)
        step(self)
        return step.__name__


def revise(hub: Hub) -> None:
    document = start_document(hub.workspace, hub.pick.choice(["MEMORY.md", "USER.md"]))
    lines = document.head.content.split("\n") if document.head else ["# About", "", "## Work"]
    place = hub.pick.randrange(2, max(3, len(lines) + 1))
    if place < len(lines) and hub.pick.random() < 0.5:
        lines[place : place + 1] = [] if hub.pick.random() < 0.5 else [f"{lines[place]} indeed"]
    else:
        lines.insert(place, f"- [{hub.pick.choice(WORDS)}] {hub.text()}")
    base = document.head.number if document.head else 0
    save_text(document, "\n".join(lines), base_number=base, reason="edited", by=hub.by())


def restore(hub: Hub) -> None:
    document = hub.one_of(MemoryDocument.objects.filter(head__isnull=False))
    if document:
        restore_revision(document, hub.pick.randint(1, document.head.number), by=hub.by())


def pin(hub: Hub) -> None:
    fact = hub.one_of(Fact.objects.filter(died=None))
    pinned = hub.pick.random() < 0.6
    if fact and hub.pick.random() < 0.5:
        curate_facts(fact.document, [fact.pk], pinned=pinned, by=hub.by())
    elif fact:
        edit_rows(hub.workspace, "facts", "pin" if pinned else "unpin", [fact.pk], by=hub.by())


def learn(hub: Hub) -> None:
    tags = hub.pick.sample(WORDS, 2)
    add_knowledge(hub.workspace, hub.text(), category="learned_fact", source="talk", tags=tags, by=hub.by())


def reword(hub: Hub) -> None:
    entry = hub.one_of(KnowledgeEntry.objects.filter(withdrawn_at=None))
    if entry:
        with contextlib.suppress(KnowledgeExists):
            save_entry(entry, {"content": hub.text(), "category": "error_pattern"}, by=hub.by())


def merge(hub: Hub) -> None:
    pks = list(KnowledgeEntry.objects.filter(withdrawn_at=None).order_by("pk").values_list("pk", flat=True))
    if len(pks) > 1:
        merge_groups(hub.workspace, [pks[:2]], by=hub.by())


def withdraw(hub: Hub) -> None:
    table, model = hub.pick.choice(
        [("knowledge", KnowledgeEntry), ("observations", Observation), ("key_values", KeyValue)]
    )
    row = hub.one_of(model.objects.all())
    if row:
        action = "return" if row.withdrawn_at else "withdraw"
        edit_rows(hub.workspace, table, action, [row.pk], values={"reason": "old"}, by=hub.by())


def undo(hub: Hub) -> None:
    run = hub.one_of(Run.objects.filter(status="done"))
    undoing = {"edit": undo_edit, "compression": undo_compression, "consolidation": undo_consolidation}
    if run:
        with contextlib.suppress(RunNotFitting):
            undoing[run.kind](run, by=hub.by())


def observe(hub: Hub) -> None:
    store(hub.workspace, [NewObservation("finding", hub.text(), "desk")], by=hub.by())


def write(hub: Hub) -> None:
    key = hub.pick.choice(["colour", "size", "db_password"])
    write_value(hub.workspace, key, hub.text(2), by=hub.by())


def note(hub: Hub) -> None:
    add_note(hub.workspace, hub.text(), by=hub.by())


def say(hub: Hub) -> None:
    session, _ = open_session(hub.workspace, hub.pick.choice(["cli:a", "cli:b"]), by=hub.by())
    add(session, turn(hub.pick.randrange(100), words=3), now=hub.now)


def started(hub: Hub, kind: str) -> tuple[Session, Run] | tuple[None, None]:
    session = hub.one_of(Session.objects.select_related("workspace"))
    if session is None:
        return None, None
    run, _ = request_run(session, kind, options={}, by=hub.by())
    return session, claim_run(run.pk, owner=this_process(), now=hub.now)


def drop(run: Run) -> None:
    Run.objects.filter(pk=run.pk).update(status="cancelled")


def fold(hub: Hub) -> None:
    session, run = started(hub, "compression")
    if session and run:
        plan = plan_compression(session, keep=2, minimum=1)
        if plan.entries or plan.summaries:
            apply_summary(run, plan, hub.text(), method="heuristic", now=hub.now)
        else:
            drop(run)


def consolidate(hub: Hub) -> None:
    session, run = started(hub, "consolidation")
    if session and run:
        plan = plan_consolidation(session, archive_all=True, limit=hub.pick.randint(2, 8))
        memory = f"{plan.memory.rstrip()}\n- {hub.text()}\n"
        apply_proposal(run, plan, Proposal(memory, hub.text()), now=hub.now) if plan.entries else drop(run)


def clear(hub: Hub) -> None:
    session = hub.one_of(Session.objects.select_related("workspace"))
    if session and hub.pick.random() < 0.4:
        clear_session(session, by=hub.by())


STEPS = [revise, revise, restore, pin, learn, learn, reword, merge, withdraw, withdraw, undo, undo, observe, write]
STEPS += [note, say, say, say, fold, fold, consolidate, consolidate, clear]


def present(workspace: Workspace) -> dict[str, Any]:
    """Return the current memory from ordinary queries."""
    return {
        "documents": {
            row.name: row.head.content
            for row in MemoryDocument.objects.filter(workspace=workspace, head__isnull=False).select_related("head")
        },
        "facts": sorted(
            Fact.objects.filter(workspace=workspace, died=None).values_list("document", "line", "section", "text")
        ),
        "pins": dict(Fact.objects.filter(workspace=workspace, died=None).values_list("pk", "pinned")),
        "knowledge": {
            row.pk: (row.category, row.content, row.source, tuple(row.tags), row.withdrawn_at is not None)
            for row in KnowledgeEntry.objects.filter(workspace=workspace)
        },
        "observations": {
            row.pk: (row.category, row.content, row.source, row.withdrawn_at is not None)
            for row in Observation.objects.filter(workspace=workspace)
        },
        "key_values": {
            row.key: (MASK if row.is_secret else row.value, row.withdrawn_at is not None)
            for row in KeyValue.objects.filter(workspace=workspace)
        },
        "history": [
            (row.position, row.content, row.withdrawn_at is not None)
            for row in HistoryEntry.objects.filter(workspace=workspace).order_by("position")
        ],
        "sessions": {
            row.key: (
                (row.epoch, row.last_consolidated, row.entry_count, row.total_tokens),
                (row.active_entry_count, row.active_tokens),
                sorted(row.summaries.values_list("content", flat=True)),
            )
            for row in Session.objects.filter(workspace=workspace)
        },
    }


def past(workspace: Workspace, at: datetime) -> dict[str, Any]:
    """Return a snapshot in the same shape, without pins declared unknown."""
    then = as_of(workspace, at)
    return {
        "documents": {one.name: one.content for one in then.documents},
        "facts": sorted((one.document, one.line, one.section, one.text) for one in then.facts),
        "pins": {one.pk: one.pinned for one in then.facts if one.pinned is not None},
        "knowledge": {
            one.pk: (one.category, one.content, one.source, one.tags, one.withdrawn) for one in then.knowledge
        },
        "observations": {one.pk: (one.category, one.content, one.source, one.withdrawn) for one in then.observations},
        "key_values": {one.key: (one.value, one.withdrawn) for one in then.key_values},
        "history": [(one.position, one.content, one.withdrawn) for one in then.history],
        "sessions": {
            one.key: (
                (one.epoch, one.pointer, one.entry_count, one.total_tokens),
                (one.active_entry_count, one.active_tokens),
                sorted(summary.content for summary in one.summaries),
            )
            for one in then.sessions
        },
    }


@pytest.mark.slow
@pytest.mark.postgres
@pytest.mark.parametrize("seed", [1, 2])
def test_snapshots_equal_what_was_seen_at_each_moment(workspace, seed):
    hub = Hub(workspace, random.Random(seed))
    seen = []
    for _ in range(30):
        name = hub.step()
        seen.append((hub.now, name, present(workspace)))

    for at, name, was in seen:
        told = past(workspace, at)
        pins = told.pop("pins")
        assert pins.items() <= was.pop("pins").items(), (at, name)
        assert told == was, (at, name)
    assert as_of(workspace, hub.now).gaps == ()
