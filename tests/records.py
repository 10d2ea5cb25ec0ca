"""Short functions that create source records."""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime, timedelta

from memoryhub.lib.layouts.records import EntryRecord, SessionRecord

START = datetime(2026, 3, 1, 8, tzinfo=UTC)


def entry_record(content: str, *, minute: int | None = None, role: str = "user", **values) -> EntryRecord:
    occurred_at = None if minute is None else START + timedelta(minutes=minute)
    return EntryRecord(
        kind=values.pop("kind", "message"),
        role=role,
        content=content,
        source_hash=hashlib.sha256(f"{role}|{content}|{occurred_at}".encode()).hexdigest(),
        occurred_at=occurred_at,
        occurred_at_text=occurred_at.isoformat() if occurred_at else "",
        **values,
    )


def session_record(*contents: str, key: str = "cli:test", timed: bool = True, **values) -> SessionRecord:
    entries = [
        entry_record(content, minute=place if timed else None, role="user" if place % 2 == 0 else "assistant")
        for place, content in enumerate(contents)
    ]
    return SessionRecord(key=key, entries=entries, **values)
