"""Compare the hub's appends and contexts with plain sqlite3, and measure the error of the token estimate.

Both write to SQLite files with the same tables, indexes, triggers and durability, one after the other in one run.
"""

from __future__ import annotations

import json
import os
import secrets
import shutil
import sqlite3
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))
HOME = Path(tempfile.mkdtemp(prefix="memoryhub-bench-"))
os.environ["MEMORYHUB_HOME"] = str(HOME)
os.environ.pop("DATABASE_URL", None)
os.environ["DJANGO_SETTINGS_MODULE"] = "memoryhub.settings"

import django  # noqa: E402

django.setup()

from django.core.management import call_command  # noqa: E402
from django.db import connection  # noqa: E402
from django.utils import timezone  # noqa: E402

from memoryhub.conversations.context import build_context  # noqa: E402
from memoryhub.lib.layouts.records import EntryRecord  # noqa: E402
from memoryhub.lib.tokens import count_tokens, counter_for  # noqa: E402
from sessions_app.models import Session, Workspace  # noqa: E402
from sessions_app.services.audit import Actor, By  # noqa: E402
from sessions_app.services.entries import append  # noqa: E402
from sessions_app.services.lifecycle import open_session  # noqa: E402
from sessions_app.services.parsing import read_batch  # noqa: E402

AGENT = Actor("agent", "bench")
TEXT = "the label service scaled to four replicas before the carrier cut over and nobody noticed the queue " * 3
SINGLES, BATCHES, BATCH, LONG = 400, 40, 100, 100_000
PRAGMAS = "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; PRAGMA foreign_keys=ON; PRAGMA cache_size=-64000"
PROSE = {
    "English prose": "The carrier cut over on Tuesday, and nobody noticed that the queue had grown to nine hundred. ",
    "Python": "def send(label: Label, *, retries: int = 3) -> Receipt:\n    return client.post(URL, asdict(label))\n",
    "JSON": '{"id": "call_17", "function": {"name": "shell", "arguments": "{\\"cmd\\": \\"ls -la\\"}"}}, ',
    "German": "Der Dienst für die Etiketten wurde am Dienstag umgestellt, ohne dass jemand es bemerkte. ",
    "Chinese": "标签服务在星期二完成切换，没有人注意到队列已经增长到九百个标签。",
    "Japanese": "ラベルサービスは火曜日に切り替わり、キューが伸びていることに誰も気づきませんでした。",
    "Russian": "Служба этикеток переключилась во вторник, и никто не заметил, что очередь выросла. ",
}


def records(count: int, start: int) -> list[EntryRecord]:
    rows = [
        {"role": "user" if (start + i) % 2 else "assistant", "content": f"{start + i} {TEXT}"} for i in range(count)
    ]
    return read_batch(rows, now=timezone.now())


def hub_appends(session: Session, rounds: int, size: int, start: int) -> float:
    batches = [records(size, start + place * size) for place in range(rounds)]
    began = time.perf_counter()
    for batch in batches:
        append(session, batch, by=By(AGENT, timezone.now()))
    return rounds * size / (time.perf_counter() - began)


def insert_like(database: sqlite3.Connection, table: str) -> Callable[[dict[str, Any]], None]:
    """Return a function that inserts a copy of the table's latest row with some values changed."""
    cursor = database.execute(f"SELECT * FROM {table} ORDER BY id DESC LIMIT 1")
    names = [column[0] for column in cursor.description if column[0] != "id"]
    template = dict(zip([column[0] for column in cursor.description], cursor.fetchone(), strict=True))
    statement = f"INSERT INTO {table} ({', '.join(names)}) VALUES ({', '.join('?' * len(names))})"

    def insert(changed: dict[str, Any]) -> None:
        values = template | changed
        database.execute(statement, [values[name] for name in names])

    return insert


