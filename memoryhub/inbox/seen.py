"""Hashes of the texts that a person decides about, to notice what changed since the page was shown."""

from __future__ import annotations

from typing import Any

from knowledge_app.services.held_rows import text_hash
from memoryhub.hygiene.clusters import concerns_of_cluster
from memoryhub.hygiene.seen import texts_hash


def seen_hash(table: str, row: Any) -> str:
    """Return a hash of the texts of a held row, a finding or a duplicate; "" for other items, which don't change."""
    if table == "row":
        return text_hash(row.row)
    if table not in ("finding", "duplicate"):
        return ""
    return texts_hash(concerns_of_cluster(row) if table == "duplicate" else [row])
