"""Damage JSON values and files at random."""

from __future__ import annotations

import random
from typing import Any

ODD = [None, 0, -1, 1.5, True, "", "x", "a" * 2000, [], {}, [None], {"a": {"b": []}}, "\ud800", 10**400, "u1", ["u1"]]


def replaced(value: Any, rng: random.Random) -> Any:
    """Return a JSON value with a random one at a random place inside it."""
    if rng.random() < 0.15:
        return rng.choice(ODD)
    if isinstance(value, dict) and value:
        name = rng.choice(list(value))
        return {**value, name: replaced(value[name], rng)}
    if isinstance(value, list) and value:
        place = rng.randrange(len(value))
        return [*value[:place], replaced(value[place], rng), *value[place + 1 :]]
    return rng.choice(ODD)


def damaged_bytes(raw: bytes, rng: random.Random) -> bytes:
    """Return a file's bytes with some changed, and perhaps cut."""
    damaged = bytearray(raw)
    for _ in range(rng.randrange(4)):
        damaged[rng.randrange(len(damaged))] = rng.randrange(256)
    return bytes(damaged[: rng.randrange(len(damaged)) if rng.random() < 0.3 else len(damaged)])
