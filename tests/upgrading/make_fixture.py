"""Write the database of commit 827a92b that the upgrade tests load, with work of every kind still pending.

Run it with the Python of a checkout of that commit, from its folder, once for each database. The last arguments are
folders of agents to import; for those in tests/samples they were nanobot 0.1, Grip and grid.

    python PATH/make_fixture.py PATH/tests/samples/827a92b FOLDER...
    DATABASE_URL=postgres://... python PATH/make_fixture.py PATH/tests/samples/827a92b FOLDER...
"""

from __future__ import annotations

import gzip
import io
import json
import os
import re
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import closing, redirect_stdout
from datetime import timedelta
from importlib import import_module
from pathlib import Path
from typing import Any

HOME = Path(tempfile.mkdtemp(prefix="memoryhub-fixture-"))
SHOWN_HOME = "/srv/memoryhub"  # stands in the dump for the folder above
ROWS_PER_INSERT = 200
os.environ |= {
    "DJANGO_SETTINGS_MODULE": "memoryhub.settings",
    "MEMORYHUB_HOME": str(HOME),
    "MEMORYHUB_ROOTS": str(HOME),
    "MEMORYHUB_SECRET_KEY": "of the upgrade fixture",
    "MEMORYHUB_QUIET_SECONDS": "0",
    "TZ": "UTC",
}


def main(out: Path, folders: list[Path]) -> None:
    sys.path.insert(0, str(Path.cwd()))
    import_module("django").setup()
    from django.db import connection

    run("migrate", "--verbosity", "0")
    fill(folders)
    leave_work_pending()
    lines = sqlite_dump() if connection.vendor == "sqlite" else postgres_dump(connection.settings_dict)
    text = "".join(lines).replace(str(HOME), SHOWN_HOME)
    out.mkdir(parents=True, exist_ok=True)
    (out / f"{connection.vendor}.sql.gz").write_bytes(gzip.compress(text.encode(), mtime=0))
    shutil.copy(HOME / "backups" / "state.json", out / "backups-state.json")
    shutil.rmtree(HOME)


def run(*arguments: str) -> dict[str, Any]:
    """Run a command; return the document that it prints, if it prints one."""
    from django.core.management import call_command

    printed = io.StringIO()
    with redirect_stdout(printed):
        call_command(*arguments)
    return json.loads(printed.getvalue()) if "--json" in arguments else {}


def model(label: str) -> Any:
    from django.apps import apps

    return apps.get_model(label)._default_manager


def fill(folders: list[Path]) -> None:
    """Import workspaces, and use each part of the hub once."""
    people = model("auth.User")
    people.create_superuser("olga", password="a password of the fixture")
    people.create_user("vera", password="another password of it")
    run("demo")
    for folder in folders:
        copy = HOME / "agents" / folder.name
        shutil.copytree(folder, copy)
        run("import_workspace", str(copy), "--name", folder.name)
    run("workspace", "create", "notes")
    run("people", "roles", "vera", "atlas=viewer")
    run("people", "invite", "Erik", "atlas=editor")
    run("webhook", "add", "atlas", "https://hooks.example.com/memory")
    run("key_values", "set", "atlas", "deploy.window", "Tuesday 14:00")
    run("knowledge", "add", "atlas", "--content", "Prefers short answers", "--category", "user_preference")
    run("observations", "add", "atlas", "--kind", "lesson", "--content", "Run the migration before the deploy")
    run("cache", "put", "notes", "What is the time zone?", "Europe/Berlin", "--model", "gpt-test")
    run("facts", "pin", "atlas", str(model("knowledge_app.Fact").filter(workspace__slug="atlas", died=None)[0].pk))
    for session in model("sessions_app.Session").filter(workspace__slug="atlas").order_by("-entry_count")[:2]:
        run("compress", "atlas", session.key, "--method", "heuristic", "--keep", "5")
    entry = HOME / "entry.json"
    entry.write_text('{"role": "user", "content": "Noted for later"}')
    run("append", "notes", "cli:main", "--file", str(entry), "--key", "first")
    run("session", "open", "notes", "cli:gone")
    run("session", "delete", "notes", "cli:gone", "--confirm", "cli:gone")
    run("hygiene", "atlas", "scan")
    run("forget", "phrase", "nanobot-0-1", "Berlin", "--apply")
    post("/w/atlas/search/saved/new/?q=deploy", {"name": "Deploys"})
    post("/w/atlas/search/recent/", {"q": "deploy"})
    post("/account/theme/", {"theme": "dark"})
    call_by_agent()


def post(place: str, values: dict[str, str] | None = None) -> None:
    """Post to a page as Olga."""
    from django.test import Client

    client = Client(headers={"host": "127.0.0.1"})
    client.force_login(model("auth.User").get(username="olga"))
    answer = client.post(place, values)
    assert answer.status_code in (204, 302), (place, answer.status_code)


