"""Consolidating all of a session before clearing it."""

from __future__ import annotations

import pytest
from django.utils import timezone

from knowledge_app.models import HeldChange, HistoryEntry
from memoryhub.integrity import check_memory
from memoryhub.runs.executing import execute
from memoryhub.runs.review import approve
from sessions_app.models import Run, Session
from sessions_app.services.audit import By
from sessions_app.services.compressing.folding import archive_and_clear
from tests.hub import NOW, PERSON, add, executed, head, turn
from tests.runs.consolidations import BASE, FACTS, answer, consolidate, during_the_call, memory, saved

pytestmark = pytest.mark.django_db


def archive(session: Session) -> Run:
    run = archive_and_clear(session, by=By(PERSON, timezone.now()))
    done = executed(run)
    session.refresh_from_db()
    return done


def test_archiving_consolidates_everything_and_clears(session, httpserver):
    answer(httpserver, saved(memory(*FACTS, "tea is at four")))

    run = archive(session)

    assert (run.status, run.to_position, session.epoch, session.next_position) == ("done", 40, 1, 0)
    assert "tea is at four" in head()
    assert HistoryEntry.objects.get().run_id == run.pk
    assert not check_memory().broken


def test_archiving_that_fails_clears_nothing(session, httpserver):
    answer(httpserver, saved("..."))

    assert archive(session).status == "queued"
    assert (session.epoch, session.last_consolidated, HistoryEntry.objects.count()) == (0, 0, 0)


def test_archiving_an_empty_session_clears_it(session, httpserver):
    answer(httpserver, saved(BASE))
    consolidate(session, archive_all=True)
    httpserver.clear()

    run = archive(session)

    assert (run.status, session.epoch, httpserver.log) == ("done", 1, [])


def test_held_archive_clears_when_approved(session, httpserver):
    answer(httpserver, saved(memory(*FACTS[:5])))
    assert (archive(session).status, session.epoch) == ("held", 0)

    approve(HeldChange.objects.get(), by=By(PERSON, NOW))

    session.refresh_from_db()
    assert (head(), session.epoch) == (memory(*FACTS[:5]), 1)


def test_session_that_continued_is_not_cleared_by_a_late_approval(session, httpserver):
    answer(httpserver, saved(memory(*FACTS[:5])))
    archive(session)
    add(session, turn(50))

    approve(HeldChange.objects.get(), by=By(PERSON, NOW))

    session.refresh_from_db()
    assert (session.epoch, session.last_consolidated, Run.objects.count()) == (0, 40, 1)


def test_session_is_not_cleared_if_messages_arrive_during_archiving(session, httpserver, monkeypatch):
    answer(httpserver, saved(BASE))
    during_the_call(monkeypatch, lambda: add(session, turn(50)))

    assert "Entries were added" in archive(session).error
    assert (session.epoch, session.last_consolidated) == (0, 0)


def test_archiving_in_parts_clears_after_the_last(session, httpserver):
    answer(httpserver, saved(BASE))
    options = {"archive_all": True, "clear_after": True, "entries": 30}
    first = consolidate(session, **options)
    session.refresh_from_db()
    assert (first.status, session.epoch, session.last_consolidated) == ("done", 0, first.to_position)

    rest = Run.objects.get(status="queued")
    execute(rest.pk, now=timezone.now)

    session.refresh_from_db()
    assert session.epoch == 1


def test_archiving_without_a_model_keeps_the_messages_in_the_history(session, settings):
    settings.MEMORYHUB_LLM_MODEL = settings.MEMORYHUB_LLM_BASE_URL = ""

    assert archive(session).status == "done"
    assert session.epoch == 1
    assert "request 9" in HistoryEntry.objects.get().content
