"""The embedding of a query, within 400 ms or not at all.

Answers are cached per process. A provider that fails or times out isn't asked again for a minute, so that it slows
down only one search.
"""

from __future__ import annotations

import logging
import time
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from threading import Lock
from typing import TYPE_CHECKING

from memoryhub.lib.embeddings import EmbeddingSettings, embed
from memoryhub.lib.errors import MemoryHubError
from memoryhub.lib.llm import load_sdk
from memoryhub.lib.text_caches import keeps_texts

if TYPE_CHECKING:
    from memoryhub.lib.embeddings import Rows

logger = logging.getLogger(__name__)
MILLISECONDS = 400  # to wait for an answer
PAUSE_SECONDS = 60.0  # after a failure
KEPT = 256  # answers, least recently used dropped first
ASKERS = 4  # concurrent requests
Wait = Callable[[], "Rows | None"]
_asking = ThreadPoolExecutor(max_workers=ASKERS, thread_name_prefix="embedding")
_lock = Lock()
_answers: OrderedDict[tuple[str, ...], Rows] = OrderedDict()
_paused_until: dict[tuple[str, ...], float] = {}


def request(settings: EmbeddingSettings, text: str) -> Wait:
    """Request the embedding of a text; return a function that waits for it.

    The function returns a (d,) unit vector, or None if none arrived in time. It never raises.
    """
    known = _known(settings, text)
    if known is not None:
        return lambda: known
    if is_paused(settings):
        return lambda: None
    load_sdk()  # not counted against the time limit
    end = time.monotonic() + MILLISECONDS / 1000
    future = _asking.submit(_ask, settings, text)
    return lambda: _wait(future, settings, end)


def is_paused(settings: EmbeddingSettings) -> bool:
    """Tell whether a provider failed within the last minute and isn't asked."""
    return time.monotonic() < _paused_until.get(_place(settings), 0.0)


@keeps_texts
def forget_all() -> None:
    """Clear this process's answers and failures."""
    with _lock:
        _answers.clear()
        _paused_until.clear()


def _place(settings: EmbeddingSettings) -> tuple[str, ...]:
    return settings.base_url, settings.provider, settings.model


def _known(settings: EmbeddingSettings, text: str) -> Rows | None:
    key = (*_place(settings), text)
    with _lock:
        if key in _answers:
            _answers.move_to_end(key)
        return _answers.get(key)


def _ask(settings: EmbeddingSettings, text: str) -> Rows | None:
    """Ask the provider (in a thread); a late answer is cached for the next search."""
    quick = replace(settings, timeout_seconds=MILLISECONDS / 1000, retries=0)
    try:
        row: Rows = embed(quick, [text]).rows[0]
    except MemoryHubError as error:
        logger.warning("the embedding provider didn't answer a search: %s", error)
        _pause(settings)
        return None
    except Exception:  # must not break the search
        logger.exception("asking the embedding provider failed")
        _pause(settings)
        return None
    with _lock:
        _answers[(*_place(settings), text)] = row
        while len(_answers) > KEPT:
            _answers.popitem(last=False)
    return row


def _wait(future: Future[Rows | None], settings: EmbeddingSettings, end: float) -> Rows | None:
    try:
        return future.result(timeout=max(0.0, end - time.monotonic()))
    except TimeoutError:
        future.cancel()
        _pause(settings)
        return None


def _pause(settings: EmbeddingSettings) -> None:
    with _lock:
        _paused_until[_place(settings)] = time.monotonic() + PAUSE_SECONDS
