"""Checks on every API call: body format, token, rate limit; and one transaction for each call that writes."""

from __future__ import annotations

import hashlib
import json
import logging
import re
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import wraps
from typing import Any

from django.conf import settings
from django.db import DatabaseError, IntegrityError, InterfaceError, transaction
from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from django.views.decorators.csrf import csrf_exempt
from ninja.parser import Parser
from ninja.security import HttpBearer

from memoryhub.agents.api_tokens import SCOPES, Caller, authenticate, bearer_token, require
from memoryhub.agents.call_limits import spend_call
from memoryhub.agents.operations.memory import document_checked
from memoryhub.api.problems import error_problem, fault_problem, problem
from memoryhub.lib.content_check.precheck import prechecked
from memoryhub.lib.database import db_retry
from memoryhub.lib.database.faults import fault_of
from memoryhub.lib.errors import MemoryHubError
from memoryhub.lib.validation import DUPLICATE_KEY, KEPT_AS_TEXT, BadJSON, clean_text, decode_json
from memoryhub.models import IdempotentCall

SAFE_METHODS = ("GET", "HEAD")
MAX_KEY = 200
MAX_CHECKED = 500_000  # characters of all texts of a request, more than any may have whose texts are checked
NO_NUMBERS = frozenset(f"{name}{KEPT_AS_TEXT}" for name in ("NaN", "Infinity", "-Infinity"))
CHECKED_ADDRESS = re.compile(r"/(?:knowledge(?:/\d+)?|observations|value|history)$")
DOCUMENT_ADDRESS = re.compile(r"/documents/([^/]+)(/proposals)?$")
View = Callable[..., HttpResponse]
logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class WriteCall:
    """A call that writes: its caller, its idempotency key ("" for none), and a hash of the request."""

    caller: Caller
    key: str
    request_hash: str


class NeedsScope(HttpBearer):
    """Authenticates a token that has a scope ("" for any token)."""

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


class JsonParser(Parser):
    """Parses UTF-8 JSON. Characters that databases can't store become escapes, numbers of 19 digits and more text."""

    def parse_body(self, request: HttpRequest) -> Any:
        try:
            text = request.body.decode()
        except UnicodeDecodeError as error:
            raise BadJSON(f"The body is not UTF-8: byte {error.start + 1}.") from error
        decoded = decode_json(text)
        if DUPLICATE_KEY in decoded.repairs:
            raise BadJSON("The body contains a key twice.")
        if any(repair in NO_NUMBERS for repair in decoded.repairs):
            raise BadJSON("The body contains NaN or Infinity, which aren't valid JSON.")
        return decoded.value

    def parse_querydict(self, data: Any, list_fields: list[str], request: HttpRequest) -> Any:
        values = super().parse_querydict(data, list_fields, request)
        return {
            name: [clean_text(one) for one in value] if isinstance(value, list) else clean_text(value)
            for name, value in values.items()
        }


def caller_of(request: HttpRequest) -> Caller:
    """Authenticate the request and count it once. Raises NotAuthenticated, TooManyCalls."""
    caller: Caller | None = getattr(request, "memory_caller", None)
    if caller is None:
        now = timezone.now()
        caller = authenticate(bearer_token(request.headers.get("Authorization", "")), via="rest", now=now)
        spend_call(caller, now)
        request.memory_caller = caller  # type: ignore[attr-defined]
    return caller


