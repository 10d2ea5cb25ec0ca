"""What bench/drills/day.py reads from the hub's database, and how it is compared with what was said and saved."""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from pathlib import Path
from typing import Any

from bench.drills.drill_hub import check_memory

SAID = (
    "SELECT w.slug, s.key, e.content FROM sessions_app_entry e JOIN sessions_app_session s ON s.id = e.session_id"
    " JOIN sessions_app_workspace w ON w.id = e.workspace_id ORDER BY s.id, e.position"
)
MEMORIES = (
    "SELECT w.slug, r.content FROM knowledge_app_memorydocument d JOIN knowledge_app_memoryrevision r"
    " ON r.id = d.head_id JOIN sessions_app_workspace w ON w.id = d.workspace_id WHERE d.name = 'MEMORY.md'"
)
REVISIONS = (
    "SELECT w.slug, r.content FROM knowledge_app_memorydocument d JOIN knowledge_app_memoryrevision r"
    " ON r.document_id = d.id JOIN sessions_app_workspace w ON w.id = d.workspace_id"
    " UNION ALL SELECT w.slug, h.proposed FROM knowledge_app_heldchange h JOIN sessions_app_workspace w"
    " ON w.id = h.workspace_id"
)
HELD = (
    "SELECT w.slug, h.id, h.proposed FROM knowledge_app_heldchange h JOIN sessions_app_workspace w"
    " ON w.id = h.workspace_id WHERE h.status = 'pending'"
)
Ledger = dict[tuple[str, str], list[str]]  # workspace and session → contents


def rows(home: Path, query: str) -> list[tuple[Any, ...]]:
    own = sqlite3.connect(f"file:{home}/memoryhub.sqlite3?mode=ro", uri=True, timeout=20)
    try:
        return own.execute(query).fetchall()
    finally:
        own.close()


def faults_of(home: Path, said: Ledger, facts: dict[str, list[str]], *, is_whole: bool) -> list[str]:
    """Compare a database with what was said and saved: everything, or everything so far."""
    kept: Ledger = defaultdict(list)
    for slug, key, text in rows(home, SAID):
        kept[slug, key].append(text)
    faults = []
    for place, texts in said.items():
        stored = kept[place] if is_whole else kept[place][: len(texts)]
        if stored != texts:
            faults.append(
                f"{place}: {len(stored)} entries kept, {len(texts)} said, {len(set(texts) - set(stored))} lost"
            )
    memories, held = dict(rows(home, MEMORIES)), rows(home, HELD)
    for slug, lines in facts.items():
        known = {
            *memories.get(slug, "").split("\n"),
            *(line for own, _, text in held if own == slug for line in text.split("\n")),
        }
        faults += [f"{slug}: lost {line!r}" for line in lines if line not in known]
    return faults + [f"check_memory: {row}" for row in check_memory(home)]
