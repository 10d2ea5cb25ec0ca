from __future__ import annotations

import gc
import json
import os
import socket
import sqlite3
import sys
from collections.abc import Callable, Iterator
from copy import copy
from functools import cache as once
from importlib.util import find_spec, module_from_spec
from pathlib import Path
from typing import Any

import pytest
from django.apps import apps
from django.conf import settings as project_settings
from django.contrib.auth.models import User
from django.contrib.contenttypes.models import ContentType
from django.contrib.staticfiles.storage import StaticFilesStorage
from django.core.cache import cache
from django.core.management import call_command
from django.db import connection, transaction
from django.test import Client, TransactionTestCase
from django.test import client as test_client
from django.test.utils import ContextList
from django.urls import set_urlconf
from filelock import FileLock
from hypothesis import settings as hypothesis_settings

from memoryhub import processes
from memoryhub.accounts import middleware
from memoryhub.backups import schema as backup_schema
from memoryhub.dashboard import palette
from memoryhub.integrity.database import protections
from memoryhub.lib.database.append_only import GUARD_TABLE, install_sql, remove_sql
from memoryhub.search import completion, counts, grouping, listing, months, query_embedding, ranking, semantic
from sessions_app.models import Membership, MutationGuard, Session, Workspace
from tests.hub import client_of, member, open_at, talk

gc.disable()  # until the tests are collected
hypothesis_settings.register_profile("no deadline", deadline=None)  # a busy machine is not a bug
hypothesis_settings.load_profile("no deadline")

ASKS_A_DATABASE = {"db", "transactional_db", "live_server", "upgraded"}
MIGRATED_TABLES = {"django_content_type", "auth_permission"}
LEAVE_OUT = bool(os.environ.get("MEMORYHUB_REQUIRE_POSTGRES"))  # see pytest_collection_modifyitems
DIFFERENT_STATEMENTS = ("integrity", "lib", "search", "spreadsheets", "time_travel", "upgrading")
EVERY_CASE = tuple(f"tests/{name}/" for name in DIFFERENT_STATEMENTS)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--first-cases",
        action="store_true",
        help=f"run only the first case of each parametrized test, except in {', '.join(EVERY_CASE)}",
    )


