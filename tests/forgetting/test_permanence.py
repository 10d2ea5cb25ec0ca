"""Forgotten content isn't imported again, and leaves no byte in the database's file."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from django.db import connection
from django.urls import reverse

from knowledge_app.models import Fact, FactSource, MemoryDocument
from knowledge_app.services.rows.key_values import write_value
from memoryhub.forgetting.erasure import lift
from memoryhub.sync.importing import import_workspace
from sessions_app.models import Entry, Session
from tests.forgetting.test_forgetting import BY, CANARY, forget, holding
from tests.hub import run_jobs
from tests.other_hub import manage

pytestmark = pytest.mark.django_db


def agent(folder: Path) -> Path:
    """An agent's folder that holds the canary in each of its files."""
    (folder / "memory").mkdir(parents=True)
    (folder / "sessions").mkdir()
    head = {
        "_type": "metadata",
        "key": "cli:main",
        "created_at": "2026-03-01T10:00:00",
        "updated_at": "2026-03-01T10:00:00",
        "metadata": {},
        "last_consolidated": 0,
    }
    said = {"role": "user", "content": f"I said {CANARY} once", "timestamp": "2026-03-01T10:00:00"}
    (folder / "sessions" / "cli_main.jsonl").write_text(f"{json.dumps(head)}\n{json.dumps(said)}\n")
    (folder / "memory" / "MEMORY.md").write_text(f"# Team\n\n- knows {CANARY}\n- tea\n")
    (folder / "memory" / "HISTORY.md").write_text(f"[2026-03-01 10:00] Told {CANARY}.\n\n")
    return folder


@pytest.mark.parametrize("kind", ["phrase", "person"])
def test_imports_restore_nothing_until_an_operator_allows_it(tmp_path, settings, kind):
    settings.MEMORYHUB_QUIET_SECONDS = 0
    path = agent(tmp_path / "agent")
    workspace = import_workspace(path, by=BY).workspace
    receipt = forget(workspace, kind, CANARY)

    again = import_workspace(path, by=BY)

    assert (+again.tally.added, +again.tally.updated) == ({}, {})
    assert {problem.outcome for problem in again.tally.problems} == {"ignored"}
    assert holding("quicksilver") == set()
    lift(receipt, by=BY)
    import_workspace(path, by=BY)
    assert "knowledge_app.HistoryEntry.content" in holding("quicksilver")


def test_a_forgotten_session_is_not_imported_again(tmp_path, settings):
    settings.MEMORYHUB_QUIET_SECONDS = 0
    path = agent(tmp_path / "agent")
    workspace = import_workspace(path, by=BY).workspace
    forget(workspace, "session", session=Session.objects.get())

    import_workspace(path, by=BY)

    assert not Session.objects.exists()


