"""Keeping links that let somebody in out of the log: Django writes down the address of every refused request."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable

_LINK = re.compile(r"/(invitation|setup)/[^/\s]+")


def without_links() -> Callable[[logging.LogRecord], bool]:
    """Return a filter for a log's handler, which masks the token of such links in what is said."""

    def mask(record: logging.LogRecord) -> bool:
        record.msg = _masked(record.msg)
        if isinstance(record.args, tuple):
            record.args = tuple(_masked(value) for value in record.args)
        return True

    return mask


def _masked(value: object) -> object:
    return _LINK.sub(r"/\1/…", value) if isinstance(value, str) else value
