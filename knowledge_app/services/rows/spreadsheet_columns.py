"""The columns of the spreadsheet exports of memory tables."""

from __future__ import annotations

from knowledge_app.models import Fact, HistoryEntry, KeyValue, KnowledgeEntry, Observation
from memoryhub.lib.tables.columns import Export, attribute, columns


def _open_value(row: KeyValue) -> str | None:
    """Return a value, without secrets."""
    return None if row.is_secret else row.value


EXPORTS = {
    "knowledge": Export(
        KnowledgeEntry,
        columns(
            "id workspace content_id category content source tags access_count accessed_at created_at withdrawn_at "
            "withdrawn_reason last_verified_at review_by updated_at"
        ),
    ),
    "observations": Export(
        Observation,
        columns(
            "id workspace uid category content source occurred_at occurred_at_text access_count accessed_at "
            "confirmation_count withdrawn_at withdrawn_reason last_verified_at review_by updated_at"
        ),
    ),
    "key_values": Export(
        KeyValue,
        columns(
            "id workspace key value is_json is_secret withdrawn_at withdrawn_reason updated_at", value=_open_value
        ),
    ),
    "history": Export(
        HistoryEntry,
        columns(
            "id workspace position session run occurred_at occurred_at_text content source is_archived withdrawn_at "
            "recorded_at",
            session=lambda row: row.session.key if row.session else None,
            run=attribute("run_id"),
        ),
        ("workspace", "session"),
    ),
    "facts": Export(
        Fact,
        columns(
            "id workspace document section category text line pinned last_verified_at review_by born died",
            document=lambda row: row.document.name,
            born=lambda row: row.born.number,
            died=lambda row: row.died.number if row.died else None,
        ),
        ("workspace", "document", "born", "died"),
    ),
}
