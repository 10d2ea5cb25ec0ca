"""Invariants of sessions and runs under random appends, imports, compressions, failures, crashes and late replies."""

from __future__ import annotations

import itertools
import os
from datetime import timedelta
from unittest.mock import patch

import pytest
from django.db import connection, transaction
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test

from memoryhub.conversations.context import build_context
from memoryhub.integrity import CHECKS, check_memory
from memoryhub.lib.errors import Busy, Invalid, MemoryHubError
from memoryhub.lib.layouts.records import SessionRecord
from memoryhub.lib.llm import ModelSettings, Reply
from memoryhub.processes import this_process
from memoryhub.runs import compress
from memoryhub.runs.executing import execute
from sessions_app.models import Entry, Run, Session, Summary, Workspace
from sessions_app.services.audit import By
from sessions_app.services.compressing.compression import undo_compression
from sessions_app.services.importing import import_conversation
from sessions_app.services.lifecycle import SessionBusy, clear_session, delete_session, open_session
from sessions_app.services.runs import (
    LeaseLost,
    RunNotFitting,
    cancel_run,
    claim_run,
    dismiss_run,
    free_stuck_runs,
    request_run,
    retry_run,
)
from tests.hub import NOW, PERSON, add, turn
from tests.records import session_record

MODEL = ModelSettings("http://127.0.0.1:1/v1", "scripted")
GONE = f"{this_process().rsplit(':', 2)[0]}:999999:gone"
REPLIES = {
    "good": Reply("They looked at the label service.", "scripted", 100, 10),
    "refusal": Reply("I'm sorry, I can't do that.", "scripted", 100, 10),
    "longer": Reply("It went on and on. " * 5000, "scripted", 100, 9000),
    "down": Busy("The model's server can't be reached.", code="model_unavailable"),
    "empty": Invalid("The reply holds no text.", code="bad_reply"),
}
KEYS = st.sampled_from(["cli:a", "cli:b"])
TABLES = ("entries.", "sessions.", "daily.", "runs.", "appends.", "summaries.")
CHECKED_AFTER_EACH_STEP = [name for name in CHECKS if name.startswith(TABLES)]  # the others, at the end


