"""Filters and formats of the log.

The formats mask tokens in links, since Django logs URLs of refused requests, and tracebacks can contain them. The
filters shorten refusals, and add the ids of requests and traces.
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Callable
from datetime import UTC, datetime

from django.http import HttpRequest

from memoryhub.lib.http.request_ids import current_request_id
from memoryhub.lib.traces import current_trace_id

_LINK = re.compile(r"/(invitation|setup)/[^/\s]+")


def shorten_refusals() -> Callable[[logging.LogRecord], bool]:
    """Return a logging filter that removes tracebacks of refused requests, such as those for another host."""

    def shorten(record: logging.LogRecord) -> bool:
        if record.name.startswith("django.security."):
            record.exc_info = record.exc_text = None
        return True

    return shorten


def add_request_id() -> Callable[[logging.LogRecord], bool]:
    """Return a logging filter that sets ``request_id``, "-" outside of requests, and ``trace_id``, or ""."""

    def add(record: logging.LogRecord) -> bool:
        request = getattr(record, "request", None)  # of a record that Django logs after the request
        of_request = request.META if isinstance(request, HttpRequest) else {}
        record.request_id = current_request_id() or of_request.get("HTTP_X_REQUEST_ID", "") or "-"
        record.trace_id = current_trace_id() or of_request.get("memoryhub.trace_id", "")
        return True

    return add


class Lines(logging.Formatter):
    """Text, with a traceback below."""

    def format(self, record: logging.LogRecord) -> str:
        return _masked(super().format(record))


class JsonLines(logging.Formatter):
    """One JSON object on one line for each record, with the time in UTC. Attributes of ``extra`` aren't included."""

    def format(self, record: logging.LogRecord) -> str:
        line = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname,
            "logger": record.name,
            "message": _masked(record.getMessage()),
            "request_id": getattr(record, "request_id", "-"),
            "process": record.process,
        }
        if trace_id := getattr(record, "trace_id", ""):
            line["trace_id"] = trace_id
        if record.exc_info:
            line["traceback"] = _masked(self.formatException(record.exc_info))
        return json.dumps(line, ensure_ascii=False, default=str)


def _masked(text: str) -> str:
    return _LINK.sub(r"/\1/…", text)