def agent_endpoint(view: View) -> View:
    """Exempt a view from login and CSRF checks, since the API ignores cookies, and check the request's body."""

    @csrf_exempt
    @wraps(view)
    def endpoint(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        refusal = _refusal(request)
        if refusal is not None:
            return refusal
        try:
            response = view(request, *args, **kwargs)
        except (DatabaseError, InterfaceError, OSError) as error:
            fault = fault_of(error)
            if fault is None:
                raise
            logger.warning("%s during an API call: %s", fault.code, error)
            return fault_problem(fault)
        if response.status_code == 405:
            allowed = response["Allow"]
            response = problem(405, "method_not_allowed", f"Allowed here: {allowed}.")
            response["Allow"] = allowed
        return response

    endpoint.login_required = False  # type: ignore[attr-defined]
    return endpoint


def _refusal(request: HttpRequest) -> HttpResponse | None:
    length = request.headers.get("Content-Length", "0")
    if length.isdigit() and int(length) > settings.DATA_UPLOAD_MAX_MEMORY_SIZE:
        most = settings.DATA_UPLOAD_MAX_MEMORY_SIZE // 2**20
        return problem(413, "body_too_large", f"The body is larger than {most} MB. Send it in parts.")
    if request.headers.get("Content-Encoding", "identity") != "identity":
        return problem(415, "body_compressed", "Send the body uncompressed.")
    if length.strip("0") and request.method not in SAFE_METHODS and request.content_type != "application/json":
        return problem(415, "body_not_json", "Send the body with Content-Type: application/json.")
    return None


def idempotent(run: View) -> View:
    """Run a writing operation in one transaction, and only once for each idempotency key."""

    @wraps(run)
    def operation(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        if request.method in SAFE_METHODS:
            return run(request, *args, **kwargs)
        try:
            caller = caller_of(request)
        except MemoryHubError as error:
            return error_problem(error)
        key = clean_text(request.headers.get("Idempotency-Key", ""))
        if len(key) > MAX_KEY:
            return problem(400, "bad_idempotency_key", f"An idempotency key may have at most {MAX_KEY} characters.")
        call = WriteCall(caller, key, _request_hash(request))  # before the transaction: a slow body would prolong it
        with prechecked(_texts_to_check(caller, request)), _document_checked(caller, request):
            return _run_once(call, lambda: run(request, *args, **kwargs))

    return operation


def _texts_to_check(caller: Caller, request: HttpRequest) -> list[str]:
    """Return the texts of a request that adds memory, which the content check reads before they are stored.

    None for a request that will be refused, for lack of a scope or because it is too long.
    """
    if not CHECKED_ADDRESS.search(request.path) or {"append", "edit"}.isdisjoint(caller.token.scopes):
        return []
    texts = list(_strings(_json_body(request)))
    return texts if sum(map(len, texts)) <= MAX_CHECKED else []


def _document_checked(caller: Caller, request: HttpRequest) -> AbstractContextManager[None]:
    """Return a context in which the content check has read the document that a request writes, if any."""
    place = DOCUMENT_ADDRESS.search(request.path)
    body = _json_body(request) if place else None
    content = body.get("content") if isinstance(body, dict) else None
    if not place or not isinstance(content, str):
        return nullcontext()
    return document_checked(caller, "append" if place[2] else "edit", place[1], content)


def _json_body(request: HttpRequest) -> Any:
    """Return the body of a request, None if it can't be read: that is reported when it is parsed."""
    try:
        return decode_json(request.body.decode()).value
    except (UnicodeDecodeError, MemoryHubError):
        return None


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for one in value.values() if isinstance(value, dict) else value:
            yield from _strings(one)


def _run_once(call: WriteCall, run: Callable[[], HttpResponse]) -> HttpResponse:
    """Run in a transaction, rolled back on an error. With a key, store the response or return the stored one."""

    @db_retry.retried
    @transaction.atomic
    def write() -> HttpResponse:
        stored = _stored_response(call)
        if stored is not None:
            return stored
        response = run()
        if response.status_code >= 400:
            transaction.set_rollback(True)
        elif call.key:
            _store(call, response)
        return response

    try:
        return write()
    except IntegrityError:  # a concurrent call with the same key or for the same row was first
        return write()


def _stored_response(call: WriteCall) -> HttpResponse | None:
    """Return the stored response of an idempotency key, a conflict if the request differs, or None."""
    if not call.key:
        return None
    kept = IdempotentCall.objects.filter(token=call.caller.token, idempotency_key=call.key).first()
    if kept is None:
        return None
    if kept.request_hash != call.request_hash:
        detail = "This idempotency key was used for a different request. Use a new key."
        return problem(409, "idempotency_key_reused", detail)
    body = json.dumps(kept.answer, ensure_ascii=False)
    response = HttpResponse(body, content_type="application/json; charset=utf-8", status=kept.status)
    response["Idempotent-Replay"] = "true"
    return response


def _store(call: WriteCall, response: HttpResponse) -> None:
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
