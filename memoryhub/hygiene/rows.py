"""Rows of all tables that a scan reads, as plain values, and their text with secrets masked."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from datetime import date, datetime
from typing import Any

from django.db.models import QuerySet
from django.utils.translation import gettext_noop

from knowledge_app.models import CachedResponse, Fact, KeyValue, KnowledgeEntry, Observation
from knowledge_app.services.decisions import ranks_to_keep
from memoryhub.lib.scanners import MASK, ORDER, SECRET, Match, mask_secrets, scan_instructions, scan_value
from memoryhub.lib.secrets import looks_secret
from sessions_app.models import Entry, Workspace

FACTS, KNOWLEDGE, OBSERVATIONS = "facts", "knowledge", "observations"
KEY_VALUES, CACHED, ENTRIES = "key_values", "cached", "entries"
MEMORY = (FACTS, KNOWLEDGE, OBSERVATIONS, KEY_VALUES, CACHED)  # entries are conversation, not memory
COMPARED = (FACTS, KNOWLEDGE, OBSERVATIONS)
LABELS = {  # as the filter ``words`` shows them
    FACTS: gettext_noop("Fact"),
    KNOWLEDGE: gettext_noop("Knowledge entry"),
    OBSERVATIONS: gettext_noop("Observation"),
    KEY_VALUES: gettext_noop("Key-value"),
    CACHED: gettext_noop("Cached response"),
    ENTRIES: gettext_noop("Message"),
}
WORDS = {table: label.lower() for table, label in LABELS.items()}
BATCH_ROWS, BATCH_MESSAGES = 500, 100
SHOWN_CHARS = 400
READ_CHARS = 60_000  # of a row to show
_MARGIN = 2_000  # dropped at the cut, where half a secret could show

MODELS: dict[str, Any] = {
    FACTS: Fact,
    KNOWLEDGE: KnowledgeEntry,
    OBSERVATIONS: Observation,
    KEY_VALUES: KeyValue,
    CACHED: CachedResponse,
    ENTRIES: Entry,
}


@dataclass(frozen=True)
class Row:
    """One row. ``name``: the key of a key-value. Unknown times are None."""

    table: str
    pk: int
    text: str
    name: str = ""
    made_at: datetime | None = None
    read_at: datetime | None = None
    verified_at: datetime | None = None
    review_by: date | None = None
    parent: int = 0  # the document of a fact
    category: str = ""
    is_pinned: bool = False
    is_living: bool = True
    rank: int = 0  # of duplicates, the lowest is to be kept


def living_rows(workspace: Workspace, table: str) -> QuerySet[Any]:
    """Return the rows of a table that aren't removed, withdrawn or held."""
    rows: dict[str, QuerySet[Any]] = {
        FACTS: Fact.objects.filter(died=None),
        KNOWLEDGE: KnowledgeEntry.objects.filter(withdrawn_at=None, hold=None),
        OBSERVATIONS: Observation.objects.filter(withdrawn_at=None, hold=None),
        KEY_VALUES: KeyValue.objects.filter(withdrawn_at=None, hold=None),
        CACHED: CachedResponse.objects.all(),
        ENTRIES: Entry.objects.all(),
    }
    return rows[table].filter(workspace=workspace)


def read_batches(workspace: Workspace, table: str, *, after: int = 0) -> Iterator[list[Row]]:
    """Yield the active rows of a table after a primary key, in batches of 500 (messages: 100)."""
    last = after
    size = BATCH_MESSAGES if table == ENTRIES else BATCH_ROWS
    while found := list(_with_scanned_columns(living_rows(workspace, table).filter(pk__gt=last), table)[:size]):
        ranks = ranks_to_keep(found) if table in COMPARED else {}
        yield [replace(_row(table, row), rank=ranks.get(row.pk, 0)) for row in found]
        last = found[-1].pk


def rows_at(workspace: Workspace, table: str, pks: Collection[int]) -> dict[int, Row]:
    """Return rows of a table by primary key, including removed and withdrawn ones. One query."""
    found = _with_scanned_columns(MODELS[table].objects.filter(workspace=workspace, pk__in=pks), table)
    return {row.pk: _row(table, row) for row in found}


def _with_scanned_columns(rows: QuerySet[Any], table: str) -> QuerySet[Any]:
    if table == FACTS:
        rows = rows.select_related("born").defer("born__content", "born__raw")
    elif table == ENTRIES:
        rows = rows.only("content", "tool_calls", "recorded_at")
    return rows.order_by("pk")


def _row(table: str, row: Any) -> Row:
    if table == FACTS:
        return Row(
            table,
            row.pk,
            row.text,
            made_at=row.born.created_at,
            verified_at=row.last_verified_at,
            review_by=row.review_by,
            parent=row.document_id,
            category=row.category,
            is_pinned=row.pinned,
            is_living=row.died_id is None,
        )
    if table in (KNOWLEDGE, OBSERVATIONS):
        made = row.created_at or row.updated_at if table == KNOWLEDGE else row.occurred_at or row.recorded_at
        return Row(
            table,
            row.pk,
            row.content,
            made_at=made,
            read_at=row.accessed_at,
            verified_at=row.last_verified_at,
            review_by=row.review_by,
            category=row.category,
            is_living=row.withdrawn_at is None,
        )
    if table == KEY_VALUES:
        return Row(table, row.pk, row.value, name=row.key, made_at=row.updated_at, is_living=row.withdrawn_at is None)
    if table == CACHED:
        return Row(table, row.pk, f"{row.preview}\n{row.response}".strip(), made_at=row.created_at)
    return Row(table, row.pk, f"{row.content}\n{_calls(row.tool_calls)}".strip(), made_at=row.recorded_at)


def _calls(tool_calls: Any) -> str:
    """Return the arguments of tool calls as text; JSON strings aren't encoded again."""
    if not tool_calls:
        return ""
    calls = tool_calls if isinstance(tool_calls, list) else [tool_calls]
    texts = []
    for call in calls:
        inner = call.get("function") if isinstance(call, dict) else None
        arguments = inner.get("arguments") if isinstance(inner, dict) else None
        texts.append(arguments if isinstance(arguments, str) else json.dumps(call, ensure_ascii=False))
    return "\n".join(texts)


def scan_row(row: Row) -> list[Match]:
    """Return the secrets, personal data and (except in messages) instructions in a row."""
    found = scan_value(row.name, row.text)
    return found if row.table == ENTRIES else [*found, *scan_instructions(row.text)]


def shown_text(row: Row, kind: str = "") -> str:
    """Return a row's text for a page: secrets masked, long texts cut to the part that ``kind`` is about."""
    name = f"{mask_secrets(row.name)}: " if row.name else ""
    if row.table == KEY_VALUES and looks_secret(row.name, row.text):
        return f"{name}{MASK}"
    text = row.text[:READ_CHARS]
    found = scan_value(row.name, text)
    secrets = [match for match in found if match.kind == SECRET]
    about = [match for match in (scan_instructions(text) if kind == ORDER else found) if match.kind == kind]
    place = about[0].start if about else 0
    place -= sum(match.end - match.start - len(MASK) for match in secrets if match.end <= place)
    masked = mask_secrets(text, secrets)
    if len(row.text) > READ_CHARS:
        masked = masked[:-_MARGIN]
    start = max(0, place - SHOWN_CHARS // 2) if len(masked) > SHOWN_CHARS else 0
    end = start + SHOWN_CHARS
    return f"{name}{'…' if start else ''}{masked[start:end]}{'…' if end < len(masked) else ''}"
