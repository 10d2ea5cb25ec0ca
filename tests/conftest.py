from __future__ import annotations

import json
import socket
import sqlite3
from collections.abc import Callable, Iterator
from importlib import import_module, reload
from pathlib import Path
from typing import Any

import pytest
from django.contrib import admin
from django.contrib.auth.models import User
from django.core.cache import cache
from django.core.management import call_command
from django.db import connection
from django.test import Client, TransactionTestCase
from django.urls import clear_url_caches

from memoryhub.flows.check.database import protections
from memoryhub.flows.search import completion, counting, dense, finding, listing
from memoryhub.lib import quick_embedding
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


@pytest.fixture(autouse=True)
def _searches_take_their_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is found doesn't depend on how busy this machine is; tests of the limits set them."""
    for module in (completion, counting, dense, finding, listing, quick_embedding):
        monkeypatch.setattr(module, "MILLISECONDS", 30_000)
    monkeypatch.setattr(listing, "LISTING_MILLISECONDS", 30_000)


@pytest.fixture
def new_database(django_db_setup: None) -> Callable[[Path], None]:
    """Put a new SQLite database where a process of its own wants one: a copy of the tests' own, with no rows."""

    def put(place: Path) -> None:
        source, target = sqlite3.connect(connection.settings_dict["NAME"]), sqlite3.connect(place)
        source.backup(target)
        source.close()
        target.close()

    return put


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


@pytest.fixture
def admin_on(settings) -> Iterator[None]:
    """The admin site as MEMORYHUB_ADMIN switches it on."""
    settings.MEMORYHUB_ADMIN = True
    admin.autodiscover()
    reload(import_module("memoryhub.urls"))
    clear_url_caches()
    yield
    settings.MEMORYHUB_ADMIN = False
    reload(import_module("memoryhub.urls"))
    clear_url_caches()
