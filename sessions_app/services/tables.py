"""Spreadsheet columns of sessions and entries (export only: entries are append-only)."""

from memoryhub.lib.tables.columns import Export, attribute, columns
from sessions_app.models import Entry, Session

EXPORTS = {
    "sessions": Export(
        Session,
        columns(
            "id workspace key channel title summary_text epoch last_consolidated entry_count active_entry_count "
            "total_tokens active_tokens summary_tokens is_visible_to_agent note created_at updated_at"
        ),
    ),
    "entries": Export(
        Entry,
        columns(
            "id workspace session epoch position kind role name tool_call_id tool_calls content token_count "
            "token_method occurred_at occurred_at_text summary is_injected is_rewound recorded_at",
            session=lambda row: row.session.key,
            summary=attribute("summary_id"),
        ),
        ("workspace", "session"),
    ),
}