@pytest.hookimpl(trylast=True)  # after pytest-randomly
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Run the browser tests first and together, so that they share a browser. Starting one takes a second.

    Deselect tests that don't use the database if the run is only about PostgreSQL: they run with SQLite.
    """
    items.sort(key=lambda one: one.get_closest_marker("browser") is None)
    first_cases = config.getoption("--first-cases")
    chosen: dict[bool, list[pytest.Item]] = {True: [], False: []}
    for one in items:
        is_asked = (not LEAVE_OUT or _asks_a_database(one)) and (not first_cases or _is_first_case(one))
        chosen[is_asked].append(one)
    config.hook.pytest_deselected(items=chosen[False])
    items[:] = chosen[True]


def pytest_collection_finish() -> None:
    """Exempt what was imported from garbage collection: looking through it takes a twentieth of the time."""
    gc.freeze()
    gc.set_threshold(20_000, 10, 3)
    gc.enable()


def _is_first_case(item: pytest.Item) -> bool:
    call = getattr(item, "callspec", None)
    return call is None or not any(call.indices.values()) or item.nodeid.startswith(EVERY_CASE)


def _asks_a_database(item: pytest.Item) -> bool:
    fixtures = set(getattr(item, "fixturenames", ()))
    return item.get_closest_marker("django_db") is not None or bool(fixtures & ASKS_A_DATABASE)


def pytest_terminal_summary(terminalreporter: Any) -> None:
    if LEAVE_OUT:
        terminalreporter.write_line(
            "Tests that don't use the database were left out, and slow ones that aren't about it: they run on SQLite."
        )


@pytest.fixture(scope="session")
def django_db_setup(django_test_environment: None, django_db_blocker: Any) -> Iterator[None]:
    """Migrate one database for all test processes, which takes seconds, and give each a copy of it."""
    process = os.environ.get("PYTEST_XDIST_WORKER", "only")
    name = project_settings.SHARED_BY_PROCESSES / f"database-of-{process}"
    with django_db_blocker.unblock():
        with FileLock(project_settings.SHARED_BY_PROCESSES / "databases.lock"):
            if not name.exists():
                _create_databases(
                    {process, *(f"gw{n}" for n in range(int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", 0))))}
                )
        own = connection.settings_dict["NAME"]
        connection.settings_dict["NAME"] = name.read_text()
        ContentType.objects.get_for_models(*apps.get_models())  # cached, as in the process that migrates
    with pytest.MonkeyPatch.context() as patch:
        if connection.vendor == "sqlite":  # instead of migrating another one in each process that restores a backup
            expected = backup_schema.read_schema(Path(connection.settings_dict["NAME"]))
            patch.setattr(backup_schema, "expected_schema", lambda: expected)
        yield
    with django_db_blocker.unblock():
        connection.creation.destroy_test_db(own, verbosity=0)


def _create_databases(processes: set[str]) -> None:
    """Create a database for each process that has none, and write its name to a file."""
    creation, own = connection.creation, connection.settings_dict["NAME"]
    creation.create_test_db(verbosity=0, autoclobber=True, serialize=False)
    connection.close()
    for process in sorted(processes):
        name = project_settings.SHARED_BY_PROCESSES / f"database-of-{process}"
        if not name.exists():
            creation.clone_test_db(process, verbosity=0, autoclobber=True)
            name.write_text(str(creation.get_test_db_clone_settings(process)["NAME"]))
    creation.destroy_test_db(own, verbosity=0)


@pytest.fixture(autouse=True, scope="session")
def _flush_what_has_rows() -> Iterator[None]:
    """After a test that commits, empty the tables that it filled, in spite of their append-only triggers.

    Django's own flush empties all tables, and creates the content types and permissions again.
    """

    def teardown(_self: TransactionTestCase) -> None:
        with transaction.atomic(), connection.cursor() as cursor:
            filled = tables_with_rows(cursor)
            final = [one for one in protections() if one.table in filled and not one.guarded]
            for statement in (sql for protection in final for sql in remove_sql(connection, protection)):
                cursor.execute(statement)
            MutationGuard.objects.create(reason="a test is over")  # changing triggers takes longer than deleting rows
            for table in [table for table in filled if table != GUARD_TABLE]:
                cursor.execute(f"DELETE FROM {connection.ops.quote_name(table)}")
            cursor.execute(f"DELETE FROM {GUARD_TABLE}")
            connection.check_constraints()
            for statement in (sql for protection in final for sql in install_sql(connection, protection)):
                cursor.execute(statement)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(TransactionTestCase, "_fixture_teardown", teardown)
        yield


def tables_with_rows(cursor: Any) -> list[str]:
    tables = sorted({model._meta.db_table for model in apps.get_models(include_auto_created=True)} - MIGRATED_TABLES)
    quote = connection.ops.quote_name
    cursor.execute(
        " UNION ALL ".join(f"SELECT '{table}' WHERE EXISTS (SELECT 1 FROM {quote(table)})" for table in tables)
    )
    return [table for (table,) in cursor.fetchall()]


@pytest.fixture(autouse=True, scope="session")
def _patched_for_all_tests() -> Iterator[None]:
    """Patch the project once for all tests: in each test, that takes as long as a short one."""
    with pytest.MonkeyPatch.context() as patch:
        _stay_on_this_machine(patch)
        # Keep the contexts of pages only, not of each icon that they include.
        patch.setattr(test_client, "store_rendered_templates", _store_rendered)
        patch.setattr(StaticFilesStorage, "url", once(StaticFilesStorage.url))  # of 30 files of each page
        # Don't record sign-ins, so that a client's first request takes as many queries as later ones.
        patch.setattr(middleware, "record_visit", lambda *_args, **_values: None)
        # Turn off time limits of searches, which depend on how busy the machine is.
        for module in (completion, counts, grouping, semantic, ranking, listing, months, query_embedding, palette):
            for name in [name for name in vars(module) if name.endswith("MILLISECONDS")]:
                patch.setattr(module, name, 30_000)
        # Keep the thread that renews a lease away from the database: it could wait for a lock until a test is over.
        patch.setattr(processes, "BUSY_SECONDS", 3_600.0)
        yield


def _store_rendered(store: dict[str, Any], template: Any, context: Any, **_values: Any) -> None:
    store.setdefault("templates", []).append(template)
    if context.template is template:
        store.setdefault("context", ContextList()).append(copy(context))


def _stay_on_this_machine(patch: pytest.MonkeyPatch) -> None:
    """Allow connections to this machine only."""
    connect = socket.socket.connect

    def guarded(self: socket.socket, address: object) -> None:
        if self.family != socket.AF_UNIX and isinstance(address, tuple) and address[0] not in ("127.0.0.1", "::1"):
            raise AssertionError(f"a test reached out to {address}")
        connect(self, address)

    patch.setattr(socket.socket, "connect", guarded)


@pytest.fixture(autouse=True)
def _empty_cache() -> None:
    cache.clear()


@pytest.fixture
def new_database(django_db_setup: None) -> Callable[[Path], None]:
    """Return a function that creates an empty SQLite database for another process, as a copy of the tests'.

    Where those have PostgreSQL, the process makes it by itself.
    """

    def put(place: Path) -> None:
        if connection.vendor != "sqlite":
            return
        source, target = sqlite3.connect(connection.settings_dict["NAME"]), sqlite3.connect(place)
        source.backup(target)
        source.close()
        target.close()

    return put


@pytest.fixture
def workspace() -> Workspace:
    return Workspace.objects.create(slug="atlas", name="Atlas")


@pytest.fixture
def session(workspace: Workspace) -> Session:
    """A session of ten turns, each with a tool call."""
    session = open_at(workspace)
    talk(session, 10)
    session.refresh_from_db()
    return session


@pytest.fixture
def viewer(workspace: Workspace) -> User:
    return member(workspace, "vera", Membership.Role.VIEWER)


@pytest.fixture
def viewer_client(viewer: User) -> Client:
    return client_of(viewer)


@pytest.fixture
def stranger_client(db: None) -> Client:
    """A person with an account but no workspace."""
    return client_of(User.objects.create_user("sam"))


@pytest.fixture
def editor(workspace: Workspace) -> Client:
    """A person with the role editor."""
    return client_of(member(workspace, "edda", Membership.Role.EDITOR))


@pytest.fixture
def command(capsys: pytest.CaptureFixture[str]) -> Callable[..., dict[str, Any]]:
    """Run a management command with --json and return its document."""

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


@once
def _addresses_without_admin() -> str:
    """Load the URL configuration a second time, without MEMORYHUB_ADMIN, and return the module's name.

    Beside the first, not over it: to forget all addresses and to learn them anew costs more than most tests.
    """
    spec = find_spec("memoryhub.urls")
    assert spec is not None
    assert spec.loader is not None
    name = "memoryhub_urls_without_admin"
    sys.modules[name] = module_from_spec(spec)
    spec.loader.exec_module(sys.modules[name])
    return name


@pytest.fixture
def admin_off(settings, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Turn the administration off as MEMORYHUB_ADMIN=0 does."""
    settings.MEMORYHUB_ADMIN = False
    monkeypatch.setattr(project_settings, "ROOT_URLCONF", _addresses_without_admin())
    set_urlconf(None)
    yield
    set_urlconf(None)
