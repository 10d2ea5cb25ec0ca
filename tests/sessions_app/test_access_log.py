"""The access log as rows: what was seen, once a minute, without a word of it, and for as long as it is kept."""

import sqlite3
from datetime import timedelta

import pytest
from django.core.cache import cache
from django.db import DatabaseError, connection

from knowledge_app.models import Fact
from knowledge_app.services.documents.revisions import open_document, revise_document
from memoryhub.agents.api_tokens import issue_token, revoke_token
from memoryhub.models import AccessedRow, AccessRecord
from memoryhub.sweeps import prune
from sessions_app.models import Entry, Session
from sessions_app.services.access_log import (
    Seen,
    accesses_of_entry,
    accesses_of_fact,
    accesses_of_row,
    log_access,
    seen_entries,
    seen_epoch,
    seen_revision,
    seen_rows,
    seen_sessions,
)
from sessions_app.services.audit import By
from tests.hub import AGENT, NOW, PERSON, add, open_at

pytestmark = pytest.mark.django_db


def note(workspace, seen, *, action="entries.read", actor=PERSON, now=NOW):
    log_access(workspace, action, seen, by=By(actor, now), via="page")


def test_entries_are_stretches_without_a_gap(workspace):
    session = open_at(workspace)
    add(session, [{"role": "user", "content": str(number)} for number in range(6)])
    entries = Entry.objects.exclude(position=3).order_by("-position")

    assert seen_entries(entries) == [
        Seen("entries", 0, 2, session.pk, 0),
        Seen("entries", 4, 5, session.pk, 0),
    ]


def test_an_epoch_is_one_stretch_and_an_empty_one_none(workspace):
    session = open_at(workspace)

    assert seen_epoch(session, None) == []
    add(session, [{"role": "user", "content": "a"}, {"role": "user", "content": "b"}])
    assert seen_epoch(session, 0) == [Seen("entries", 0, 1, session.pk, 0)]


def test_a_reading_is_one_record_with_its_rows(workspace):
    note(workspace, [*seen_rows("knowledge", [7, 3, 7]), Seen("entries", 2, 5, 9)])

    access = AccessRecord.objects.get()
    assert (access.actor_kind, access.actor_name, access.via) == ("person", "olga", "page")
    assert access.row_count == 6
    assert list(access.rows.order_by("id").values_list("table", "parent", "first", "last")) == [
        ("knowledge", 0, 3, 3),
        ("knowledge", 0, 7, 7),
        ("entries", 9, 2, 5),
    ]


def test_nothing_seen_is_nothing_written(workspace):
    note(workspace, [])

    assert not AccessRecord.objects.exists()


def test_the_same_again_is_written_once_a_minute(workspace):
    for _ in range(3):
        note(workspace, seen_rows("knowledge", [1]))
    note(workspace, seen_rows("knowledge", [2]))
    note(workspace, seen_rows("knowledge", [1]), actor=AGENT)
    cache.clear()  # a minute later
    note(workspace, seen_rows("knowledge", [1]))

    assert AccessRecord.objects.count() == 4


def test_a_log_that_cannot_be_written_keeps_nobody_from_reading(workspace, monkeypatch, caplog):
    def refuse(*_args, **_values):
        raise DatabaseError("disk full")

    monkeypatch.setattr("sessions_app.services.access_log.insert_rows", refuse)

    note(workspace, seen_rows("knowledge", [1]))

    assert not AccessRecord.objects.exists()
    assert "disk full" in caplog.text


