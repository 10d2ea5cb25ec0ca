"""The errors that MemoryHub expects and explains, by family."""

from __future__ import annotations


class MemoryHubError(Exception):
    """An expected error: pages, routes, tools and commands show it instead of a traceback.

    The message is one plain sentence that says what to do. ``code`` is stable, for programs; ``status`` is the HTTP
    status; ``details`` are further values for programs. Raise a family with a code. Declare a subclass, beside the
    code that raises it, only where something catches it by type.
    """

    code = "error"
    status = 422

    def __init__(self, message: str, *, code: str = "", **details: object) -> None:
        super().__init__(message)
        self.message = message
        self.code = code or type(self).code
        self.details = details


class NotFound(MemoryHubError):
    """There is no such thing, or not for whoever asks."""

    code = "not_found"
    status = 404


class Conflict(MemoryHubError):
    """Something is in another state than the request needs."""

    code = "conflict"
    status = 409


class Invalid(MemoryHubError):
    """The request can't be carried out as it is."""

    code = "invalid"


class LimitExceeded(MemoryHubError):
    """Too much, too many or too long."""

    code = "limit_exceeded"


class Gone(MemoryHubError):
    """It was there once."""

    code = "gone"
    status = 410


class Refused(MemoryHubError):
    """The request is understood but not allowed."""

    code = "refused"
    status = 403


class Busy(MemoryHubError):
    """Something else is under way: try again later."""

    code = "busy"
    status = 409
