"""Hashes of the texts that a person decides about, to notice what changed since the page was shown."""

from __future__ import annotations

import hashlib
import json
from typing import Any

from knowledge_app.models import Concern
from knowledge_app.services.held_rows import text_hash
from memoryhub.hygiene.clusters import concerns_of_cluster
from memoryhub.hygiene.rows import rows_at


def seen_hash(table: str, row: Any) -> str:
    """Return a hash of the texts of a held row, a finding or a duplicate; "" for other items, which don't change."""
    if table == "row":
        return text_hash(row.row)
    if table not in ("finding", "duplicate"):
        return ""
    concerns = concerns_of_cluster(row) if table == "duplicate" else [row]
    return hashlib.sha256(json.dumps(_texts(concerns)).encode()).hexdigest()


def _texts(concerns: list[Concern]) -> list[tuple[str, int, str]]:
    """Return table, key and text of each row of some concerns. One query per table."""
    places = {(one.table, one.object_id) for one in concerns}
    places |= {(one.other_table, one.other_id) for one in concerns if one.other_id is not None}
    found = []
    for table in sorted({table for table, _ in places}):
        rows = rows_at(concerns[0].workspace, table, [pk for of, pk in places if of == table])
        found += [(table, pk, row.text) for pk, row in sorted(rows.items()) if row.is_living]
    return found