def write_session(project: Path, name: str, *texts: str) -> None:
    """Write a session in which each message follows the one before; forks have the same ids."""
    project.mkdir(parents=True, exist_ok=True)
    rows = [
        {
            "type": "user",
            "uuid": f"{number:08}-0000-4000-8000-000000000000",
            "parentUuid": f"{number - 1:08}-0000-4000-8000-000000000000" if number else None,
            "sessionId": name,
            "timestamp": f"2026-03-01T10:00:{number:02}.000Z",
            "cwd": "/x",
            "version": "2.0",
            "message": {"role": "user", "content": text},
        }
        for number, text in enumerate(texts)
    ]
    (project / f"{name}.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))


def test_a_fork_does_not_bring_back_the_messages_of_a_forgotten_session(tmp_path, settings):
    settings.MEMORYHUB_QUIET_SECONDS = 0
    project = tmp_path / "claude" / "projects" / "-x"
    first, fork = ("0a000000-0000-4000-8000-000000000000", "f0000000-0000-4000-8000-000000000000")
    write_session(project, first, "hello", f"about {CANARY}")
    write_session(project, fork, "hello", f"about {CANARY}", "tea")
    workspace = import_workspace(tmp_path / "claude", by=BY).workspace
    forget(workspace, "session", session=Session.objects.get(key=f"claude:{first}"))
    assert holding("quicksilver") == set()
    write_session(project, fork, "hello", f"about {CANARY}", "tea", "resumed")

    import_workspace(tmp_path / "claude", by=BY)

    assert list(Entry.objects.order_by("id").values_list("content", flat=True)) == ["tea", "resumed"]
    assert holding("quicksilver") == set()


@pytest.mark.parametrize("is_imported_first", [True, False])
def test_the_title_of_a_fork_does_not_quote_a_forgotten_session(tmp_path, settings, is_imported_first):
    settings.MEMORYHUB_QUIET_SECONDS = 0
    project = tmp_path / "claude" / "projects" / "-x"
    first, fork = ("0a000000-0000-4000-8000-000000000000", "f0000000-0000-4000-8000-000000000000")
    write_session(project, first, f"about {CANARY}", "hello")
    if is_imported_first:
        write_session(project, fork, f"about {CANARY}", "hello", "tea")
    workspace = import_workspace(tmp_path / "claude", by=BY).workspace
    forget(workspace, "session", session=Session.objects.get(key=f"claude:{first}"))
    assert holding("quicksilver") == set()
    write_session(project, fork, f"about {CANARY}", "hello", "tea", "resumed")

    import_workspace(tmp_path / "claude", by=BY)

    assert Session.objects.get(key=f"claude:{fork}").entry_count == 2
    assert holding("quicksilver") == set()


def test_facts_only_from_a_forgotten_session_are_not_imported_again(tmp_path, settings):
    settings.MEMORYHUB_QUIET_SECONDS = 0
    path = agent(tmp_path / "agent")
    workspace = import_workspace(path, by=BY).workspace
    taught = Fact.objects.get(text__contains=CANARY)
    FactSource.objects.create(fact=taught, entry=Entry.objects.get())
    forget(workspace, "session", session=Session.objects.get())
    assert CANARY not in MemoryDocument.objects.get(name="MEMORY.md").head.content
    (path / "memory" / "MEMORY.md").write_text(f"# Team\n\n- knows {CANARY}\n- tea\n- bread\n")

    import_workspace(path, by=BY)

    content = MemoryDocument.objects.get(name="MEMORY.md").head.content
    assert "- bread" in content
    assert CANARY not in content


def test_a_database_in_use_is_not_vacuumed(workspace, admin_client, command):
    write_value(workspace, "k", f"has {CANARY}", by=BY)
    asked = {"kind": "phrase", "words": CANARY, "expected": 2}

    url = admin_client.post(reverse("forget", args=["atlas"]), asked)["Location"]
    run_jobs()
    page = admin_client.get(url)

    assert "manage.py vacuum" in page.content.decode()
    assert command("vacuum", status=1)["error"]["code"] == "database_busy"


@pytest.mark.django_db(transaction=True)
def test_an_idle_database_is_vacuumed(command):
    assert command("vacuum") == {"vacuumed": True}


@pytest.mark.skipif(connection.vendor != "postgresql", reason="SQLite rewrites the whole file")
@pytest.mark.django_db(transaction=True)
def test_every_table_with_texts_is_rewritten(command):
    def files() -> dict[str, int]:
        with connection.cursor() as cursor:
            cursor.execute("SELECT relname, pg_relation_filenode(oid) FROM pg_class WHERE relkind = 'r'")
            return dict(cursor.fetchall())

    before = files()
    command("vacuum")
    after = files()

    tables = [
        "sessions_app_entry",
        "knowledge_app_fact",
        "memoryhub_idempotentcall",
        "memoryhub_job",
        "django_admin_log",
    ]
    assert [table for table in tables if before[table] == after[table]] == []


@pytest.mark.slow
@pytest.mark.skipif(connection.vendor != "sqlite", reason="looks into SQLite's file")
@pytest.mark.django_db(transaction=True)
def test_no_byte_of_the_database_contains_forgotten_content(tmp_path, new_database):
    home = tmp_path / "home"
    home.mkdir()
    path, database = agent(tmp_path / "agent"), home / "memoryhub.sqlite3"

    def run(*arguments: str) -> str:
        return manage(home, str(database), *arguments)

    def bytes_of_database() -> bytes:
        return b"".join(file.read_bytes() for file in home.glob("memoryhub.sqlite3*"))

    new_database(database)
    run("import_workspace", str(path), "--name", "atlas")
    run("key_values", "set", "atlas", "k", f"value {CANARY}")
    assert b"quicksilver" in bytes_of_database()

    done = json.loads(run("forget", "phrase", "atlas", CANARY, "--apply", "--json"))

    assert done["vacuumed"] is True
    assert b"quicksilver" not in bytes_of_database().lower()
    assert json.loads(run("check_memory", "--json"))["broken"] == []
