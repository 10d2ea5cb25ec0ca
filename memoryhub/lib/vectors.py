"""Embeddings as bytes: little-endian float32."""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence


def pack(values: Sequence[float]) -> bytes:
    """Return (n,) numbers as 4n bytes. Raises OverflowError for one beyond float32."""
    return struct.pack(f"<{len(values)}f", *values)


def unpack(data: bytes) -> list[float]:
    """Return the numbers of ``pack``, each as the shortest decimal that float32 can't tell from it."""
    return [_shortest(value) for value in struct.unpack(f"<{len(data) // 4}f", data)]


def cosine(one: Sequence[float], other: Sequence[float]) -> float:
    """Return the cosine of two vectors of one length; 0 where either is all zeros."""
    lengths = math.sqrt(sum(x * x for x in one)) * math.sqrt(sum(x * x for x in other))
    return sum(x * y for x, y in zip(one, other, strict=True)) / lengths if lengths else 0.0


def _shortest(value: float) -> float:
    exact = struct.pack("<f", value)
    for digits in range(6, 10):
        candidate = float(f"{value:.{digits}g}")
        if struct.pack("<f", candidate) == exact:
            return candidate
    return value
