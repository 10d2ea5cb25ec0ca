"""Build requests, plan retries and read responses, for both clients."""

from __future__ import annotations

import json
import random
import time
import uuid
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any, TypeVar

import httpx2

from memoryhub.client.calls import Call
from memoryhub.client.errors import BadRequest, connection_error, error_from, invalid_response

T = TypeVar("T")
FIRST_PAUSE = 0.5  # seconds, doubled for each retry
MAX_PAUSE = 8.0  # seconds
TRANSIENT_STATUS = (429, 502, 503, 504)
TRANSIENT_ERRORS = (
    httpx2.TimeoutException,
    httpx2.NetworkError,
    httpx2.RemoteProtocolError,
    httpx2.ProxyError,
)
Outcome = httpx2.Response | httpx2.RequestError  # of one attempt


@dataclass(frozen=True)
class RetryPolicy:
    """The number of retries, and the seconds after the first attempt in which one may begin."""

    retries: int
    seconds: float


NO_RETRIES = RetryPolicy(0, 0)


def base_url(url: str) -> str:
    """Return the base URL of a hub's API. Raises ValueError unless it is an HTTP or HTTPS address."""
    try:
        address = httpx2.URL(url.strip().rstrip("/"))
    except httpx2.InvalidURL as error:
        raise ValueError(f"Invalid hub address: {error}.") from None
    if address.scheme not in ("http", "https") or not address.host:
        raise ValueError("Include the scheme in the hub's address, for example https://hub.example.org.")
    return f"{str(address).rstrip('/')}/api/v1"


def client_options(url: str, token: str, timeout: float) -> dict[str, Any]:
    """Return the options of the HTTP client. Redirects are off, so that the token isn't sent elsewhere.

    Raises ValueError for an invalid address or token.
    """
    token = token.strip()
    if not token or not is_header_value(token):
        raise ValueError("Pass a token of the hub, which starts with mh_.")
    headers = {"Authorization": f"Bearer {token}", "User-Agent": "memoryhub-client"}
    return {"base_url": base_url(url), "headers": headers, "timeout": timeout, "follow_redirects": False}


def build_request(
    client: httpx2.Client | httpx2.AsyncClient, call: Call[Any], idempotency_key: str, timeout: float | None
) -> httpx2.Request:
    """Return the request of a call. All attempts send it, with the same idempotency key.

    ``timeout`` is in seconds per network operation, None for the client's. Raises BadRequest.
    """
    headers = dict(call.headers)
    if call.changes:
        headers["Idempotency-Key"] = _valid_key(idempotency_key) or uuid.uuid4().hex
    if call.body is not None:
        headers["Content-Type"] = "application/json"
    content = None if call.body is None else _encoded(call.body)
    limits: dict[str, Any] = {} if timeout is None else {"timeout": timeout}
    try:
        return client.build_request(
            call.method, call.path, params=call.params, headers=headers, content=content, **limits
        )
    except (httpx2.InvalidURL, UnicodeEncodeError) as error:
        raise BadRequest("The query can't be sent in a URL. Shorten it.", code="bad_address") from error


def _valid_key(idempotency_key: str) -> str:
    if is_header_value(idempotency_key):
        return idempotency_key
    raise BadRequest("An idempotency key must be printable ASCII.", code="bad_idempotency_key")


def is_header_value(text: str) -> bool:
    return text.isascii() and text.isprintable()


def _encoded(body: dict[str, Any]) -> bytes:
    """Return a body as UTF-8. Lone surrogates, which models do write, are escaped."""
    try:
        return json.dumps(body, ensure_ascii=False, allow_nan=False).encode()
    except UnicodeEncodeError:
        return json.dumps(body, allow_nan=False).encode()


def pause_after(outcome: Outcome, tries: int, began: float, policy: RetryPolicy) -> float | None:
    """Return the seconds to wait before the next attempt, None if there is none.

    ``tries``: attempts so far; ``began``: monotonic time of the first.
    """
    elapsed = time.monotonic() - began
    chance = random.random()  # noqa: S311  jitter, no secret
    return plan_pause(outcome, tries=tries, elapsed=elapsed, policy=policy, chance=chance, now=datetime.now(UTC))


def plan_pause(
    outcome: Outcome, *, tries: int, elapsed: float, policy: RetryPolicy, chance: float, now: datetime
) -> float | None:
    """Return the seconds to wait before the next attempt: the hub's Retry-After, or an exponential backoff.

    ``elapsed``: seconds since the first attempt. ``chance``: jitter from 0 to 1.
    """
    if tries > policy.retries or not _is_transient(outcome):
        return None
    requested = retry_after(outcome, now) if isinstance(outcome, httpx2.Response) else None
    doubled = min(FIRST_PAUSE * 2 ** (tries - 1), MAX_PAUSE)
    pause = doubled * (0.5 + chance / 2) if requested is None else requested + FIRST_PAUSE * chance
    return pause if elapsed + pause <= policy.seconds else None


def retry_after(response: httpx2.Response, now: datetime) -> float | None:
    """Return the seconds of a Retry-After header, which may be a number or a date; None without a valid one."""
    text = response.headers.get("Retry-After", "").strip()
    if text.isascii() and text.isdigit():
        return float(text[:9])
    try:
        moment = parsedate_to_datetime(text)
    except ValueError:
        return None
    moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return max(0.0, (moment - now).total_seconds())


def read_answer(call: Call[T], outcome: Outcome) -> T:
    """Return the result of a call from the outcome of its last attempt. Raises MemoryHubError."""
    if isinstance(outcome, httpx2.RequestError):
        raise connection_error(outcome) from outcome
    if not outcome.is_success:
        raise error_from(outcome, retry_after=retry_after(outcome, datetime.now(UTC)))
    try:
        return call.read(outcome)
    except (ValueError, KeyError, TypeError) as error:
        raise invalid_response(outcome) from error


def _is_transient(outcome: Outcome) -> bool:
    if isinstance(outcome, httpx2.Response):
        return outcome.status_code in TRANSIENT_STATUS
    return isinstance(outcome, TRANSIENT_ERRORS)
