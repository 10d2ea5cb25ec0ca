from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Protocol, TypeVar

from memoryhub.lib.validation import json_text


class HasExtra(Protocol):
    extra: Any


RowT = TypeVar("RowT", bound=HasExtra)
Fields = list[tuple[str, str]]


def extra_fields(row: HasExtra) -> Fields:
    """Return what the agent's file said of a row beyond the fields that the hub knows, as (name, JSON text).

    Pairs, since a template that asks a dict for ``items`` gets its field of that name.
    """
    return [(name, json_text(value)) for name, value in row.extra.items()] if isinstance(row.extra, dict) else []


def with_extra_fields(rows: Iterable[RowT]) -> list[tuple[RowT, Fields]]:
    return [(row, extra_fields(row)) for row in rows]