def bare_appends(file: Path, session: int, rounds: int, size: int) -> float:
    """Do in plain SQL what an append does: lock, read the session, write entries, totals and an audit record."""
    with closing(sqlite3.connect(file, isolation_level=None)) as database:
        database.executescript(PRAGMAS)
        entry = insert_like(database, "sessions_app_entry")
        record = insert_like(database, "sessions_app_auditrecord")
        began = time.perf_counter()
        for _ in range(rounds):
            database.execute("BEGIN IMMEDIATE")
            position = database.execute(
                "SELECT next_position FROM sessions_app_session WHERE id = ?", [session]
            ).fetchone()[0]
            for place in range(size):
                content = f"{position + place} {TEXT}"
                entry({"position": position + place, "content": content, "token_count": len(content) // 4})
            database.execute(
                "UPDATE sessions_app_session SET next_position = next_position + ?, entry_count = entry_count + ?, "
                "active_entry_count = active_entry_count + ?, total_tokens = total_tokens + 75, "
                "active_tokens = active_tokens + 75 WHERE id = ?",
                [size, size, size, session],
            )
            for where in ("session_id = ?", "session_id IS NULL AND workspace_id = ?"):
                database.execute(
                    "UPDATE sessions_app_dailytotal SET entry_count = entry_count + ?, token_count = token_count + 75"
                    f", active_token_count = active_token_count + 75 WHERE {where}",
                    [size, session if "session_id = " in where else 1],
                )
            record({"mac": secrets.token_hex(32)})
            database.execute("COMMIT")
        return rounds * size / (time.perf_counter() - began)


def bare_context(file: Path, session: int) -> int:
    """Read in plain SQL what a context of 500 messages needs, and build the messages."""
    with closing(sqlite3.connect(file)) as database:
        database.execute("SELECT * FROM sessions_app_session WHERE id = ?", [session]).fetchone()
        database.execute(
            "SELECT d.name, r.content FROM knowledge_app_memorydocument d "
            "JOIN knowledge_app_memoryrevision r ON r.id = d.head_id WHERE d.workspace_id = 1"
        ).fetchall()
        database.execute("SELECT * FROM sessions_app_summary WHERE session_id = ?", [session]).fetchall()
        active = "session_id = ? AND epoch = 0 AND summary_id IS NULL"
        sizes = database.execute(
            f"SELECT position, token_count FROM sessions_app_entry WHERE {active} ORDER BY position DESC LIMIT 500",
            [session],
        ).fetchall()
        rows = database.execute(
            f"SELECT role, content, tool_calls, extra, name FROM sessions_app_entry WHERE {active} AND position >= ? "
            "ORDER BY position",
            [session, sizes[-1][0]],
        ).fetchall()
        return len(
            [
                {"role": row[0], "content": row[1], "calls": json.loads(row[2]), "x": json.loads(row[3])}
                for row in rows
            ]
        )


def median_ms(work: Callable[[], object], rounds: int = 15) -> float:
    times = []
    for _ in range(rounds):
        began = time.perf_counter()
        work()
        times.append(time.perf_counter() - began)
    return statistics.median(times) * 1000


def token_error() -> None:
    exact = counter_for("gpt-4o")
    if exact.method == "estimate":
        print("\ntoken estimate: not measured, because no encoder is installed (pip install toktok-rs)")
        return
    print(f"\n{'token estimate':<20}{'exact':>8}{'estimate':>10}{'error':>8}   {exact.method}")
    for name, text in PROSE.items():
        known, guess = exact.count(text * 20), count_tokens(text * 20)
        print(f"{name:<20}{known:>8}{guess:>10}{(guess - known) / known:>+8.0%}")


def main() -> None:
    call_command("migrate", verbosity=0)
    workspace = Workspace.objects.create(slug="bench", name="bench", max_tokens=10_000_000)
    session, _ = open_session(workspace, "cli:bench", by=By(AGENT, timezone.now()))
    hub_appends(session, 20, 1, 0)
    connection.close()
    copy = HOME / "bare.sqlite3"
    shutil.copy(HOME / "memoryhub.sqlite3", copy)
    print(f"{'entries/s':<28}{'plain sqlite3':>14}{'hub':>10}{'ratio':>8}")
    for name, rounds, size in (("append, single", SINGLES, 1), ("append, batches of 100", BATCHES, BATCH)):
        bare = bare_appends(copy, session.pk, rounds, size)
        hub = hub_appends(session, rounds, size, 1000)
        print(f"{name:<28}{bare:>14,.0f}{hub:>10,.0f}{bare / hub:>8.1f}")
    while session.next_position < LONG:
        append(session, records(1000, session.next_position), by=By(AGENT, timezone.now()))
        session.refresh_from_db()
    connection.close()
    bare_ms = median_ms(lambda: bare_context(HOME / "memoryhub.sqlite3", session.pk))
    hub_ms = median_ms(lambda: build_context(session))
    print(f"\n{'context of 500 of 100,000':<28}{bare_ms:>11.1f} ms{hub_ms:>7.1f} ms{hub_ms / bare_ms:>8.1f}")
    token_error()
    shutil.rmtree(HOME, ignore_errors=True)


if __name__ == "__main__":
    main()
