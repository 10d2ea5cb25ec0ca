"""The number of tags that an entry may have. More come only from agents' files and merges, and may stay."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from django.utils.translation import ngettext

from knowledge_app.models import KnowledgeEntry
from knowledge_app.services.rows.row_changes import MAX_TAGS, Values, has_room, tags_after
from memoryhub.lib.errors import Invalid
from sessions_app.models import Workspace

READ_AT_ONCE = 500


def refuse_too_many_tags(workspace: Workspace, pks: Collection[int], values: Values) -> None:
    """Raise Invalid if added tags would exceed the limit in any of these entries."""
    if not values.get("add"):
        return
    ordered = sorted(pks)
    full: list[int] = []
    for start in range(0, len(ordered), READ_AT_ONCE):
        rows = KnowledgeEntry.objects.filter(workspace=workspace, pk__in=ordered[start : start + READ_AT_ONCE])
        full += _without_room(list(rows.order_by("pk").values_list("pk", "tags")), values)
    if full:
        words = ngettext(
            "Nothing was changed: an entry can have at most %(most)s tags, and entry #%(id)s would have more.",
            "Nothing was changed: an entry can have at most %(most)s tags, and %(count)s would have more, the first"
            " is entry #%(id)s.",
            len(full),
        )
        found = {"most": MAX_TAGS, "count": f"{len(full):,}", "id": full[0]}
        raise Invalid(words % found, code="too_many_tags")


def _without_room(rows: Collection[tuple[int, Sequence[str]]], values: Values) -> list[int]:
    return [pk for pk, tags in rows if not has_room(tags, tags_after(tags, values))]