class Memory(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.savepoint = transaction.savepoint()
        self.workspace = Workspace.objects.create(
            slug="m", name="M", max_entries=20, max_tokens=1500, recent_window=6
        )
        self.said: dict[tuple[str, int], list[str]] = {}  # the expected content of each epoch
        self.numbers = itertools.count()
        self.late: list[Run] = []  # claimed by crashed workers

    def teardown(self) -> None:
        try:
            assert check_memory().broken == []
        finally:
            transaction.savepoint_rollback(self.savepoint)

    def now(self):
        return NOW + timedelta(minutes=next(self.numbers))

    def session(self, key: str) -> Session:
        return open_session(self.workspace, key, by=By(PERSON, self.now()))[0]

    def say(self, key: str, rows: list[dict], idempotency_key: str = "") -> None:
        session = self.session(key)
        appended = add(session, rows, key=idempotency_key, now=self.now())
        if not appended.is_repeat:
            ledger = self.said.setdefault((key, appended.epoch), [])
            ledger += [row.get("content", "") for row in rows]

    @rule(key=KEYS, tools=st.integers(0, 3), turns=st.integers(1, 5))
    def append(self, key, tools, turns):
        for _ in range(turns):
            self.say(key, turn(next(self.numbers), tools=tools, words=3))

    @rule(key=KEYS)
    def append_twice_with_one_key(self, key):
        number = next(self.numbers)
        for _ in range(2):
            self.say(key, turn(number), idempotency_key=f"k{number}")

    @rule(contents=st.lists(st.sampled_from("abcdef"), min_size=1, max_size=8), pointer=st.integers(0, 8))
    def import_source_file(self, contents, pointer):
        record: SessionRecord = session_record(*contents, key="cli:file", pointer=min(pointer, len(contents)))
        import_conversation(workspace=self.workspace, record=record, path="", now=self.now(), dry_run=False)

    @rule(key=KEYS, keep=st.sampled_from([None, 1, 6]), hold=st.booleans(), clear=st.booleans())
    def ask_for_compression(self, key, keep, hold, clear):
        options = {"hold": hold} | ({"keep": keep} if keep else {})
        options |= {"keep": 0, "minimum": 1, "clear_after": True, "hold": False} if clear else {}
        request_run(self.session(key), "compression", options=options, by=By(PERSON, self.now()))

    def waiting(self) -> Run | None:
        Run.objects.filter(status="queued").update(not_before=NOW)
        return Run.objects.filter(status="queued").order_by("id").first()

    @precondition(lambda self: Run.objects.filter(status="queued").exists())
    @rule(
        reply=st.sampled_from(sorted(REPLIES)), meanwhile=st.sampled_from(["", "append", "clear", "cancel", "delete"])
    )
    def work(self, reply, meanwhile):
        """Execute a run with a scripted reply while ``meanwhile`` happens."""
        run = self.waiting()

        def ask(_settings, _messages, *, max_tokens):
            assert max_tokens > 0
            self.interfere(run, meanwhile)
            answer = REPLIES[reply]
            if isinstance(answer, Exception):
                raise answer
            return answer

        with patch.object(compress, "model_for", lambda _: MODEL), patch.object(compress, "ask", ask):
            execute(run.pk, now=self.now)

    def interfere(self, run: Run, what: str) -> None:
        key = run.session.key
        if what == "append":
            self.say(key, turn(next(self.numbers), words=2))
        elif what == "cancel" and Run.objects.get(pk=run.pk).is_live:
            cancel_run(run, by=By(PERSON, self.now()))
        elif what == "clear":
            with pytest.raises(SessionBusy):
                clear_session(run.session, by=By(PERSON, self.now()))
        elif what == "delete":
            self.delete(key)

    def delete(self, key: str) -> None:
        delete_session(self.session(key), confirmation=key, reason="", by=By(PERSON, self.now()))
        self.said = {place: said for place, said in self.said.items() if place[0] != key}

    @precondition(lambda self: Run.objects.filter(status="queued").exists())
    @rule()
    def crash(self):
        """Let a worker claim a run and crash; another one frees it."""
        claimed = claim_run(self.waiting().pk, owner=GONE, now=self.now())
        if claimed:
            self.late.append(claimed)
            free_stuck_runs(self.now())

    @precondition(lambda self: self.late)
    @rule()
    def reply_late(self):
        """Let a worker that lost its lease return with its reply, which must be discarded."""
        run = self.late.pop()
        before = self.digest()
        with pytest.raises((LeaseLost, MemoryHubError)):
            compress.carry_out(run, now=self.now)
        assert self.digest() == before

    def digest(self):
        return (
            list(Summary.objects.order_by("id").values_list("id", "content", "parent")),
            list(Session.objects.order_by("id").values_list("id", "epoch", "active_tokens", "summary_tokens")),
        )

    @rule(key=KEYS)
    def clear(self, key):
        clear_session(self.session(key), by=By(PERSON, self.now()))

    @precondition(lambda self: Run.objects.filter(kind="compression", status="done").exists())
    @rule()
    def undo(self):
        run = Run.objects.filter(kind="compression", status="done").order_by("-id").first()
        try:
            undo_compression(run, by=By(PERSON, self.now()))
        except RunNotFitting:
            assert not Summary.objects.filter(run=run, parent=None).exists()

    @precondition(lambda self: Run.objects.filter(status="held").exists())
    @rule()
    def approve(self):
        run = Run.objects.filter(status="held").first()
        before = self.digest()
        try:
            with transaction.atomic():
                compress.approve_held(run, owner=this_process(), by=By(PERSON, self.now()))
        except MemoryHubError:
            assert self.digest() == before

    @precondition(lambda self: Run.objects.filter(status="parked").exists())
    @rule(way=st.sampled_from(["retry", "fold", "dismiss"]))
    def decide(self, way):
        run = Run.objects.filter(status="parked").first()
        try:
            if way == "dismiss":
                dismiss_run(run, note="enough", by=By(PERSON, self.now()))
            else:
                retry_run(run, by=By(PERSON, self.now()), by_rule=way == "fold")
        except RunNotFitting:
            assert Run.objects.filter(status="queued", session=run.session_id).exists()

    @invariant()
    def promises_hold(self):
        for name in CHECKED_AFTER_EACH_STEP:
            assert list(CHECKS[name]()[1]) == [], name

    @invariant()
    def nothing_said_is_lost(self):
        for (key, epoch), said in self.said.items():
            entries = Entry.objects.filter(session__key=key, epoch=epoch).order_by("position")
            assert list(entries.values_list("content", flat=True)) == said

    @invariant()
    def the_context_is_safe_and_within_its_budget(self):
        for session in Session.objects.select_related("workspace"):
            built = build_context(session)
            assert built.tokens <= self.workspace.max_tokens
            called: set[str] = set()
            for message in built.messages:
                assert message["role"] != "tool" or message["tool_call_id"] in called
                called |= {call["id"] for call in message.get("tool_calls", [])}


@pytest.mark.slow
@pytest.mark.django_db
def test_invariants_hold_in_every_order():
    examples = 8 if connection.vendor == "sqlite" else 3
    run_state_machine_as_test(
        Memory,
        settings=settings(
            max_examples=examples,
            stateful_step_count=25,
            deadline=None,
            suppress_health_check=list(HealthCheck),
            phases=[Phase.generate] + ([Phase.shrink] if os.environ.get("SHRINK") else []),
        ),
    )
