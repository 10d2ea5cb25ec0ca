import threading
from datetime import UTC, datetime

import pytest
from django.db import OperationalError, connection, transaction
from django.test.utils import CaptureQueriesContext

from memoryhub.integrity import check_memory
from sessions_app.models import AuditRecord, DailyTotal, Entry, Session
from sessions_app.services.audit import By
from sessions_app.services.lifecycle import delete_session
from sessions_app.services.parsing import read_batch
from sessions_app.services.stats import daily_totals
from tests.hub import NOW, PERSON, add, open_at, raises_code, talk, turn

pytestmark = pytest.mark.django_db


def test_batches_follow_one_another_without_a_gap(workspace):
    session = open_at(workspace)

    first, second = add(session, turn(0)), add(session, turn(1))

    assert (first.first_position, second.first_position) == (0, 4)
    assert list(Entry.objects.order_by("position").values_list("position", flat=True)) == list(range(8))
    assert not check_memory().broken


def test_totals_and_days_grow_with_each_append(workspace):
    session = open_at(workspace)
    talk(session, 3)

    session.refresh_from_db()

    tokens = sum(Entry.objects.values_list("token_count", flat=True))
    assert (session.entry_count, session.active_entry_count, session.next_position) == (12, 12, 12)
    assert session.total_tokens == session.active_tokens == tokens
    assert sum(DailyTotal.objects.filter(session=None).values_list("token_count", flat=True)) == tokens


def test_the_same_key_with_the_same_batch_adds_nothing(workspace):
    session = open_at(workspace)

    first, again = add(session, turn(0), key="k1"), add(session, turn(0), key="k1")

    assert (again.is_repeat, again.first_position, again.entry_count) == (True, first.first_position, 4)
    assert Entry.objects.count() == 4


def test_the_same_key_with_other_entries_is_refused(workspace):
    session = open_at(workspace)
    add(session, turn(0), key="k1")

    with raises_code("idempotency_key_reused"):
        add(session, turn(1), key="k1")
    assert Entry.objects.count() == 4


def test_an_append_costs_the_same_however_long_the_session_is(workspace):
    session = open_at(workspace)
    add(session, turn(0))
    with CaptureQueriesContext(
        connection,
    ) as few:
        add(session, turn(1))
    talk(session, 20, first=2)
    with CaptureQueriesContext(connection) as many:
        add(session, turn(30))

    assert len(many) == len(few)


@pytest.mark.django_db(transaction=True)
@pytest.mark.skipif(connection.vendor != "postgresql", reason="SQLite has one writer")
def test_appends_to_sessions_of_a_workspace_do_not_wait_for_each_other(workspace):
    first, second = open_at(workspace, "cli:one"), open_at(workspace, "cli:two")
    add(first, turn(0)), add(second, turn(0))
    outcomes = []

    def append_elsewhere():
        with connection.cursor() as cursor:
            cursor.execute("SET lock_timeout = '50ms'")
        try:
            add(second, turn(1))
            outcomes.append("added")
        except OperationalError as error:
            outcomes.append(str(error))
        finally:
            connection.close()

    with transaction.atomic():
        add(first, turn(1))
        other = threading.Thread(target=append_elsewhere)
        other.start()
        other.join()

    assert outcomes == ["added"]
    assert sum(row.entry_count for row in daily_totals(workspace)) == Entry.objects.count() == 16
    assert not check_memory().broken


def test_a_deleted_session_leaves_the_totals_of_the_others(workspace):
    sessions = [open_at(workspace, f"cli:{number}") for number in range(3)]
    for number, session in enumerate(sessions):
        talk(session, 1 + number)

    delete_session(sessions[1], confirmation="cli:1", reason="", by=By(PERSON, NOW))

    assert sum(row.entry_count for row in daily_totals(workspace)) == Entry.objects.count() == 16
    assert not check_memory().broken


