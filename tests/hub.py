"""Short functions that create rows and run work as agents and workers do."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from knowledge_app.models import HeldChange, MemoryDocument
from memoryhub.jobs.queue import do_next_job
from memoryhub.lib.errors import MemoryHubError
from memoryhub.runs.executing import execute
from sessions_app.models import AuditRecord, Membership, Run, Session, Workspace
from sessions_app.services.audit import Actor, By
from sessions_app.services.entries import Appended, append
from sessions_app.services.lifecycle import open_session
from sessions_app.services.parsing import read_batch
from sessions_app.services.runs import request_run

NOW = datetime(2026, 4, 1, 12, tzinfo=UTC)
AGENT = Actor("agent", "atlas")
PERSON = Actor("person", "olga")


@contextmanager
def raises_code(code: str, *, match: str | None = None) -> Iterator[pytest.ExceptionInfo[MemoryHubError]]:
    """Expect an error by its stable code."""
    with pytest.raises(MemoryHubError, match=match) as caught:
        yield caught
    assert caught.value.code == code


def run_jobs() -> None:
    """Execute the waiting jobs, as a worker would."""
    while do_next_job(clock=timezone.now):
        pass


def by() -> By:
    """Return a person who acts now."""
    return By(PERSON, timezone.now())


def url(name: str, *args: object) -> str:
    """Return the address of a page of the workspace atlas."""
    return reverse(name, args=["atlas", *args])


def member(workspace: Workspace, name: str, role: str) -> User:
    """Create a person with a role in a workspace."""
    user = User.objects.create_user(name)
    Membership.objects.create(workspace=workspace, user=user, role=role)
    return user


def client_of(user: User) -> Client:
    """Return a browser in which a person is signed in."""
    client = Client()
    client.force_login(user)
    return client


def open_at(workspace: Workspace, key: str = "cli:main") -> Session:
    return open_session(workspace, key, by=By(AGENT, NOW))[0]


def add(session: Session, rows: Sequence[dict[str, Any]], *, key: str = "", now: datetime = NOW) -> Appended:
    return append(session, read_batch(list(rows), now=now), by=By(AGENT, now), idempotency_key=key)


def head() -> str:
    """Return the text of the only document."""
    return MemoryDocument.objects.select_related("head").get().head.content


def turn(number: int, *, tools: int = 1, words: int = 30) -> list[dict[str, Any]]:
    """Return a user message, tool calls with results, and an answer."""
    rows: list[dict[str, Any]] = [{"role": "user", "content": f"request {number} " + "please look " * words}]
    for step in range(tools):
        call = {
            "id": f"c{number}-{step}",
            "type": "function",
            "function": {"name": "shell", "arguments": '{"c":"ls"}'},
        }
        rows.append({"role": "assistant", "content": "", "tool_calls": [call]})
        rows.append(
            {"role": "tool", "tool_call_id": call["id"], "name": "shell", "content": f"out {number} " * words}
        )
    rows.append({"role": "assistant", "content": f"answer {number} " * words})
    return rows


def talk(session: Session, turns: int, *, first: int = 0, **values: int) -> None:
    for number in range(first, first + turns):
        add(session, turn(number, **values), now=NOW + timedelta(minutes=number))


def executed(run: Run) -> Run:
    """Execute a queued run, as a worker would."""
    done = execute(run.pk, now=timezone.now)
    assert done is not None
    return done


def compress(session: Session, **options: Any) -> Run:
    """Request a compression and execute it, as a worker would."""
    run, _ = request_run(session, Run.Kind.COMPRESSION, options=options, by=By(PERSON, timezone.now()))
    return executed(run)


def figures(run: Run) -> dict[str, Any]:
    """Return the numbers of rows that an edit changed and skipped."""
    return {name: run.proposal[name] for name in ("changed", "passed_over")}


def recorded_supersessions() -> list[int]:
    """Return the held changes that the audit log says are superseded; fail if another one is."""
    records = AuditRecord.objects.filter(action="change.superseded").order_by("pk")
    recorded = [(int(one.object_id), one.at) for one in records]
    superseded = HeldChange.objects.filter(status="superseded").values_list("pk", "decided_at")
    assert set(superseded) <= set(recorded)
    return [pk for pk, _ in recorded]
