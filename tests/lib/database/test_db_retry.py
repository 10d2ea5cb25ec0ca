from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from threading import Event, Thread

import pytest
from django.db import DatabaseError, OperationalError, connection

from memoryhub.lib.database import db_retry
from memoryhub.lib.database.db_retry import ATTEMPTS, is_transient, retried, try_write, waiting_at_most
from sessions_app.models import Workspace

LOCKED = OperationalError("database is locked")


@pytest.fixture(autouse=True)
def _no_pauses(monkeypatch):
    monkeypatch.setattr(db_retry, "FIRST_PAUSE", 0)


def failing(times: int, error: Exception = LOCKED) -> tuple[Callable[[], str], list[int]]:
    """Return a write that fails a number of times before it succeeds, and the list of its attempts."""
    attempts: list[int] = []

    def work() -> str:
        attempts.append(1)
        if len(attempts) <= times:
            raise error
        return "done"

    return work, attempts


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("times", [0, 1, ATTEMPTS - 1])
def test_a_write_is_retried_while_the_database_is_locked(times):
    work, attempts = failing(times)

    assert retried(work)() == "done"
    assert len(attempts) == times + 1


@pytest.mark.django_db(transaction=True)
def test_a_permanent_lock_raises_an_error():
    work, attempts = failing(ATTEMPTS)

    with pytest.raises(OperationalError):
        retried(work)()
    assert len(attempts) == ATTEMPTS


@pytest.mark.django_db(transaction=True)
def test_other_errors_are_not_retried():
    work, attempts = failing(1, OperationalError("no such table"))

    with pytest.raises(OperationalError):
        retried(work)()
    assert len(attempts) == 1


@pytest.mark.django_db
def test_work_inside_a_transaction_is_not_retried():
    work, attempts = failing(1)

    with pytest.raises(OperationalError):
        retried(work)()
    assert len(attempts) == 1


@pytest.mark.parametrize(
    ("state", "passes"), [("40001", True), ("40P01", True), ("55P03", True), ("57014", False), ("23505", False)]
)
def test_postgresql_errors_are_classified_by_sqlstate(state, passes):
    error = OperationalError("could not")
    error.__cause__ = type("Cause", (Exception,), {"sqlstate": state})()

    assert is_transient(error) == passes


@pytest.mark.django_db
def test_a_failed_optional_write_is_rolled_back(caplog):
    def work() -> None:
        Workspace.objects.create(slug="half", name="Half")
        raise DatabaseError("disk full")

    assert not try_write(work, "Who read this")
    assert not Workspace.objects.exists()
    assert "Who read this" in caplog.text
    assert try_write(lambda: Workspace.objects.create(slug="whole", name="Whole"), "Who read this")


@pytest.mark.django_db
@pytest.mark.skipif(connection.vendor != "sqlite", reason="PostgreSQL has many writers")
def test_an_optional_write_waits_its_turn_among_the_writers_of_its_process(monkeypatch):
    monkeypatch.setattr(db_retry, "MAX_WAIT", 0.05)
    writing, done = Event(), Event()
    other = Thread(target=retried(lambda: (writing.set(), done.wait(10))))
    other.start()
    assert writing.wait(10)

    assert not try_write(lambda: Workspace.objects.create(slug="late", name="Late"), "Who read this")
    done.set()
    other.join()
    assert try_write(lambda: Workspace.objects.create(slug="late", name="Late"), "Who read this")


@pytest.mark.django_db
@pytest.mark.skipif(connection.vendor != "sqlite", reason="PostgreSQL has many writers")
def test_the_lock_timeout_is_restored_after_an_error():
    def wait() -> int:
        with connection.cursor() as cursor:
            return int(cursor.execute("PRAGMA busy_timeout").fetchone()[0])

    waits = [wait()]

    with suppress(ZeroDivisionError), waiting_at_most(0.5):
        waits.append(wait())
        raise ZeroDivisionError

    assert waits[1] == 500
    assert wait() == waits[0] != 500
