"""The rows that concerns are about, as pages show them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from django.urls import reverse

from knowledge_app.models import Concern
from memoryhub.hygiene.rows import WORDS, Row, rows_at, shown_text
from memoryhub.lib.content_check.hidden_content import show_invisible
from sessions_app.models import Workspace

PLACES = {
    "knowledge": "knowledge:knowledge-entry",
    "observations": "knowledge:observation",
    "key_values": "knowledge:key-value",
    "cached": "knowledge:cached-response",
    "entries": "sessions:entry",
}


@dataclass(frozen=True)
class ConcernRow:
    """A row of a concern: its table and key, its kind, its text with secrets masked, and its URL.

    ``is_exact``: whether the text is the stored one, neither masked nor cut.
    """

    table: str
    pk: int
    word: str
    text: str
    url: str
    made_at: datetime | None
    is_living: bool
    is_pinned: bool = False
    is_exact: bool = False
    forget_url: str = ""


def rows_of_concerns(
    workspace: Workspace, concerns: Sequence[Concern], *, may_forget: bool
) -> list[tuple[Concern, list[ConcernRow]]]:
    """Return concerns with their rows. One query per table."""
    pks_by_table: defaultdict[str, set[int]] = defaultdict(set)
    for concern in concerns:
        pks_by_table[concern.table].add(concern.object_id)
        if concern.other_id is not None:
            pks_by_table[concern.other_table].add(concern.other_id)
    found = {table: rows_at(workspace, table, pks) for table, pks in pks_by_table.items()}
    shown = []
    for concern in concerns:
        places = [(concern.table, concern.object_id), (concern.other_table, concern.other_id or 0)]
        rows = [found.get(table, {}).get(pk) for table, pk in places if table]
        shown.append((concern, [_concern_row(workspace, concern, row, may_forget=may_forget) for row in rows if row]))
    return shown


def _concern_row(workspace: Workspace, concern: Concern, row: Row, *, may_forget: bool) -> ConcernRow:
    text = show_invisible(shown_text(row, concern.kind))
    return ConcernRow(
        row.table,
        row.pk,
        WORDS[row.table],
        text,
        _place(workspace, row),
        row.made_at,
        row.is_living,
        row.is_pinned,
        text == row.text,
        _forget_url(workspace, concern) if may_forget else "",
    )


def _place(workspace: Workspace, row: Row) -> str:
    if row.table == "facts":
        page = "documents:facts" if row.is_living else "documents:document"
        url = reverse(page, args=[workspace.slug, row.parent])
        return f"{url}?fact={row.pk}#fact-{row.pk}" if row.is_living else url
    return reverse(PLACES[row.table], args=[workspace.slug, row.pk])


def _forget_url(workspace: Workspace, concern: Concern) -> str:
    """Return the URL of the forget page, without the secret: URLs are logged."""
    is_for_it = concern.kind in (Concern.Kind.SECRET, Concern.Kind.PERSONAL)
    return reverse("forget", args=[workspace.slug]) if is_for_it else ""
