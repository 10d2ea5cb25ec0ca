"""The limits of the cells of imported tables, which are those of pages and REST."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.utils.translation import gettext

from knowledge_app.services.rows import key_values, knowledge, observations
from knowledge_app.services.rows.row_changes import MAX_REASON
from memoryhub.lib.errors import Invalid

LIMITS = {
    "knowledge": {"content": knowledge.MAX_CHARS, "source": knowledge.MAX_SOURCE, "withdrawn_reason": MAX_REASON},
    "observations": {
        "content": observations.MAX_CHARS,
        "source": observations.MAX_SOURCE,
        "withdrawn_reason": MAX_REASON,
    },
    "key_values": {"value": key_values.MAX_CHARS, "withdrawn_reason": MAX_REASON},
}


def check_limits(table: str, own_id: str | None, values: Mapping[str, Any], kept: Any) -> None:
    """Check the values that a row sets in ``kept``, or in a new row: what it has already may stay. Raises Invalid."""
    new = {name: value for name, value in values.items() if kept is None or getattr(kept, name) != value}
    for column, most in LIMITS[table].items():
        if len(new.get(column, "")) > most:
            words = gettext("%(column)s: longer than %(count)s characters")
            raise Invalid(words % {"column": column, "count": f"{most:,}"}, code="wrong_row")
    if "tags" in new:
        knowledge.clean_tags(new["tags"])
    if table == "key_values" and kept is None:
        key_values.checked(own_id or "", "")
    if table != "key_values" and not values.get("content", "" if kept is None else "kept").strip():
        raise Invalid(gettext("it has no content"), code="wrong_row")
