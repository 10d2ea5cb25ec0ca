"""A snapshot equals what was visible at that moment, or declares what is unknown."""

from __future__ import annotations

import contextlib
import random
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from knowledge_app.models import Fact, HistoryEntry, KeyValue, KnowledgeEntry, MemoryDocument, Observation
from knowledge_app.services.documents.consolidation import (
    Proposal,
    apply_proposal,
    plan_consolidation,
    undo_consolidation,
)
from knowledge_app.services.documents.editing import curate_facts, restore_revision, save_text, start_document
from knowledge_app.services.documents.history import add_note
from knowledge_app.services.rows.key_values import write_value
from knowledge_app.services.rows.knowledge import KnowledgeExists, add_knowledge, merge_groups, save_entry
from knowledge_app.services.rows.observations import NewObservation, store
from knowledge_app.services.rows.undoable_edits import edit_rows, undo_edit
from memoryhub.forgetting.erasure import ErasureRequest, apply_forget, plan_forget
from memoryhub.lib.scanners import MASK
from memoryhub.processes import this_process
from memoryhub.time_travel.parsing import InvalidMoment, parse_moment, url_time
from memoryhub.time_travel.snapshots import as_of, compare
from memoryhub.time_travel.timeline import suggested_moments
from sessions_app.models import Run, Session, Workspace
from sessions_app.services.audit import By
from sessions_app.services.compression import apply_summary, plan_compression, undo_compression
from sessions_app.services.lifecycle import clear_session, delete_session, open_session
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


def at(minutes: int) -> By:
    return By(PERSON, NOW + timedelta(minutes=minutes))


def moment(minutes: int) -> datetime:
    return NOW + timedelta(minutes=minutes)


def write_text(workspace: Workspace, text: str, minutes: int) -> None:
    document = start_document(workspace, "MEMORY.md")
    number = document.head.number if document.head else 0
    save_text(document, text, base_number=number, reason="edited", by=at(minutes))


def test_forgotten_rows_are_absent_from_snapshots(workspace):
    write_text(workspace, "- Ines likes tea\n", 1)
    add_knowledge(workspace, "Ines is away on Friday", category="learned_fact", by=at(1))
    write_value(workspace, "contact", "Ines", by=at(1))
    write_text(workspace, "- nobody likes tea\n", 2)
    wish = ErasureRequest("phrase", ("Ines",))
    apply_forget(workspace, wish, expected=plan_forget(workspace, wish).total, reason="asked", by=at(3))

    then = as_of(workspace, moment(1))

    assert "Ines" not in str(asdict(then))
    assert "[forgotten]" in then.documents[0].content
    assert then.key_values == ()
    assert [gap.part for gap in then.gaps] == [""]


def test_a_deleted_session_is_absent_and_declared(workspace):
    session, _ = open_session(workspace, "cli:gone", by=at(1))
    add(session, turn(1), now=moment(1))
    delete_session(session, confirmation="cli:gone", reason="", by=at(2))

    then = as_of(workspace, moment(1))

    assert then.sessions == ()
    assert [gap.text for gap in then.gaps] == ["1 session was deleted since then and can't be shown."]


def test_a_value_that_became_secret_is_masked_in_snapshots(workspace):
    write_value(workspace, "note", "plain words", by=at(1))
    write_value(workspace, "note", "sk-abcdefghijklmnop1234", by=at(2))

    texts = str(asdict(as_of(workspace, moment(1)))) + str(asdict(compare(workspace, moment(1), moment(2))))

    assert "sk-abc" not in texts
    assert "plain words" not in texts


def test_an_unrecorded_pin_is_declared_unknown(workspace):
    write_text(workspace, "- tea\n", 1)
    Fact.objects.update(pinned=True)

    (fact,) = as_of(workspace, moment(1)).facts

    assert (fact.text, fact.pinned) == ("tea", None)


