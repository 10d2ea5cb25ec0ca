"""Error handling of the cached() decorators."""

from __future__ import annotations

import logging
from typing import Literal

from memoryhub.client.errors import MemoryHubError

OnError = Literal["pass", "raise"]

logger = logging.getLogger(__name__)


def skip_cache(error: MemoryHubError, on_error: OnError) -> None:
    """Log that the cache is skipped, or raise the error if ``on_error`` is "raise"."""
    if on_error == "raise":
        raise error
    logger.warning("Skipped the hub's response cache: %s", error.code)
