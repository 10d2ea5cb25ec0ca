from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from knowledge_app.models import MemoryRevision
from sessions_app.models import Entry
from sessions_app.services.access_log import Seen, seen_entries, seen_revision, seen_rows

TABLES = {  # table names in the access log, by kind
    "summary": "summaries",
    "session": "sessions",
    "memory": "facts",
    "history": "history",
    "knowledge": "knowledge",
    "observation": "observations",
    "key_value": "key_values",
    "cached": "cached",
}


def seen_results(results: Sequence[Mapping[str, Any]]) -> list[Seen]:
    """Return search results as access log rows, with the messages quoted for sessions (``message_id``)."""
    by_kind: defaultdict[str, list[int]] = defaultdict(list)
    for one in results:
        by_kind[one["kind"]].append(one["id"])
        if one.get("message_id"):
            by_kind["entry"].append(one["message_id"])
    seen: list[Seen] = []
    if entries := by_kind.pop("entry", []):
        seen += seen_entries(Entry.objects.filter(pk__in=entries))
    if documents := by_kind.pop("document", []):
        revisions = MemoryRevision.objects.filter(pk__in=documents)
        seen += [seen_revision(document, number) for document, number in revisions.values_list("document", "number")]
    for kind, pks in by_kind.items():
        seen += seen_rows(TABLES[kind], pks)
    return seen
