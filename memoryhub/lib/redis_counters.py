"""Counters in Redis that all hubs share (CACHE_URL). While it can't be reached, each process counts for itself."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import Any

from django.core.cache.backends.locmem import LocMemCache
from django.core.cache.backends.redis import RedisCache
from redis.exceptions import RedisError

logger = logging.getLogger(__name__)
AWAY_SECONDS = 2.0  # until Redis is tried again


class RedisCounters(RedisCache):
    """Django's Redis cache for ``add``, ``incr`` and ``decr``, which never fail because of Redis."""

    def __init__(self, server: str, params: dict[str, Any]) -> None:
        super().__init__(server, params)
        self._own = LocMemCache("redis counters", {"OPTIONS": {"MAX_ENTRIES": 50_000}})
        self._away_until = 0.0

    def add(self, key: str, value: Any, *args: Any, **options: Any) -> bool:
        return bool(self._try(super().add, self._own.add, key, value, *args, **options))

    def incr(self, key: str, delta: int = 1, version: int | None = None) -> int:
        """Raises ValueError if the counter doesn't exist, for example because Redis went away since ``add``."""
        return int(self._try(super().incr, self._own.incr, key, delta, version))

    def _try(self, shared: Callable[..., Any], own: Callable[..., Any], *args: Any, **options: Any) -> Any:
        if time.monotonic() >= self._away_until:
            try:
                return shared(*args, **options)
            except RedisError as error:
                logger.warning("Redis can't be used; this process counts for itself: %s", error)
                self._away_until = time.monotonic() + AWAY_SECONDS
        return own(*args, **options)
