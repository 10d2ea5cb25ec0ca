"""Embeddings as bytes: little-endian float32."""

from __future__ import annotations

import struct
from collections.abc import Sequence


def pack(values: Sequence[float]) -> bytes:
    """Return (n,) numbers as 4n bytes. Raises OverflowError for one beyond float32."""
    return struct.pack(f"<{len(values)}f", *values)


def unpack(data: bytes) -> list[float]:
    """Return the numbers of ``pack``, each as the shortest decimal that float32 can't tell from it."""
    return [_shortest(value) for value in struct.unpack(f"<{len(data) // 4}f", data)]


def _shortest(value: float) -> float:
    exact = struct.pack("<f", value)
    for digits in range(6, 10):
        candidate = float(f"{value:.{digits}g}")
        if struct.pack("<f", candidate) == exact:
            return candidate
    return value
