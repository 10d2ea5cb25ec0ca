"""Store embeddings as little-endian float32 bytes, and compare them."""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence


def pack(values: Sequence[float]) -> bytes:
    """Return n numbers as 4n bytes. Raises OverflowError for a number too large for float32."""
    return struct.pack(f"<{len(values)}f", *values)


def unpack(data: bytes) -> list[float]:
    """Return the numbers that ``pack`` stored, each as the shortest decimal that rounds to the same float32."""
    return [_shortest(value) for value in struct.unpack(f"<{len(data) // 4}f", data)]


def cosine(one: Sequence[float], other: Sequence[float]) -> float:
    """Return the cosine similarity of two vectors of the same length; 0 if either is all zeros."""
    norms = math.sqrt(sum(x * x for x in one)) * math.sqrt(sum(x * x for x in other))
    return sum(x * y for x, y in zip(one, other, strict=True)) / norms if norms else 0.0


def _shortest(value: float) -> float:
    exact = struct.pack("<f", value)
    for digits in range(6, 10):
        candidate = float(f"{value:.{digits}g}")
        if struct.pack("<f", candidate) == exact:
            return candidate
    return value
