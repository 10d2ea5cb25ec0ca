"""Decompress Zstandard data with the standard library of Python 3.14, or its backport if it is installed."""

from __future__ import annotations

import importlib
from types import ModuleType

MAX_DECOMPRESSED_BYTES = 256 * 2**20
MODULES = ("compression.zstd", "backports.zstd")


class NoZstd(Exception):
    """This Python has no module for Zstandard."""


def decompress(data: bytes, limit: int = MAX_DECOMPRESSED_BYTES) -> bytes:
    """Return up to ``limit`` decompressed bytes. Raises NoZstd; ValueError for damaged or larger data."""
    module = _module()
    try:
        decompressor = module.ZstdDecompressor()
        found: bytes = decompressor.decompress(data, max_length=limit)
    except (module.ZstdError, EOFError) as error:
        raise ValueError("is damaged") from error
    if not decompressor.eof:
        raise ValueError(f"is cut off, or larger than {limit // 2**20} MB")
    return found


def _module() -> ModuleType:
    for name in MODULES:
        try:
            return importlib.import_module(name)
        except ImportError:
            continue
    raise NoZstd
