"""The limits of the cells of imported tables, which are those of pages and REST."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from django.db.models import TextField
from django.db.models.functions import Cast, Length
from django.utils.translation import gettext

from knowledge_app.services.rows import key_values, knowledge, observations
from knowledge_app.services.rows.edit_tables import TABLES
from knowledge_app.services.rows.row_changes import MAX_TAGS
from memoryhub.lib.errors import Invalid
from memoryhub.lib.validation import MAX_REASON

LIMITS = {
    "knowledge": {"content": knowledge.MAX_CHARS, "source": knowledge.MAX_SOURCE, "withdrawn_reason": MAX_REASON},
    "observations": {
        "content": observations.MAX_CHARS,
        "source": observations.MAX_SOURCE,
        "withdrawn_reason": MAX_REASON,
    },
    "key_values": {"value": key_values.MAX_CHARS, "withdrawn_reason": MAX_REASON},
}


class CellLimits:
    """The limits of one table. What a row of the hub has already may stay, and be copied to another workspace."""

    def __init__(self, table: str) -> None:
        self.table = table
        self._over: dict[str, set[int]] = {}  # hashes of what the hub has beyond a limit, by column

    def check(self, own_id: str | None, values: Mapping[str, Any], kept: Any) -> None:
        """Check the values that a row sets in ``kept``, or in a new row. Raises Invalid."""
        new = {name: value for name, value in values.items() if kept is None or getattr(kept, name) != value}
        for column, most in LIMITS[self.table].items():
            text = new.get(column, "")
            if len(text) > most and not self._has(column, most, text):
                words = gettext("%(column)s: longer than %(count)s characters")
                raise Invalid(words % {"column": column, "count": f"{most:,}"}, code="wrong_row")
        self._check_tags(new.get("tags", []))
        if self.table == "key_values" and kept is None:
            key_values.checked(own_id or "", "")
        if self.table != "key_values" and not values.get("content", "" if kept is None else "kept").strip():
            raise Invalid(gettext("it has no content"), code="wrong_row")

    def _check_tags(self, tags: list[str]) -> None:
        try:
            knowledge.clean_tags(tags)
        except Invalid:
            if not self._has("tags", MAX_TAGS, tuple(tags)):
                raise

    def _has(self, column: str, most: int, value: str | tuple[str, ...]) -> bool:
        """Tell whether a row of the hub has a value that exceeds a limit. One query for each column."""
        if column not in self._over:
            self._over[column] = {hash(known) for known in self._values_over(column, most)}
        return hash(value) in self._over[column]

    def _values_over(self, column: str, most: int) -> Iterator[str | tuple[str, ...]]:
        rows: Any = TABLES[self.table].model._default_manager.all()
        text = Cast(column, TextField()) if column == "tags" else column  # each tag has at least one character
        found = rows.annotate(length=Length(text)).filter(length__gt=most).values_list(column, flat=True)
        for value in found.iterator(chunk_size=50):
            yield tuple(value) if column == "tags" else value
