"""What can go wrong between an agent and its hub, as errors with the hub's own ``code``, ``detail`` and status."""

from __future__ import annotations

from typing import Any

import httpx2

STANDARD = (
    "type",
    "title",
    "status",
    "detail",
    "code",
    "errors",
)  # members with a place of their own


class MemoryHubError(Exception):
    """Base of all errors of this client. It prints as one plain sentence.

    ``code`` is stable and for programs, ``status`` the HTTP status (None where no answer came), ``errors`` what is
    wrong with which field, ``details`` further values of the problem, such as ``head`` of a stale base.

        try:
            hub.append("cli:main", "Hello")
        except MemoryHubError as error:
            print(error.code, error.detail)
    """

    def __init__(
        self,
        detail: str,
        *,
        code: str = "error",
        status: int | None = None,
        errors: list[dict[str, str]] | None = None,
        details: dict[str, Any] | None = None,
    ) -> None:
        super().__init__(detail)
        self.detail = detail
        self.code = code
        self.status = status
        self.errors = errors or []
        self.details = details or {}


class BadRequest(MemoryHubError):
    """The hub can't take what was sent: mend it, a repetition won't help (400, 413, 422 and the like)."""


class NotAuthenticated(MemoryHubError):
    """The token is wrong, expired or revoked (401)."""


class Refused(MemoryHubError):
    """The token lacks the scope for this (403)."""


class NotFound(MemoryHubError):
    """There is no such thing in the token's workspace (404)."""


class Conflict(MemoryHubError):
    """Something else came first: a stale base, or an idempotency key used for another call (409, 412)."""


class TooManyCalls(MemoryHubError):
    """The token is over its limit, and waiting for it would take longer than the client's patience (429)."""

    @property
    def retry_after(self) -> float | None:
        """Return the seconds that the hub asks to wait, None where it doesn't say."""
        seconds: float | None = self.details.get("retry_after")
        return seconds


class HubUnavailable(MemoryHubError):
    """No answer, or none of a hub: no connection, a time-out, a fault of the server (5xx), a wrong address."""


BY_STATUS: dict[int, type[MemoryHubError]] = {
    401: NotAuthenticated,
    403: Refused,
    404: NotFound,
    409: Conflict,
    412: Conflict,
    429: TooManyCalls,
}


def error_of(response: httpx2.Response, *, retry_after: float | None = None) -> MemoryHubError:
    """Return the error that an answer outside 2xx stands for, read from its ``application/problem+json``."""
    status = response.status_code
    problem = _problem(response)
    details = {name: value for name, value in problem.items() if name not in STANDARD}
    if retry_after is not None:
        details["retry_after"] = retry_after
    kind = BY_STATUS.get(status) or (BadRequest if 400 <= status < 500 else HubUnavailable)
    return kind(
        str(problem.get("detail") or problem.get("title") or _sentence(response)),
        code=str(problem.get("code") or f"http_{status}"),
        status=status,
        errors=problem["errors"] if isinstance(problem.get("errors"), list) else None,
        details=details,
    )


def no_answer(error: httpx2.RequestError) -> HubUnavailable:
    """Return the error for a call that got no answer. Its sentence names the address, never the token."""
    what = "did not answer in time" if isinstance(error, httpx2.TimeoutException) else "can't be reached"
    code = "timeout" if isinstance(error, httpx2.TimeoutException) else "unreachable"
    address = error.request.url
    place = f"{address.scheme}://{address.netloc.decode()}"
    return HubUnavailable(f"The hub at {place} {what}.", code=code, details={"cause": type(error).__name__})


def bad_answer(response: httpx2.Response) -> HubUnavailable:
    """Return the error for a success that no hub would send, such as the page of a proxy."""
    return HubUnavailable(
        "The answer is not one of a hub: check the address.", code="bad_answer", status=response.status_code
    )


def _problem(response: httpx2.Response) -> dict[str, Any]:
    try:
        problem = response.json()
    except ValueError:
        return {}
    return problem if isinstance(problem, dict) else {}


def _sentence(response: httpx2.Response) -> str:
    if response.is_redirect:
        return f"The address leads on to {response.headers.get('Location')}: give the client that one."
    return f"The hub answered with status {response.status_code}."
