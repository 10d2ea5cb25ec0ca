from __future__ import annotations

import json
import socket
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.cache import cache
from django.core.management import call_command
from django.db import connection
from django.test import Client, TransactionTestCase

from memoryhub.flows.check.database import protections
from memoryhub.lib.append_only import install_sql, remove_sql
from sessions_app.models import Membership, Workspace


@pytest.fixture(autouse=True, scope="session")
def _flush_despite_append_only() -> Iterator[None]:
    """Tests that commit end by emptying the tables, which append-only triggers refuse: lift them for that moment."""
    flush = TransactionTestCase._fixture_teardown

    def teardown(self: TransactionTestCase) -> None:
        guarded = protections()
        with connection.cursor() as cursor:
            for statement in (sql for protection in guarded for sql in remove_sql(connection, protection)):
                cursor.execute(statement)
        flush(self)
        with connection.cursor() as cursor:
            for statement in (sql for protection in guarded for sql in install_sql(connection, protection)):
                cursor.execute(statement)

    TransactionTestCase._fixture_teardown = teardown
    yield
    TransactionTestCase._fixture_teardown = flush


@pytest.fixture(autouse=True)
def _no_outside_world(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing leaves this machine."""
    connect = socket.socket.connect

    def guarded(self: socket.socket, address: object) -> None:
        if self.family != socket.AF_UNIX and isinstance(address, tuple) and address[0] not in ("127.0.0.1", "::1"):
            raise AssertionError(f"a test reached out to {address}")
        connect(self, address)

    monkeypatch.setattr(socket.socket, "connect", guarded)


@pytest.fixture(autouse=True)
def _empty_cache() -> None:
    cache.clear()


@pytest.fixture
def workspace() -> Workspace:
    return Workspace.objects.create(slug="atlas", name="Atlas")


@pytest.fixture
def viewer(workspace: Workspace) -> User:
    user = User.objects.create_user("vera")
    Membership.objects.create(workspace=workspace, user=user, role=Membership.Role.VIEWER)
    return user


@pytest.fixture
def viewer_client(viewer: User) -> Client:
    client = Client()
    client.force_login(viewer)
    return client


@pytest.fixture
def stranger_client(db: None) -> Client:
    """Someone with an account and no workspace."""
    client = Client()
    client.force_login(User.objects.create_user("sam"))
    return client


@pytest.fixture
def editor(workspace: Workspace) -> Client:
    """Someone who may curate the workspace."""
    user = User.objects.create_user("edda")
    Membership.objects.create(workspace=workspace, user=user, role=Membership.Role.EDITOR)
    client = Client()
    client.force_login(user)
    return client


@pytest.fixture
def command(capsys: pytest.CaptureFixture[str]) -> Callable[..., dict[str, Any]]:
    """Run a management command with --json and return its one document."""

    def call(*arguments: str, status: int = 0) -> dict[str, Any]:
        if status:
            with pytest.raises(SystemExit) as ended:
                call_command(*arguments, "--json")
            assert ended.value.code == status
        else:
            call_command(*arguments, "--json")
        document: dict[str, Any] = json.loads(capsys.readouterr().out)
        return document

    return call
