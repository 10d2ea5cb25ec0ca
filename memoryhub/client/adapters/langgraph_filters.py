"""The filters of LangGraph's stores."""

from __future__ import annotations

from operator import eq, ge, gt, le, lt, ne
from typing import Any

from langgraph.store.base import MatchCondition

OPERATORS: dict[str, Any] = {"$eq": eq, "$ne": ne, "$gt": gt, "$gte": ge, "$lt": lt, "$lte": le}


def passes(value: dict[str, Any], wanted: dict[str, Any]) -> bool:
    """Return whether a value has all wanted fields. A wanted field is a value, or values by operator."""
    tests = [(name, one if isinstance(one, dict) else {"$eq": one}) for name, one in wanted.items()]
    return all(OPERATORS[sign](value.get(name), other) for name, test in tests for sign, other in test.items())


def matches(condition: MatchCondition, namespace: tuple[str, ...]) -> bool:
    """Return whether a namespace begins or ends with the names of a condition, in which ``*`` is any name."""
    size = len(condition.path)
    part = namespace[:size] if condition.match_type == "prefix" else namespace[-size:]
    return len(part) == size and all(one in ("*", name) for one, name in zip(condition.path, part, strict=True))
