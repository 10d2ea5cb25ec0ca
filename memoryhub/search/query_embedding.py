"""The embedding of what somebody just asked for: at once or not at all. Who waits for it waits 400 ms at most.

Nothing is asked twice. A provider that fails or is too slow is left alone for a minute: it costs one search its time
and others nothing. All of this is a process's own.
"""

from __future__ import annotations

import logging
import time
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from threading import Lock

from memoryhub.lib.embeddings import EmbeddingSettings, Rows, embed
from memoryhub.lib.errors import MemoryHubError
from memoryhub.lib.llm import load_sdk

logger = logging.getLogger(__name__)
MILLISECONDS = 400  # for an answer
SILENT_SECONDS = 60.0  # after one that didn't come
KEPT = 256  # answers, the latest used
ASKERS = 4  # requests under way at once
Wait = Callable[[], Rows | None]
_asking = ThreadPoolExecutor(max_workers=ASKERS, thread_name_prefix="embedding")
_lock = Lock()
_answers: OrderedDict[tuple[str, ...], Rows] = OrderedDict()
_silent: dict[tuple[str, ...], float] = {}


def begin(settings: EmbeddingSettings, text: str) -> Wait:
    """Begin to ask for the embedding of a text; return a function that waits for it.

    That returns a (d,) row of length one, or None where none came in time; never raises.
    """
    known = _known(settings, text)
    if known is not None:
        return lambda: known
    if is_silent(settings):
        return lambda: None
    load_sdk()  # before the clock starts: the first search of a process pays for it
    end = time.monotonic() + MILLISECONDS / 1000
    future = _asking.submit(_ask, settings, text)
    return lambda: _wait(future, settings, end)


def is_silent(settings: EmbeddingSettings) -> bool:
    """Tell whether a provider is left alone, since it failed within the last minute."""
    return time.monotonic() < _silent.get(_place(settings), 0.0)


def forget_all() -> None:
    """Forget every answer and every failure that this process knows of."""
    with _lock:
        _answers.clear()
        _silent.clear()


def _place(settings: EmbeddingSettings) -> tuple[str, ...]:
    return settings.base_url, settings.provider, settings.model


def _known(settings: EmbeddingSettings, text: str) -> Rows | None:
    key = (*_place(settings), text)
    with _lock:
        if key in _answers:
            _answers.move_to_end(key)
        return _answers.get(key)


def _ask(settings: EmbeddingSettings, text: str) -> Rows | None:
    """Ask, in a thread of its own; an answer that comes too late is kept for the next search."""
    quick = replace(settings, timeout_seconds=MILLISECONDS / 1000, retries=0)
    try:
        row: Rows = embed(quick, [text]).rows[0]
    except MemoryHubError as error:
        logger.warning("the embedding provider didn't answer a search: %s", error)
        _leave_alone(settings)
        return None
    except Exception:  # whatever it was must not end a search
        logger.exception("asking the embedding provider failed")
        _leave_alone(settings)
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
        _leave_alone(settings)
        return None


def _leave_alone(settings: EmbeddingSettings) -> None:
    with _lock:
        _silent[_place(settings)] = time.monotonic() + SILENT_SECONDS