def test_each_append_is_told_in_the_activity(workspace):
    session = open_at(workspace)
    add(session, turn(0))

    told = AuditRecord.objects.get(action="entry.added")

    assert (told.session_id, told.text) == (session.pk, "cli:main: added entries #0 to #3")
    assert told.detail["kinds"] == ["message", "tool_call", "tool_result"]


def test_entries_have_the_time_that_they_bring_else_now(workspace):
    session = open_at(workspace)
    add(
        session,
        [{"role": "user", "content": "a", "timestamp": "2026-01-02T03:04:05Z"}, {"role": "user", "content": "b"}],
    )

    times = list(Entry.objects.order_by("position").values_list("occurred_at", flat=True))

    assert times == [datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC), NOW]


@pytest.mark.slow
def test_tokens_are_exact_where_the_model_has_an_encoder(workspace):
    pytest.importorskip("toktok")
    workspace.model = "openai/gpt-4o-mini"
    workspace.save()
    add(open_at(workspace), [{"role": "user", "content": "antidisestablishmentarianism"}])

    entry = Entry.objects.get()

    assert (entry.token_count, entry.token_method) == (6, "o200k_base")


def test_other_models_get_the_stated_estimate(workspace):
    add(open_at(workspace), [{"role": "user", "content": "four" * 10}])

    assert Entry.objects.values_list("token_count", "token_method").get() == (10, "estimate")


@pytest.mark.parametrize(
    ("row", "kind", "role", "content"),
    [
        ({"role": "user", "content": "hi"}, "message", "user", "hi"),
        ({"kind": "context", "name": "src/main.ts", "content": "code"}, "context", "system", "code"),
        ({"kind": "tool_call", "name": "sh", "arguments": {"c": "ls"}}, "tool_call", "assistant", 'sh {"c": "ls"}'),
        ({"kind": "tool_result", "name": "shell", "content": "a.txt"}, "tool_result", "system", "a.txt"),
        ({"kind": "summary", "content": "before"}, "summary", "system", "before"),
        ({"role": "tool", "tool_call_id": "c", "content": ""}, "tool_result", "tool", ""),
        ({"role": "user", "content": [{"type": "text", "text": "part"}]}, "message", "user", "part"),
    ],
)  # fmt: skip
def test_what_agents_send_is_understood(row, kind, role, content):
    [record] = read_batch([row], now=NOW)

    assert (record.kind, record.role, record.content) == (kind, role, content)


@pytest.mark.parametrize(
    "row",
    [
        "text",
        {},
        {"content": "no role"},
        {"role": "pirate", "content": "x"},
        {"role": "user"},
        {"role": "user", "content": ""},
        {"role": "user", "content": {"deep": 1}},
        {"role": "user", "content": "x", "timestamp": "soon"},
        {"role": "user", "content": "x", "name": "n" * 600},
        {"role": "tool", "content": "no call"},
        {"role": "assistant", "tool_calls": [{"id": 5}]},
        {"kind": "thought", "role": "user", "content": "x"},
        {"role": "user", "content": "x" * (2 * 2**20 + 1)},
    ],
)
def test_what_can_not_be_kept_is_refused_with_its_place(row):
    with raises_code("bad_entry", match=r"entries\[1\]"):
        read_batch([{"role": "user", "content": "fine"}, row], now=NOW)


@pytest.mark.parametrize("rows", [[], None, "x", [{"role": "user", "content": "x"}] * 1001])
def test_a_batch_has_one_to_a_thousand_entries(rows):
    with raises_code("bad_entry"):
        read_batch(rows, now=NOW)


def test_a_batch_is_all_or_nothing(workspace, monkeypatch):
    session = open_at(workspace)
    monkeypatch.setattr("sessions_app.services.entries._audit", lambda *_: 1 / 0)

    with pytest.raises(ZeroDivisionError):
        add(session, turn(0))
    assert not Entry.objects.exists()
    assert Session.objects.get().next_position == 0
