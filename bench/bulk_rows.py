"""Fill a database with many generated rows, as fast as its indexes and constraints allow."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from itertools import islice
from typing import Any

from django.db import connection, transaction
from django.db.models import Model

from bench.corpus import START, Turn, Writer
from knowledge_app.models import HistoryEntry, KnowledgeEntry, Observation
from memoryhub.lib.search.index_maintenance import bulk_indexing
from sessions_app.models import Entry, Session, Workspace

ENTRIES = Entry._meta.db_table
OTHERS = 50  # entries for each row of another kind
VARIED = ("workspace_id", "session_id", "position", "name", "content", "token_count", "occurred_at")


def add_workspaces(count: int) -> None:
    Workspace.objects.bulk_create(Workspace(pk=n, slug=f"agent-{n}", name=f"Agent {n}") for n in range(1, count + 1))


def add_sessions(batch: Iterable[Sequence[Turn]]) -> None:
    rows = [
        Session(
            pk=turns[0].session,
            workspace_id=turns[0].workspace,
            key=f"chat:{turns[0].session}",
            channel="chat",
            title=" ".join(turns[0].text.split()[:6]),
            entry_count=len(turns),
            next_position=len(turns),
            active_entry_count=len(turns),
            total_tokens=sum(len(one.text) // 4 for one in turns),
            active_tokens=sum(len(one.text) // 4 for one in turns),
            created_at=turns[0].at,
            updated_at=turns[-1].at,
        )
        for turns in batch
    ]
    with bulk_indexing(connection, Session._meta.db_table):
        Session.objects.bulk_create(rows, batch_size=500)


def add_turns(batch: Iterable[Sequence[Turn]]) -> None:
    """Insert entries with one statement, and index them together."""
    rows = (
        (one.workspace, one.session, one.position, one.author, one.text, len(one.text) // 4, one.at)
        for session in batch
        for one in session
    )
    with bulk_indexing(connection, ENTRIES):
        insert_plain(rows)


def add_conversations(writer: Writer, entries: int, *, known: int = 0) -> None:
    """Add entries by one author to the first workspace, 50 to a session, until it has so many."""
    for first in range(known, entries, 5_000):
        texts = iter(writer.texts(min(5_000, entries - first)))
        numbers = range(first // 50 + 1, (min(first + 5_000, entries) - 1) // 50 + 2)
        sessions = [
            [Turn(1, number, place, "Ada", text, START) for place, text in enumerate(islice(texts, 50))]
            for number in numbers
        ]
        add_sessions(sessions)
        add_turns(sessions)


def insert_plain(rows: Iterator[tuple[Any, ...]]) -> None:
    """Insert entries from tuples of the columns in ``VARIED``; other columns have constant values."""
    fixed = {field.column: field.get_db_prep_save(field.value_from_object(Entry()), connection) for field in _fixed()}
    fixed |= {"kind": "message", "role": "user", "source_hash": "0" * 64}
    columns = ", ".join(f'"{name}"' for name in (*fixed, *VARIED))
    if connection.vendor == "postgresql":
        with transaction.atomic(), connection.cursor() as cursor:
            shown = ", ".join(f'"{name}"' for name in VARIED)
            cursor.execute(f"CREATE TEMPORARY TABLE said ON COMMIT DROP AS SELECT {shown} FROM {ENTRIES} LIMIT 0")
            with cursor.copy(f"COPY said ({shown}) FROM STDIN") as copy:
                for row in rows:
                    copy.write_row(row)
            marks = ", ".join(["%s"] * len(fixed))
            cursor.execute(f"INSERT INTO {ENTRIES} ({columns}) SELECT {marks}, {shown} FROM said", [*fixed.values()])
        return
    marks = ", ".join(["?"] * (len(fixed) + len(VARIED)))
    first = tuple(fixed.values())
    values = (first + row[:-1] + (_stamp(row[-1]),) for row in rows)
    connection.connection.executemany(f"INSERT INTO {ENTRIES} ({columns}) VALUES ({marks})", values)


def _fixed() -> list[Any]:
    return [field for field in Entry._meta.local_concrete_fields if field.column not in ("id", *VARIED)]


def _stamp(at: datetime) -> str:
    return at.strftime("%Y-%m-%d %H:%M:%S")


def add_others(writer: Writer, entries: int) -> None:
    """Add observations, knowledge and history until there is one of each for every 50 entries."""
    made: dict[type[Model], Any] = {
        Observation: lambda n, text: Observation(uid=f"o{n}", category="finding", content=text, occurred_at=START),
        KnowledgeEntry: lambda n, text: KnowledgeEntry(
            content_id=f"k{n}", category="learned_fact", content=text, created_at=START
        ),
        HistoryEntry: lambda n, text: HistoryEntry(position=n, content=text, occurred_at=START, source_hash="0" * 64),
    }
    workspaces = Workspace.objects.count()
    for model, make in made.items():
        known = model._default_manager.count()
        rows = []
        for number, text in enumerate(writer.texts(entries // OTHERS - known), start=known):
            row = make(number, text)
            row.workspace_id = 1 if number % 3 == 0 else 2 + number % (workspaces - 1)
            rows.append(row)
        with bulk_indexing(connection, model._meta.db_table):
            model._default_manager.bulk_create(rows, batch_size=500)


def update_statistics() -> None:
    """Clean up and update the database's statistics, as it would do itself in time."""
    with connection.cursor() as cursor:
        if connection.vendor == "sqlite":
            cursor.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        else:
            connection.ensure_connection()
            cursor.execute("VACUUM ANALYZE")
