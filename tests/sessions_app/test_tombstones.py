"""Imports recognise deleted sessions under other keys."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sessions_app.models import Session, Workspace
from sessions_app.services.audit import By
from sessions_app.services.lifecycle import delete_session
from tests.hub import PERSON
from tests.records import session_record
from tests.sessions_app.test_importing import NOW, contents, take

pytestmark = pytest.mark.django_db


def deleted(workspace: Workspace, *contents: str, timed: bool = True) -> None:
    """Import and delete a session."""
    take(workspace, session_record(*contents, timed=timed))
    session = Session.objects.get()
    delete_session(session, confirmation=session.key, reason="", by=By(PERSON, NOW))


@pytest.mark.parametrize("later", [(), ("d",)])
def test_a_copy_of_a_deleted_session_under_another_key_is_not_taken(workspace, later):
    deleted(workspace, "a", "b", "c")

    tally = take(workspace, session_record("a", "b", "c", *later, key="cli:test@two"))

    assert [problem.outcome for problem in tally.problems] == ["ignored"]
    assert "cli:test that olga deleted" in tally.problems[0].what
    assert not Session.objects.exists()


@pytest.mark.parametrize(("count", "chars", "is_taken"), [(4, 75, False), (4, 74, True), (3, 100, True)])
def test_a_copy_without_times_is_recognised_by_what_it_says(workspace, count, chars, is_taken):
    said = [letter * chars for letter in "abcd"[:count]]
    deleted(workspace, *said, timed=False)

    take(workspace, session_record(*said, "and more", timed=False, key="cli:test@two"))

    assert Session.objects.exists() == is_taken


def test_other_sessions_are_taken_after_one_was_deleted(workspace):
    deleted(workspace, "a", "b")

    for number, record in enumerate(
        (session_record("a", "c"), session_record("a"), session_record("a", "b", timed=False))
    ):
        take(workspace, replace(record, key=f"cli:{number}"), path=f"{number}.jsonl")

    assert Session.objects.count() == 3


def test_a_copy_that_was_there_before_the_deletion_goes_on(workspace):
    take(workspace, session_record("a", "b", key="cli:copy"), path="copy.jsonl")
    take(workspace, session_record("a", "b"))
    session = Session.objects.get(key="cli:test")
    delete_session(session, confirmation=session.key, reason="", by=By(PERSON, NOW))

    take(workspace, session_record("a", "b", "c", key="cli:copy"), path="copy.jsonl")

    assert contents() == ["a", "b", "c"]


def test_a_deleted_session_without_messages_keeps_nothing_out(workspace):
    deleted(workspace)

    take(workspace, session_record("a", key="cli:other"))

    assert contents() == ["a"]
