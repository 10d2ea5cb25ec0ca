from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Protocol, TypeVar

from memoryhub.lib.json_numbers import SPELLINGS
from memoryhub.lib.validation import json_text


class HasExtra(Protocol):
    extra: Any


RowT = TypeVar("RowT", bound=HasExtra)
Fields = list[tuple[str, str]]


def extra_fields(row: HasExtra) -> Fields:
    """Return the fields of the agent's file that the hub has no column for, as (name, JSON text) pairs.

    Not a dict: in a template, ``extra.items`` would look up a field named "items".
    """
    values = row.extra if isinstance(row.extra, dict) else {}
    return [(name, json_text(value)) for name, value in values.items() if name != SPELLINGS]


def with_extra_fields(rows: Iterable[RowT]) -> list[tuple[RowT, Fields]]:
    return [(row, extra_fields(row)) for row in rows]
