"""Measure how long each part of ``memoryhub.search.ranking`` takes, without the functions that it calls."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any
from unittest.mock import patch

from memoryhub.lib.search import scoring
from memoryhub.search import ranking

PARTS = {
    "count_words": "filters and counting",
    "_expansions": "graph",
    "_best": "candidates",
    "load_candidates": "loading candidates",
    "load_neighbours": "loading neighbours",
    "rank": "rerank",
    "_ordered": "fuse",
    "_loaded": "loading rows",
    "find": "the rest",
}


class Stages(AbstractContextManager["Stages"]):
    """A context manager that measures the parts of the searches in its block."""

    def __init__(self) -> None:
        self._spent: defaultdict[str, float] = defaultdict(float)
        self._inner: list[float] = []
        self._patches: list[Any] = []

    def __enter__(self) -> Stages:
        for name, part in PARTS.items():
            if hasattr(ranking, name):
                wrapped = patch.object(ranking, name, self._timed(getattr(ranking, name), part))
                wrapped.start()
                self._patches.append(wrapped)
        return self

    def __exit__(self, *_: object) -> None:
        for wrapped in self._patches:
            wrapped.stop()

    def milliseconds(self) -> dict[str, float]:
        return {part: self._spent[part] * 1000 for part in PARTS.values() if part in self._spent}

    def _timed(self, work: Callable[..., Any], part: str) -> Callable[..., Any]:
        def measured(*args: Any, **kwargs: Any) -> Any:
            self._inner.append(0.0)
            began = time.perf_counter()
            try:
                return work(*args, **kwargs)
            finally:
                spent = time.perf_counter() - began
                self._spent[part] += spent - self._inner.pop()
                if self._inner:
                    self._inner[-1] += spent

        return measured


def captured_ranks(search: Callable[[], object]) -> list[tuple[tuple[Any, ...], dict[str, Any]]]:
    """Return the arguments with which a search called ``rank``, including the loaded neighbours."""
    calls: list[tuple[tuple[Any, ...], dict[str, Any]]] = []
    rank = scoring.rank

    def noted(*args: Any, load: Callable[[Any], Any] | None = None, **kwargs: Any) -> Any:
        loaded: list[Any] = []

        def load_and_keep(places: Any) -> Any:
            loaded.extend(load(places) if load else [])
            return loaded

        found = rank(*args, load=load and load_and_keep, **kwargs)
        calls.append((args, kwargs | {"load": (lambda _: loaded) if load else None}))
        return found

    with patch.object(ranking, "rank", noted):
        search()
    return calls
