"""Rows of the memory list as pages show them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

from django.urls import reverse

from knowledge_app.models import KnowledgeEntry, Observation
from memoryhub.lib.search.hits import WeightedTerm
from memoryhub.lib.search.passages import Passage, passage
from memoryhub.lib.text.markdown import plain_text, without_front_matter, without_links
from memoryhub.memory.listing import Item
from memoryhub.search.views.rows import history_url, searched_text, visible

TEXT_CHARS = 320
CATEGORIES = {**dict(KnowledgeEntry.Category.choices), **dict(Observation.Category.choices)}
PAGES = {
    "memory": "documents:fact",
    "knowledge": "knowledge:knowledge-entry",
    "observation": "knowledge:observation",
    "key_value": "knowledge:key-value",
    "document": "documents:document",
}


@dataclass(frozen=True)
class ShownItem:
    """A row with its URL, and the shown part of its text. ``is_due``: for review."""

    item: Item
    url: str
    passage: Passage
    category: str
    is_due: bool

    @property
    def pieces(self) -> list[tuple[str, bool]]:
        return visible(self.passage.pieces)

    @property
    def text(self) -> str:
        """The shown part without Markdown marks."""
        return plain_text("".join(text for text, _is_hit in self.pieces))


def shown_item(item: Item, slug: str, terms: Sequence[WeightedTerm], today: date) -> ShownItem:
    """Return a row with the part of its text that matches ``terms`` best, secrets masked."""
    kind, row = item.kind.name, item.row
    category = getattr(row, "category", "")
    review_by = getattr(row, "review_by", None)
    text = without_links(without_front_matter(searched_text(kind, row)))
    return ShownItem(
        item,
        _url(kind, row, slug),
        passage(text, terms, length=TEXT_CHARS),
        str(CATEGORIES.get(category, category.replace("_", " ").capitalize())),
        is_due=review_by is not None and review_by <= today,
    )


def _url(kind: str, row: Any, slug: str) -> str:
    if kind == "history":
        return history_url(slug, row.pk, row.position)
    return reverse(PAGES[kind], args=[slug, row.document_id if kind == "document" else row.pk])
