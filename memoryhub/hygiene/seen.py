"""Hashes of the texts of findings, to notice what changed since a page showed them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence

from knowledge_app.models import Concern, MemoryDocument
from knowledge_app.services.rows.held_row_decisions import check_seen
from memoryhub.hygiene.rows import ENTRIES, FACTS, MODELS, rows_at


def texts_hash(concerns: Sequence[Concern]) -> str:
    """Return a hash of the texts of the living rows of some concerns of one workspace. One query per table."""
    found = []
    for table, pks in _places(concerns).items():
        rows = rows_at(concerns[0].workspace, table, pks)
        found += [(table, pk, row.text) for pk, row in sorted(rows.items()) if row.is_living]
    return hashlib.sha256(json.dumps(found).encode()).hexdigest()


def check_texts(concerns: Sequence[Concern], seen: str) -> None:
    """Lock the rows of some concerns. Raise Conflict if ``seen`` isn't the hash of their texts; "" is unknown."""
    if not seen:
        return
    for table, pks in _places(concerns).items():
        if table == FACTS:  # which change with their document
            list(MemoryDocument.objects.select_for_update().filter(facts__in=pks).order_by("pk").values_list("pk"))
        elif table != ENTRIES:
            list(MODELS[table].objects.select_for_update().filter(pk__in=pks).order_by("pk").values_list("pk"))
    check_seen(seen, texts_hash(concerns))


def _places(concerns: Sequence[Concern]) -> dict[str, list[int]]:
    """Return the keys of the rows of some concerns, by table, in order."""
    places = {(one.table, one.object_id) for one in concerns}
    places |= {(one.other_table, one.other_id) for one in concerns if one.other_id is not None}
    return {table: sorted(pk for of, pk in places if of == table) for table in sorted({of for of, _ in places})}
