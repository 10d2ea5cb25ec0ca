"""What every call passes: the body's form, the token, its limit, and one transaction for what changes something."""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from typing import Any

from django.conf import settings
from django.db import IntegrityError, OperationalError, transaction
from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from django.views.decorators.csrf import csrf_exempt
from ninja.parser import Parser
from ninja.security import HttpBearer

from memoryhub.agents.api_tokens import SCOPES, Caller, authenticate, require, shown_token, spend_call
from memoryhub.api.problems import expected, problem
from memoryhub.lib import db_retry
from memoryhub.lib.errors import MemoryHubError
from memoryhub.lib.validation import DUPLICATE_KEY, KEPT_AS_TEXT, BadJSON, clean_text, decode_json
from memoryhub.models import IdempotentCall

SAFE_METHODS = ("GET", "HEAD")
MAX_KEY = 200
NO_NUMBERS = frozenset(f"{name}{KEPT_AS_TEXT}" for name in ("NaN", "Infinity", "-Infinity"))
BUSY_SECONDS = 5  # after which to try again where the database is busy
View = Callable[..., HttpResponse]
logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Sent:
    """A call that changes something: whose it is, its idempotency key ("" for none), and a hash of all it asks."""

    caller: Caller
    key: str
    request_hash: str


class NeedsScope(HttpBearer):
    """Lets a token in that is good for a scope ("" for any)."""

    openapi_name = "Token"

    def __init__(self, scope: str) -> None:
        super().__init__()
        self.scope = scope

    def __call__(self, request: HttpRequest) -> Caller:
        caller = caller_of(request)
        if self.scope:
            require(caller, self.scope)
        return caller

    def authenticate(self, request: HttpRequest, token: str) -> Caller:  # noqa: ARG002
        return self(request)


ANY = NeedsScope("")
READ, APPEND, EDIT, CONSOLIDATE = (NeedsScope(scope) for scope in SCOPES)


class GateParser(Parser):
    """Bodies are UTF-8 JSON. Characters that no database stores become escapes, numbers of 19 digits text."""

    def parse_body(self, request: HttpRequest) -> Any:
        try:
            text = request.body.decode()
        except UnicodeDecodeError as error:
            raise BadJSON(f"The body is not UTF-8: byte {error.start + 1}.") from error
        decoded = decode_json(text)
        if DUPLICATE_KEY in decoded.repairs:
            raise BadJSON("The body names a key twice.")
        if any(repair in NO_NUMBERS for repair in decoded.repairs):
            raise BadJSON("The body holds NaN or Infinity, which JSON doesn't have.")
        return decoded.value

    def parse_querydict(self, data: Any, list_fields: list[str], request: HttpRequest) -> Any:
        values = super().parse_querydict(data, list_fields, request)
        return {
            name: [clean_text(one) for one in value] if isinstance(value, list) else clean_text(value)
            for name, value in values.items()
        }


def caller_of(request: HttpRequest) -> Caller:
    """Return who calls, checked and counted once. Raises NotAuthenticated, TooManyCalls."""
    known: Caller | None = getattr(request, "memory_caller", None)
    if known is None:
        now = timezone.now()
        known = authenticate(shown_token(request.headers.get("Authorization", "")), via="rest", now=now)
        spend_call(known, now)
        request.memory_caller = known  # type: ignore[attr-defined]
    return known


def opened(view: View) -> View:
    """Let a view in without login and CSRF token, since cookies count for nothing there; check the body's form."""

    @csrf_exempt
    @wraps(view)
    def door(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        refusal = _refused(request)
        if refusal is not None:
            return refusal
        try:
            response = view(request, *args, **kwargs)
        except OperationalError as error:
            if not db_retry.is_transient(error):
                raise
            logger.warning("a call found the database busy: %s", error)
            words = "Another writer keeps the database: send this again."
            return problem(503, "busy", words, retry_after=BUSY_SECONDS)
        if response.status_code == 405:
            allowed = response["Allow"]
            response = problem(405, "method_not_allowed", f"This address knows {allowed}.")
            response["Allow"] = allowed
        return response

    door.login_required = False  # type: ignore[attr-defined]
    return door


def _refused(request: HttpRequest) -> HttpResponse | None:
    length = request.headers.get("Content-Length", "0")
    if length.isdigit() and int(length) > settings.DATA_UPLOAD_MAX_MEMORY_SIZE:
        most = settings.DATA_UPLOAD_MAX_MEMORY_SIZE // 2**20
        return problem(413, "body_too_large", f"A body has at most {most} MB: send it in parts.")
    if request.headers.get("Content-Encoding", "identity") != "identity":
        return problem(415, "body_compressed", "Send the body uncompressed.")
    if length.strip("0") and request.method not in SAFE_METHODS and request.content_type != "application/json":
        return problem(415, "body_not_json", "Send the body with Content-Type: application/json.")
    return None


def whole(run: View) -> View:
    """Let an operation that changes something be one transaction, and once for an idempotency key."""

    @wraps(run)
    def operation(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        if request.method in SAFE_METHODS:
            return run(request, *args, **kwargs)
        try:
            caller = caller_of(request)
        except MemoryHubError as error:
            return expected(error)
        key = clean_text(request.headers.get("Idempotency-Key", ""))
        if len(key) > MAX_KEY:
            return problem(400, "bad_idempotency_key", f"An idempotency key has at most {MAX_KEY} characters.")
        call = Sent(caller, key, _request_hash(request))  # before the transaction, which a slow body would prolong
        return _once(call, lambda: run(request, *args, **kwargs))

    return operation


def _once(call: Sent, run: Callable[[], HttpResponse]) -> HttpResponse:
    """Run in one transaction, undone where the answer is an error; with a key, keep the answer or give the kept."""

    @db_retry.retried
    @transaction.atomic
    def write() -> HttpResponse:
        known = _known(call)
        if known is not None:
            return known
        response = run()
        if response.status_code >= 400:
            transaction.set_rollback(True)
        elif call.key:
            _keep(call, response)
        return response

    try:
        return write()
    except IntegrityError:  # a call at the very same moment was first, with the same key or of the same row
        return write()


def _known(call: Sent) -> HttpResponse | None:
    """Return the answer that an idempotency key had before; a conflict where the request is another one."""
    calls = IdempotentCall.objects.filter(token=call.caller.token, idempotency_key=call.key)
    kept = calls.first() if call.key else None
    if kept is None:
        return None
    if kept.request_hash != call.request_hash:
        words = "This idempotency key was used for another call. Send a new key with this one."
        return problem(409, "idempotency_key_reused", words)
    body = json.dumps(kept.answer, ensure_ascii=False)
    response = HttpResponse(body, content_type="application/json; charset=utf-8", status=kept.status)
    response["Idempotent-Replay"] = "true"
    return response


def _keep(call: Sent, response: HttpResponse) -> None:
    IdempotentCall.objects.create(
        token=call.caller.token,
        idempotency_key=call.key,
        request_hash=call.request_hash,
        status=response.status_code,
        answer=json.loads(response.content),
        created_at=timezone.now(),
    )


def _request_hash(request: HttpRequest) -> str:
    head = f"{request.method} {request.get_full_path()}\0".encode()
    return hashlib.sha256(head + request.body).hexdigest()
