"""Mask tokens of invitation and setup links in the log: Django logs the URLs of refused requests."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable

_LINK = re.compile(r"/(invitation|setup)/[^/\s]+")


def mask_links() -> Callable[[logging.LogRecord], bool]:
    """Return a logging filter that masks these tokens."""

    def mask(record: logging.LogRecord) -> bool:
        record.msg = _masked(record.msg)
        if isinstance(record.args, tuple):
            record.args = tuple(_masked(value) for value in record.args)
        return True

    return mask


def _masked(value: object) -> object:
    return _LINK.sub(r"/\1/…", value) if isinstance(value, str) else value
