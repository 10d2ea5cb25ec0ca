"""The rows that accesses name: a label with their text, and the URL of their page.

The access log stores no text. A label shows the present text of a row, with secrets masked, as its page does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from django.urls import reverse
from django.utils.translation import gettext, ngettext

from knowledge_app.models import (
    CachedResponse,
    Concern,
    Fact,
    HistoryEntry,
    KeyValue,
    KnowledgeEntry,
    MemoryDocument,
    Observation,
)
from knowledge_app.services.rows.edit_tables import CONCERNS
from memoryhub.audit.access_log import TABLES, access_label
from memoryhub.hygiene.concern_rows import rows_of_concerns
from memoryhub.lib.content_check.hidden_content import show_invisible
from memoryhub.lib.masked_text import masked
from memoryhub.models import AccessedRow, AccessRecord
from memoryhub.search.views.rows import history_url
from sessions_app.models import Session, Summary, Workspace
from sessions_app.services.access_log import DOCUMENTS, ENTRIES

DETAILS: dict[str, tuple[Any, str, str]] = {  # tables whose rows have their own page: model, page, column of the text
    "knowledge": (KnowledgeEntry, "knowledge:knowledge-entry", "content"),
    "observations": (Observation, "knowledge:observation", "content"),
    "key_values": (KeyValue, "knowledge:key-value", "key"),
    "cached": (CachedResponse, "knowledge:cached-response", "preview"),
}
LABEL_CHARS = 90
READ_CHARS = 400  # of a text, so that a secret at the end of the label is masked as a whole
RowsByTable = Mapping[str, Mapping[int, Any]]
Place = tuple[str, str]  # label and URL, "" if deleted
SHOWN_VIEWS = 10  # of page views that are one line


def places_of(workspace: Workspace, rows: Mapping[int, Sequence[AccessedRow]]) -> dict[int, list[Place]]:
    """Return the label and URL of accessed rows, by access. One query per table."""
    found = _find(workspace, [row for several in rows.values() for row in several])
    return {access: [_place(workspace, row, found) for row in several] for access, several in rows.items()}


def excerpt(text: str) -> str:
    """Return the beginning of a text on one line, with secrets masked."""
    line = " ".join(show_invisible(masked(text[:READ_CHARS])).split())
    return line if len(line) <= LABEL_CHARS else f"{line[: LABEL_CHARS - 1].rstrip()}…"


def _find(workspace: Workspace, rows: Iterable[AccessedRow]) -> RowsByTable:
    """Return the existing rows by table and key."""
    keys: dict[str, set[int]] = {}
    for row in rows:
        keys.setdefault(row.table, set()).add(row.parent or row.first)
    return {table: FINDERS[table](workspace, pks) for table, pks in keys.items() if table in FINDERS}


def _find_facts(workspace: Workspace, pks: set[int]) -> dict[int, str]:
    return dict(Fact.objects.filter(workspace=workspace, pk__in=pks).values_list("pk", "text"))


def _find_summaries(workspace: Workspace, pks: set[int]) -> dict[int, Summary]:
    rows = Summary.objects.filter(session__workspace=workspace)
    return rows.only("session", "epoch", "first_position", "last_position", "content").in_bulk(pks)


def _find_details(table: str) -> Callable[[Workspace, set[int]], Mapping[int, Any]]:
    model, _, column = DETAILS[table]
    return lambda workspace, pks: dict(
        model._default_manager.filter(workspace=workspace, pk__in=pks).values_list("pk", column)
    )


def _find_sessions(workspace: Workspace, pks: set[int]) -> Mapping[int, Any]:
    rows = Session.objects.filter(workspace=workspace, pk__in=pks)
    return {row.pk: str(row) for row in rows.only("key", "title")}


def _find_history(workspace: Workspace, pks: set[int]) -> Mapping[int, Any]:
    rows = HistoryEntry.objects.filter(workspace=workspace, pk__in=pks).values_list("pk", "position", "content")
    return {pk: (position, content) for pk, position, content in rows}


def _find_findings(workspace: Workspace, pks: set[int]) -> Mapping[int, Place]:
    """Return the text and page of the first row of each finding."""
    concerns = list(Concern.objects.filter(workspace=workspace, pk__in=pks))
    found = rows_of_concerns(workspace, concerns, may_forget=False)
    return {concern.pk: (excerpt(rows[0].text), rows[0].url) for concern, rows in found if rows}


FINDERS: dict[str, Callable[[Workspace, set[int]], Mapping[int, Any]]] = {
    ENTRIES: _find_sessions,
    "sessions": _find_sessions,
    DOCUMENTS: lambda workspace, pks: dict(
        MemoryDocument.objects.filter(workspace=workspace, pk__in=pks).values_list("pk", "name")
    ),
    "facts": _find_facts,
    "summaries": _find_summaries,
    "history": _find_history,
    CONCERNS: _find_findings,
} | {table: _find_details(table) for table in DETAILS}


def _place(workspace: Workspace, row: AccessedRow, found: RowsByTable) -> Place:
    slug, pk = workspace.slug, row.parent or row.first
    found_row = found.get(row.table, {}).get(pk)
    if row.table == ENTRIES:
        name = found_row or gettext("session %(number)s") % {"number": pk}
        url = f"{reverse('sessions:detail', args=[slug, pk])}?epoch={row.epoch}&from={row.first}"
        return f"{name} {_span(row)}", url if found_row else ""
    if row.table == DOCUMENTS:
        name = found_row or gettext("document %(number)s") % {"number": pk}
        label = gettext("%(document)s revision %(number)s") % {"document": name, "number": row.first}
        url = f"{reverse('documents:document', args=[slug, pk])}?revision={row.first}"
        return label, url if found_row else ""
    if row.table == CONCERNS:
        return found_row or ("", "")
    name = gettext("memory line") if row.table == "facts" else TABLES.get(row.table, row.table)
    if found_row is None:
        return f"{name} {pk}", ""
    return _label(row.table, found_row) or f"{name} {pk}", _url(slug, row.table, pk, found_row)


def _span(row: AccessedRow) -> str:
    if row.first == row.last:
        return f"#{row.first:,}"
    return gettext("#%(first)s to #%(last)s") % {"first": f"{row.first:,}", "last": f"{row.last:,}"}


def _label(table: str, found_row: Any) -> str:
    if table == "history":
        return excerpt(found_row[1])
    return excerpt(found_row.content if table == "summaries" else found_row)


def _url(slug: str, table: str, pk: int, found_row: Any) -> str:
    if table in DETAILS:
        return reverse(DETAILS[table][1], args=[slug, pk])
    if table == "facts":
        return reverse("documents:fact", args=[slug, pk])
    if table == "history":
        return history_url(slug, pk, found_row[0])
    page = reverse("sessions:detail", args=[slug, found_row.session_id if table == "summaries" else pk])
    return f"{page}?epoch={found_row.epoch}&from={found_row.first_position}" if table == "summaries" else page


def summary_of(
    group: Sequence[AccessRecord], rows: Mapping[int, Sequence[AccessedRow]], places: Mapping[int, list[Place]]
) -> tuple[str, list[Place], int]:
    """Return what an access or the page views of a person did, the first places, and the number of other rows.

    ``rows``: the first rows of each access, as ``first_rows`` returns them; ``places``: of these.
    """
    first, count = group[0], len(group)
    if count == 1:
        named = sum(row.last - row.first + 1 for row in rows[first.pk])
        return access_label(first.action, first.row_count), places[first.pk], max(0, first.row_count - named)
    text = ngettext("viewed %(count)s page", "viewed %(count)s pages", count) % {"count": f"{count:,}"}
    return text, list(dict.fromkeys(place for row in group[:SHOWN_VIEWS] for place in places[row.pk])), 0
