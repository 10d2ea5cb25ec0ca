"""What becomes of an answer that the hub's response cache can't look up or keep."""

from __future__ import annotations

import logging
from typing import Literal

from memoryhub.client.errors import MemoryHubError

OnError = Literal["pass", "raise"]

logger = logging.getLogger(__name__)


def pass_over(error: MemoryHubError, on_error: OnError) -> None:
    """Log that the cache was passed over, or raise the error where that was asked for."""
    if on_error == "raise":
        raise error
    logger.warning("The hub's response cache was passed over: %s", error.code)
