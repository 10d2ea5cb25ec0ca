"""Faults of the database and its disk: which they are, and what people, agents and commands are told."""

from __future__ import annotations

import errno
import json
from io import StringIO

import pytest
from django.core.management import call_command
from django.db import DatabaseError, InterfaceError, OperationalError
from django.test import Client
from psycopg.errors import AdminShutdown, DiskFull, SerializationFailure
from psycopg.errors import OperationalError as ConnectionLost

from memoryhub.lib.database.faults import fault_of

FULL_DISK = OSError(errno.ENOSPC, "No space left on device")


def raised(error: Exception, cause: BaseException | None = None) -> Exception:
    error.__cause__ = cause
    return error


CASES = [
    (raised(OperationalError("database is locked")), "busy"),
    (raised(OperationalError("could not serialize"), SerializationFailure()), "busy"),
    (raised(OperationalError("database or disk is full")), "disk_full"),
    (raised(OperationalError("could not extend file"), DiskFull()), "disk_full"),
    (FULL_DISK, "disk_full"),
    (raised(ValueError("the file wasn't written"), FULL_DISK), "disk_full"),
    (raised(OperationalError("attempt to write a readonly database")), "read_only"),
    (raised(DatabaseError("database disk image is malformed")), "database_damaged"),
    (raised(DatabaseError("file is not a database")), "database_damaged"),
    (raised(OperationalError("terminating connection"), AdminShutdown()), "database_unavailable"),
    (raised(OperationalError("connection failed"), ConnectionLost()), "database_unavailable"),
    (raised(InterfaceError("connection already closed")), "database_unavailable"),
    (raised(OperationalError("no such table: x")), None),
    (raised(OSError(errno.EACCES, "Permission denied")), None),
    (ValueError("something else"), None),
    (None, None),
]


@pytest.mark.parametrize(("error", "code"), CASES, ids=lambda case: str(case)[:40])
def test_the_fault_of_an_exception(error, code):
    fault = fault_of(error)

    assert (fault.code if fault else None) == code


def failing(error: Exception):
    def fail(*_args: object, **_values: object) -> None:
        raise error

    return fail


@pytest.mark.django_db
@pytest.mark.parametrize(("error", "code"), [case for case in CASES if case[1] and isinstance(case[0], Exception)])
def test_pages_agents_and_commands_are_told_what_is_known(workspace, admin_client, monkeypatch, error, code):
    fault = fault_of(error)
    admin_client.raise_request_exception = False
    monkeypatch.setattr("memoryhub.dashboard.views.home.health_of", failing(error))
    monkeypatch.setattr("memoryhub.management.commands.attention.attention_items", failing(error))
    printed = StringIO()

    page = admin_client.get("/")
    with pytest.raises(SystemExit):
        call_command("attention", "--json", stdout=printed)

    assert page.status_code == (507 if code == "disk_full" else 503)
    assert page["Retry-After"] == str(fault.retry_after)
    assert fault.message.replace("'", "&#x27;") in page.content.decode()
    assert json.loads(printed.getvalue())["error"]["code"] == code


@pytest.mark.django_db
def test_an_error_before_the_view_is_told_too(monkeypatch):
    client = Client(raise_request_exception=False)
    error = OperationalError("database or disk is full")
    monkeypatch.setattr("memoryhub.api.auth.authenticate", failing(error))
    monkeypatch.setattr("django.contrib.sessions.middleware.SessionMiddleware.process_request", failing(error))

    page, call = client.get("/"), client.get("/api/v1/documents", headers={"Authorization": "Bearer x"})

    assert (page.status_code, call.status_code, call.json()["code"]) == (507, 507, "disk_full")


@pytest.mark.django_db
def test_health_names_the_fault(client, monkeypatch):
    monkeypatch.setattr(
        "memoryhub.dashboard.views.home.connection.cursor", failing(OperationalError("disk I/O error"))
    )

    answer = client.get("/health/")

    assert (answer.status_code, answer.json()) == (503, {"status": "database_unavailable"})
