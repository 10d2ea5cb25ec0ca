"""Filters of the log: mask tokens in links, since Django logs URLs of refused requests, and shorten refusals."""

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


def shorten_refusals() -> Callable[[logging.LogRecord], bool]:
    """Return a logging filter that removes tracebacks of refused requests, such as those for another host."""

    def shorten(record: logging.LogRecord) -> bool:
        if record.name.startswith("django.security."):
            record.exc_info = record.exc_text = None
        return True

    return shorten


def _masked(value: object) -> object:
    return _LINK.sub(r"/\1/…", value) if isinstance(value, str) else value