def test_comparing_two_moments_lists_added_changed_and_removed_rows(workspace):
    session, _ = open_session(workspace, "cli:main", by=at(1))
    add(session, turn(1), now=moment(1))
    write_text(workspace, "- tea at four\n- milk\n", 1)
    for text in ("kept as it is", "to be withdrawn", "to be reworded"):
        add_knowledge(workspace, text, category="learned_fact", by=at(1))
    _, going, changing = KnowledgeEntry.objects.order_by("pk")
    edit_rows(workspace, "knowledge", "withdraw", [going.pk], by=at(3))
    save_entry(changing, {"content": "to be reworded today"}, by=at(3))
    add_knowledge(workspace, "new", category="learned_fact", by=at(3))
    write_text(workspace, "- tea at five\n", 3)
    add(session, turn(2), now=moment(3))
    add_note(workspace, "moved", by=at(3))

    found = compare(workspace, moment(2), moment(4))

    assert [row.became for row in found.knowledge] == ["withdrawn", "changed", "added"]
    words = [piece for line in found.knowledge[1].diff for changed, piece in line.parts if changed]
    assert "".join(words).strip() == "today"
    (document,) = found.documents
    assert (document.facts_removed, document.facts_reworded) == (1, 1)
    assert [row.content for row in found.new_history] == ["moved"]
    assert [(row.key, row.new_entries) for row in found.sessions] == [("cli:main", 4)]
    assert compare(workspace, moment(4), moment(5)).knowledge == ()


def test_the_number_of_queries_does_not_grow_with_the_rows(workspace):
    def count_queries() -> int:
        with CaptureQueriesContext(connection) as queries:
            as_of(workspace, moment(60))
        return len(queries)

    def fill(number: int) -> None:
        session, _ = open_session(workspace, f"cli:{number}", by=at(number))
        add(session, turn(1), now=moment(number))
        add_knowledge(workspace, f"thing {number}", category="learned_fact", by=at(number))

    fill(1)
    few = count_queries()
    for number in range(2, 8):
        fill(number)

    assert count_queries() == few


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2026-03-01", datetime(2026, 3, 1, tzinfo=UTC)),
        ("2026-03-01T14:30:05+02:00", datetime(2026, 3, 1, 12, 30, 5, tzinfo=UTC)),
        ("7d", NOW - timedelta(days=7)),
        ("yesterday", NOW - timedelta(days=1)),
        ("today", NOW.replace(hour=0)),
        ("Now", NOW),
        ("36h", NOW - timedelta(hours=36)),
    ],
)
def test_moments_are_parsed_in_several_formats(text, expected):
    assert parse_moment(text, zone=UTC, now=NOW) == expected
    assert parse_moment(url_time(expected), zone=UTC, now=NOW) == expected


@pytest.mark.parametrize("text", ["", "soon", "2026-02-31", "9999999d", "2026-04-01T12:00:01Z"])
def test_invalid_and_future_moments_are_refused(text):
    with pytest.raises(InvalidMoment):
        parse_moment(text, zone=UTC, now=NOW)


def test_suggested_moments_are_within_the_memory():
    offered = suggested_moments([], NOW - timedelta(days=2), NOW)

    assert [choice.at for choice in offered] == [NOW - timedelta(days=1)]


def test_the_command_shows_a_moment_and_compares_two(workspace, command):
    write_text(workspace, "- tea\n", 1)
    write_text(workspace, "- milk\n", 3)

    then = command("past", "atlas", url_time(moment(2)))
    between = command("past", "atlas", url_time(moment(2)), "--compare", url_time(moment(4)))

    assert [(row["name"], row["content"]) for row in then["documents"]] == [("MEMORY.md", "- tea\n")]
    assert [row["after"]["revision"] for row in between["documents"]] == [2]
    until_now = command("past", "atlas", url_time(moment(2)), "--compare", "now")
    assert [row["after"]["revision"] for row in until_now["documents"]] == [2]
    assert command("past", "atlas", "now")["documents"][0]["content"] == "- milk\n"
    assert command("past", "atlas", "soon", status=1)["error"]["code"] == "no_such_time"


def test_a_key_that_ever_was_secret_is_masked_at_every_moment(workspace):
    for minutes, value in enumerate(("plain words", "sk-abcdefghijklmnop1234", "open again"), 1):
        write_value(workspace, "note", value, by=at(minutes))

    assert [as_of(workspace, moment(minutes)).key_values[0].value for minutes in (1, 2, 3)] == [MASK] * 3
