"""Errors of the client, with the hub's ``code``, ``detail`` and HTTP status."""

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
)  # members that are attributes of the error


class MemoryHubError(Exception):
    """Base class of the client's errors. Its text is one plain sentence.

    ``code`` is stable, for programs; ``status`` is the HTTP status (None without a response), ``errors`` the invalid
    fields, ``details`` further members of the problem, such as ``head`` of a stale base.

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
    """The request is invalid, so a retry won't help (400, 413, 422 and others)."""


class NotAuthenticated(MemoryHubError):
    """The token is invalid, expired or revoked (401)."""


class Refused(MemoryHubError):
    """The token lacks the scope (403)."""


class NotFound(MemoryHubError):
    """The token's workspace has no such object (404)."""


class Conflict(MemoryHubError):
    """A stale base, or an idempotency key that was used for another call (409, 412)."""


class TooManyCalls(MemoryHubError):
    """The token is over its rate limit for longer than the client's patience (429)."""

    @property
    def retry_after(self) -> float | None:
        """Return the seconds to wait, None if the hub doesn't say."""
        seconds: float | None = self.details.get("retry_after")
        return seconds


class HubUnavailable(MemoryHubError):
    """No valid response: no connection, a timeout, a server error (5xx) or a wrong address."""


BY_STATUS: dict[int, type[MemoryHubError]] = {
    401: NotAuthenticated,
    403: Refused,
    404: NotFound,
    409: Conflict,
    412: Conflict,
    429: TooManyCalls,
}


def error_from(response: httpx2.Response, *, retry_after: float | None = None) -> MemoryHubError:
    """Return the error for a response outside 2xx, from its ``application/problem+json``."""
    status = response.status_code
    problem = _problem(response)
    details = {name: value for name, value in problem.items() if name not in STANDARD}
    if retry_after is not None:
        details["retry_after"] = retry_after
    kind = BY_STATUS.get(status) or (BadRequest if 400 <= status < 500 else HubUnavailable)
    return kind(
        str(problem.get("detail") or problem.get("title") or _status_text(response)),
        code=str(problem.get("code") or f"http_{status}"),
        status=status,
        errors=problem["errors"] if isinstance(problem.get("errors"), list) else None,
        details=details,
    )


def connection_error(error: httpx2.RequestError) -> HubUnavailable:
    """Return the error for a call without a response. Its text names the address, never the token."""
    what = "did not answer in time" if isinstance(error, httpx2.TimeoutException) else "can't be reached"
    code = "timeout" if isinstance(error, httpx2.TimeoutException) else "unreachable"
    address = error.request.url
    origin = f"{address.scheme}://{address.netloc.decode()}"
    return HubUnavailable(f"The hub at {origin} {what}.", code=code, details={"cause": type(error).__name__})


def invalid_response(response: httpx2.Response) -> HubUnavailable:
    """Return the error for a successful response that isn't from a hub, such as a proxy's page."""
    return HubUnavailable(
        "The response isn't from a hub. Check the address.", code="bad_answer", status=response.status_code
    )


def _problem(response: httpx2.Response) -> dict[str, Any]:
    try:
        problem = response.json()
    except ValueError:
        return {}
    return problem if isinstance(problem, dict) else {}


def _status_text(response: httpx2.Response) -> str:
    if response.is_redirect:
        return f"The address redirects to {response.headers.get('Location')}. Use that address."
    return f"The hub returned status {response.status_code}."
