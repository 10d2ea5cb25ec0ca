"""Caches that keep texts in this process, which are cleared when something was forgotten."""

from __future__ import annotations

from collections.abc import Callable
from functools import _lru_cache_wrapper, lru_cache
from typing import TypeVar

T = TypeVar("T")
Clear = TypeVar("Clear", bound=Callable[[], object])
_clearing: list[Callable[[], object]] = []


def text_cache(most: int) -> Callable[[Callable[..., T]], _lru_cache_wrapper[T]]:
    """Decorate a function of texts: its latest results are kept until something is forgotten."""

    def decorate(function: Callable[..., T]) -> _lru_cache_wrapper[T]:
        cached = lru_cache(most)(function)
        _clearing.append(cached.cache_clear)
        return cached

    return decorate


def keeps_texts(clear: Clear) -> Clear:
    """Name a function that clears another cache that keeps texts; also as a decorator."""
    _clearing.append(clear)
    return clear


def clear_texts() -> None:
    for clear in _clearing:
        clear()
