"""Measure how fast many entries are stored and indexed. ``bench/search/measure.py`` runs it; it prints JSON."""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from datetime import timedelta
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))
if "MEMORYHUB_HOME" not in os.environ:
    sys.exit("This script writes to the hub's database. Run bench/search/measure.py, which creates a hub for it.")
os.environ["DJANGO_SETTINGS_MODULE"] = "memoryhub.settings"

import django  # noqa: E402

django.setup()

from django.core.management import call_command  # noqa: E402
from django.db import connection, transaction  # noqa: E402

from bench.bulk_rows import ENTRIES, add_sessions, add_workspaces, insert_plain, update_statistics  # noqa: E402
from bench.corpus import START, Turn, Writer  # noqa: E402
from memoryhub.lib.search.index_maintenance import bulk_indexing  # noqa: E402
from sessions_app.models import Entry  # noqa: E402

ROUNDS = 2
TOGETHER, INDEXING = "plain rows, indexed together", "of that, indexing and commit alone"
Way = Callable[[list[Turn]], None]


def plain(turns: list[Turn]) -> None:
    insert_plain(
        (one.workspace, one.session, one.position, one.author, one.text, len(one.text) // 4, one.at) for one in turns
    )


def by_orm(turns: list[Turn]) -> None:
    entries = (
        Entry(
            workspace_id=one.workspace,
            session_id=one.session,
            position=one.position,
            kind="message",
            role="user",
            name=one.author,
            content=one.text,
            token_count=len(one.text) // 4,
            occurred_at=one.at,
            source_hash="0" * 64,
        )
        for one in turns
    )
    Entry.objects.bulk_create(entries, batch_size=500)


def one_by_one() -> AbstractContextManager[object]:
    return transaction.atomic()


def together() -> AbstractContextManager[object]:
    return bulk_indexing(connection, ENTRIES)


def main() -> None:
    asked = argparse.ArgumentParser()
    asked.add_argument("rows", type=int)
    options = asked.parse_args()
    call_command("migrate", verbosity=0)
    add_workspaces(1)
    writer = Writer()
    session = 0
    seconds: dict[str, float] = {}
    ways: dict[str, tuple[Way, Callable[[], AbstractContextManager[object]]]] = {
        "plain rows, indexed by triggers": (plain, one_by_one),
        TOGETHER: (plain, together),
        "bulk_create, indexed by triggers": (by_orm, one_by_one),
        "bulk_create, indexed together": (by_orm, together),
    }
    for _ in range(ROUNDS):
        for name, (insert, indexing) in ways.items():
            session += 1
            texts = writer.texts(options.rows // ROUNDS, usual=8, most=20)
            turns = [
                Turn(1, session, place, "Ada", text, START + timedelta(seconds=place))
                for place, text in enumerate(texts)
            ]
            add_sessions([turns])
            update_statistics()
            began = time.perf_counter()
            with indexing():
                insert(turns)
                inserted = time.perf_counter()
            ended = time.perf_counter()
            seconds[name] = seconds.get(name, 0.0) + ended - began
            if name == TOGETHER and connection.vendor == "sqlite":
                seconds[INDEXING] = seconds.get(INDEXING, 0.0) + ended - inserted
    print(json.dumps({name: options.rows / spent for name, spent in seconds.items()}))


if __name__ == "__main__":
    main()
