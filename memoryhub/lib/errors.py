"""Families of expected errors."""

from __future__ import annotations


class MemoryHubError(Exception):
    """An expected error, whose message is shown to the user instead of a traceback.

    ``code`` is a stable identifier for programs, ``status`` the HTTP status, and ``details`` more values for
    programs. Raise a family with a code; declare a subclass, in the module that raises it, only if it is caught by
    type.
    """

    code = "error"
    status = 422

    def __init__(self, message: str, *, code: str = "", **details: object) -> None:
        super().__init__(message)
        self.message = message
        self.code = code or type(self).code
        self.details = details


def unexpected(error: Exception) -> MemoryHubError:
    """Return what people are told of an error that is in the log, as an expected error with the code "unexpected"."""
    return MemoryHubError(f"Unexpected error: {type(error).__name__}. See the hub's log.", code="unexpected")


class NotFound(MemoryHubError):
    """The object doesn't exist, or the user has no access to it."""

    code = "not_found"
    status = 404


class Conflict(MemoryHubError):
    """The object isn't in the state that the request requires."""

    code = "conflict"
    status = 409


class Invalid(MemoryHubError):
    """The input is invalid."""

    code = "invalid"


class LimitExceeded(MemoryHubError):
    """The input exceeds a limit of size, number or length."""

    code = "limit_exceeded"


class Gone(MemoryHubError):
    """The object existed, but was deleted."""

    code = "gone"
    status = 410


class Refused(MemoryHubError):
    """The action is not allowed."""

    code = "refused"
    status = 403


class Busy(MemoryHubError):
    """The resource is temporarily unavailable; a retry may succeed."""

    code = "busy"
    status = 409
