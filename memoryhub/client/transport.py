"""How a call is sent, when it is sent again, and what its answer means: what both clients share."""

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
from memoryhub.client.errors import BadRequest, bad_answer, error_of, no_answer

T = TypeVar("T")
FIRST_PAUSE = 0.5  # seconds, doubled each time
LONGEST_PAUSE = 8.0  # seconds
PASSING_STATUS = (429, 502, 503, 504)
PASSING_ERROR = (
    httpx2.TimeoutException,
    httpx2.NetworkError,
    httpx2.RemoteProtocolError,
    httpx2.ProxyError,
)
Outcome = httpx2.Response | httpx2.RequestError  # of one try


@dataclass(frozen=True)
class Patience:
    """How often a call is repeated, and for how many seconds from its first try a repetition may begin."""

    retries: int
    seconds: float


NO_PATIENCE = Patience(0, 0)


def base_url(url: str) -> str:
    """Return the address of a hub's API. Raises ValueError where it isn't one of http or https."""
    try:
        address = httpx2.URL(url.strip().rstrip("/"))
    except httpx2.InvalidURL as error:
        raise ValueError(f"The hub's address can't be read: {error}.") from None
    if address.scheme not in ("http", "https") or not address.host:
        raise ValueError("Give the hub's address with its scheme, such as https://hub.example.org.")
    return f"{str(address).rstrip('/')}/api/v1"


def client_values(url: str, token: str, timeout: float) -> dict[str, Any]:
    """Return what both kinds of HTTP client are made with. Redirects are off: the token goes to one place only.

    Raises ValueError for what can't be an address or a token.
    """
    token = token.strip()
    if not token or not is_header_value(token):
        raise ValueError("Give the client a token of the hub: it begins with mh_.")
    headers = {"Authorization": f"Bearer {token}", "User-Agent": "memoryhub-client"}
    return {"base_url": base_url(url), "headers": headers, "timeout": timeout, "follow_redirects": False}


def build_request(
    client: httpx2.Client | httpx2.AsyncClient, call: Call[Any], idempotency_key: str, timeout: float | None
) -> httpx2.Request:
    """Return a call as one request, for all its tries: they carry the same idempotency key.

    ``timeout``: seconds for each step of a try, where it isn't the client's own. Raises BadRequest.
    """
    headers = dict(call.headers)
    if call.changes:
        headers["Idempotency-Key"] = _checked(idempotency_key) or uuid.uuid4().hex
    if call.body is not None:
        headers["Content-Type"] = "application/json"
    content = None if call.body is None else _encoded(call.body)
    limits: dict[str, Any] = {} if timeout is None else {"timeout": timeout}
    try:
        return client.build_request(
            call.method, call.path, params=call.params, headers=headers, content=content, **limits
        )
    except (httpx2.InvalidURL, UnicodeEncodeError) as error:
        raise BadRequest("The query can't stand in an address: shorten it.", code="bad_address") from error


def _checked(idempotency_key: str) -> str:
    if is_header_value(idempotency_key):
        return idempotency_key
    raise BadRequest("Make idempotency keys of letters, digits and signs of ASCII.", code="bad_idempotency_key")


def is_header_value(text: str) -> bool:
    return text.isascii() and text.isprintable()


def _encoded(body: dict[str, Any]) -> bytes:
    """Return a body in UTF-8. Half surrogates, which models do write, go as escapes."""
    try:
        return json.dumps(body, ensure_ascii=False, allow_nan=False).encode()
    except UnicodeEncodeError:
        return json.dumps(body, allow_nan=False).encode()


def pause_after(outcome: Outcome, tries: int, began: float, patience: Patience) -> float | None:
    """Return the seconds to wait before the next try, None where there is none.

    ``tries`` were made, the first of them ``began`` at that time of the monotonic clock.
    """
    elapsed = time.monotonic() - began
    chance = random.random()  # noqa: S311  jitter, no secret
    return plan_pause(outcome, tries=tries, elapsed=elapsed, patience=patience, chance=chance, now=datetime.now(UTC))


def plan_pause(
    outcome: Outcome, *, tries: int, elapsed: float, patience: Patience, chance: float, now: datetime
) -> float | None:
    """Return the seconds to wait, from half a second doubled each time; a hub's own Retry-After comes before that.

    ``elapsed``: seconds since the first try began. ``chance``: 0 to 1, so that many agents don't come back at once.
    """
    if tries > patience.retries or not _is_passing(outcome):
        return None
    asked = retry_after(outcome, now) if isinstance(outcome, httpx2.Response) else None
    doubled = min(FIRST_PAUSE * 2 ** (tries - 1), LONGEST_PAUSE)
    pause = doubled * (0.5 + chance / 2) if asked is None else asked + FIRST_PAUSE * chance
    return pause if elapsed + pause <= patience.seconds else None


def retry_after(response: httpx2.Response, now: datetime) -> float | None:
    """Return a Retry-After header in seconds from now, whether it is a number or a date; None where it is neither."""
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
    """Return what a call asked for, from the outcome of its last try. Raises the MemoryHubError that fits."""
    if isinstance(outcome, httpx2.RequestError):
        raise no_answer(outcome) from outcome
    if not outcome.is_success:
        raise error_of(outcome, retry_after=retry_after(outcome, datetime.now(UTC)))
    try:
        return call.read(outcome)
    except (ValueError, KeyError, TypeError) as error:
        raise bad_answer(outcome) from error


def _is_passing(outcome: Outcome) -> bool:
    if isinstance(outcome, httpx2.Response):
        return outcome.status_code in PASSING_STATUS
    return isinstance(outcome, PASSING_ERROR)