def call_by_agent() -> None:
    """Append and read through the REST API, with an idempotency key."""
    from django.test import Client

    token = run("token", "make", "atlas", "ci", "--scopes", "read,append", "--json")["token"]
    headers = {"host": "127.0.0.1", "authorization": f"Bearer {token}", "idempotency-key": "once"}
    agent = Client(headers=headers)
    body = {"session": "ci:main", "entries": [{"role": "user", "content": "Is the deploy done?"}]}
    assert agent.post("/api/v1/entries", body, content_type="application/json").status_code == 201
    assert agent.get("/api/v1/context?session=ci:main").status_code == 200


def leave_work_pending() -> None:
    """Ask for all that waits for a worker, and leave some of it half-done."""
    from django.utils import timezone

    now = timezone.now()
    grown = HOME / "agents" / "later"
    (grown / "memory").mkdir(parents=True)
    (grown / "memory" / "MEMORY.md").write_text("# Memory\n\n- Imported later\n")
    post("/import/", {"path": str(grown), "name": "Later", "layout": "auto"})
    post("/w/atlas/imports/again/")
    post("/w/atlas/sync/now/")
    post("/backups/make/")
    import_module("memoryhub.tasks").check_backup.enqueue("memoryhub-20260101T030000Z.backup", now.isoformat())
    post("/work/rebuild/")
    post("/w/atlas/compress/", {"method": "heuristic"})
    atlas = model("sessions_app.Workspace").get(slug="atlas")
    jobs = model("memoryhub.Job")
    jobs.create(kind="export", workspace=atlas, options={"layout": "hub"}, requested_by="olga")
    gone = {"status": "running", "started_at": now - timedelta(hours=1), "heartbeat_at": now - timedelta(hours=1)}
    jobs.create(
        kind="export",
        workspace=None,
        options={},
        requested_by="olga",
        steps_done=2,
        steps_total=9,
        stage="half",
        **gone,
    )
    imports = model("sessions_app.ImportReport")
    imports.create(path=str(grown), requested_by=None, status="running", started_at=now - timedelta(hours=1))
    first, second = model("sessions_app.Session").filter(workspace__slug="nanobot-0-1").order_by("id")[:2]
    post(f"/w/nanobot-0-1/sessions/{first.pk}/compress/", {"method": "heuristic", "keep": "2"})
    model("sessions_app.Run").create(
        workspace=second.workspace, session=second, kind="consolidation", status="running", requested_by="olga",
        lease_owner="a worker that is gone", lease_expires_at=now - timedelta(minutes=50), attempt_count=1,
        started_at=now - timedelta(hours=1),
    )  # fmt: skip
    sent = model("sessions_app.WebhookDelivery").order_by("id").first()
    sent.attempt_count, sent.error = 2, "503"
    sent.save()


def sqlite_dump() -> Iterator[str]:
    """Yield the database as SQL: triggers come before the rows, so that loading these fills the search indexes."""
    with closing(sqlite3.connect(HOME / "memoryhub.sqlite3")) as database:
        made = database.execute("SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL ORDER BY rowid").fetchall()
        virtual = tuple(f"{name}_" for name, sql in made if sql.startswith("CREATE VIRTUAL"))
        schema = [(name, sql) for name, sql in made if not name.startswith(("sqlite_", *virtual))]
        yield "BEGIN;\n"
        yield from (f"{sql};\n" for _, sql in schema)
        for name, sql in schema:
            if sql.startswith("CREATE TABLE"):
                yield from inserts(database, name)
        yield "DELETE FROM sqlite_sequence;\n"
        yield from inserts(database, "sqlite_sequence")
        yield "COMMIT;\n"


def inserts(database: sqlite3.Connection, table: str) -> Iterator[str]:
    columns = [name for _, name, *_ in database.execute(f'PRAGMA table_info("{table}")')]
    quoted = " || ',' || ".join(f'quote("{name}")' for name in columns)
    rows = [row for (row,) in database.execute(f'SELECT {quoted} FROM "{table}" ORDER BY rowid')]
    for start in range(0, len(rows), ROWS_PER_INSERT):
        values = ",\n".join(f"({row})" for row in rows[start : start + ROWS_PER_INSERT])
        yield f'INSERT INTO "{table}" VALUES\n{values};\n'


def postgres_dump(database: dict[str, Any]) -> Iterator[str]:
    """Yield pg_dump's SQL without the lines that are psql's, or belong to one version of the server."""
    command = ["pg_dump", "--no-owner", "--no-privileges", "--no-comments", f"--rows-per-insert={ROWS_PER_INSERT}"]
    named = {"PGHOST": "HOST", "PGPORT": "PORT", "PGUSER": "USER", "PGPASSWORD": "PASSWORD", "PGDATABASE": "NAME"}
    environment = os.environ | {name: str(database[key]) for name, key in named.items() if database[key]}
    dumped = subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout
    yield re.sub(r"^(\\|--|SET (?!client_encoding)).*\n", "", dumped, flags=re.MULTILINE)


if __name__ == "__main__":
    main(Path(sys.argv[1]), [Path(name) for name in sys.argv[2:]])