@pytest.mark.django_db(transaction=True)
@pytest.mark.skipif(connection.vendor != "sqlite", reason="PostgreSQL has many writers")
def test_a_reader_does_not_wait_long_for_another_writer(workspace, monkeypatch, caplog):
    monkeypatch.setattr("memoryhub.lib.database.db_retry.MAX_WAIT", 0.05)
    connection.ensure_connection()
    usual = connection.cursor().execute("PRAGMA busy_timeout").fetchone()
    other = sqlite3.connect(connection.settings_dict["NAME"], isolation_level=None)
    other.execute("BEGIN IMMEDIATE")

    note(workspace, seen_rows("knowledge", [1]))
    other.close()

    assert "is locked" in caplog.text
    assert connection.cursor().execute("PRAGMA busy_timeout").fetchone() == usual
    note(workspace, seen_rows("knowledge", [1]))
    assert AccessRecord.objects.count() == 1


def test_an_entry_is_found_in_the_stretches_that_cover_it(workspace):
    session = open_at(workspace)
    add(session, [{"role": "user", "content": str(number)} for number in range(4)])
    note(workspace, [Seen("entries", 0, 1, session.pk, 0)], action="a.a")
    note(workspace, [Seen("entries", 1, 3, session.pk, 0)], action="b.b")
    note(workspace, [Seen("entries", 0, 3, session.pk, 1)], action="c.c")

    def readers(position):
        found = accesses_of_entry(Entry.objects.get(position=position)).order_by("id")
        return list(found.values_list("action", flat=True))

    assert [readers(position) for position in (0, 1, 2)] == [["a.a"], ["a.a", "b.b"], ["b.b"]]


def test_a_fact_was_seen_by_itself_or_in_a_revision_that_had_it(workspace):
    document = open_document(workspace, "MEMORY.md")
    head = None
    for text in ("- tea\n", "- tea\n- salt\n", "- tea\n- salt\n- rice\n", "- tea\n- rice\n"):
        head = revise_document(document, text, base=head, reason="r", by=By(PERSON, NOW))
        note(workspace, [seen_revision(document.pk, head.number)], action=f"revision.{head.number}")
    salt = Fact.objects.get(text="salt")
    note(workspace, seen_rows("facts", [salt.pk]), action="facts.read")

    found = accesses_of_fact(salt.pk, document.pk, born=salt.born.number, died=salt.died.number)

    assert set(found.values_list("action", flat=True)) == {"revision.2", "revision.3", "facts.read"}
    assert not accesses_of_row("knowledge", salt.pk).exists()


def test_old_readings_are_dropped_by_upkeep(workspace, settings):
    settings.MEMORYHUB_ACCESS_DAYS = 30
    for days in (29, 31):
        note(workspace, seen_rows("knowledge", [days]), now=NOW - timedelta(days=days))

    prune(NOW)

    assert AccessedRow.objects.get().first == 29
    settings.MEMORYHUB_ACCESS_DAYS = 0
    prune(NOW + timedelta(days=9_000))
    assert AccessRecord.objects.count() == 1


def test_a_token_s_reading_is_not_taken_for_its_namesake_s(workspace):
    for _ in range(2):  # the first is revoked, so that its name is free
        token, _ = issue_token(workspace, "atlas", ["read"], by=By(PERSON, NOW))
        log_access(
            workspace, "knowledge.read", seen_rows("knowledge", [1]), by=By(AGENT, NOW), via="rest", token=token
        )
        revoke_token(token, by=By(PERSON, NOW))

    assert AccessRecord.objects.values("token").distinct().count() == 2


def test_only_entries_of_the_session_and_its_current_epoch_count_as_read(workspace):
    mine, other, begun_anew = (open_at(workspace, f"cli:{name}") for name in ("mine", "other", "anew"))
    for session, count in ((mine, 1), (other, 3), (begun_anew, 2)):
        add(session, [{"role": "user", "content": str(number)} for number in range(count)])
    Session.objects.filter(pk=begun_anew.pk).update(epoch=1)

    assert seen_epoch(mine, None) == [Seen("entries", 0, 0, mine.pk, 0)]
    assert seen_sessions([other.pk, mine.pk, begun_anew.pk]) == [
        Seen("entries", 0, 0, mine.pk, 0),
        Seen("entries", 0, 2, other.pk, 0),
    ]
