"""A snapshot equals what was visible at that moment, or declares what is unknown."""

from __future__ import annotations

from dataclasses import asdict
from datetime import UTC, datetime, timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from knowledge_app.models import Fact, KnowledgeEntry
from knowledge_app.services.documents.editing import save_text, start_document
from knowledge_app.services.documents.history import add_note
from knowledge_app.services.rows.key_values import write_value
from knowledge_app.services.rows.knowledge import add_knowledge, save_entry
from knowledge_app.services.rows.undoable_edits import edit_rows
from memoryhub.forgetting.erasure import ErasureRequest, apply_forget, plan_forget
from memoryhub.lib.scanners import MASK
from memoryhub.time_travel.parsing import InvalidMoment, parse_moment, url_time
from memoryhub.time_travel.snapshots import as_of, compare
from memoryhub.time_travel.timeline import suggested_moments
from sessions_app.models import Workspace
from sessions_app.services.audit import By
from sessions_app.services.lifecycle import delete_session, open_session
from tests.hub import NOW, PERSON, add, turn

pytestmark = pytest.mark.django_db


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
