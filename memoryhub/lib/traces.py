"""Traces for OpenTelemetry. Nothing is traced, and its SDK isn't imported, unless MEMORYHUB_TRACES is on.

A span has the name and the attributes that its caller gives it, and nothing else: no addresses, parameters of queries
or messages of errors, which may quote the memory. The current span is kept in a variable of this module instead of
OpenTelemetry's context, in which the library mcp puts spans that clients name.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import cache as once
from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.db import connection

from memoryhub.lib.errors import MemoryHubError
from memoryhub.lib.http.local_requests import is_from_this_machine
from memoryhub.lib.http.request_ids import current_request_id
from memoryhub.lib.metrics import METHODS

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
    from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult
    from opentelemetry.trace import Span

logger = logging.getLogger(__name__)
EXPORT_SECONDS = 2.0  # for sending a batch, with retries, unless OpenTelemetry's variables say otherwise
SHUTDOWN_SECONDS = 1.5  # for sending what is left when the process ends
TIMEOUTS = {"OTEL_EXPORTER_OTLP_TIMEOUT", "OTEL_EXPORTER_OTLP_TRACES_TIMEOUT"}
NOISY = ("opentelemetry.exporter.otlp.proto.http.trace_exporter", "opentelemetry.sdk._shared_internal")
Attributes = dict[str, str | int | float]
_current: ContextVar[Traced | None] = ContextVar("span", default=None)
_opening = threading.Lock()
_collector_is_down = threading.Event()


@dataclass
class Traced:
    """What is recorded of a block. ``span``: None if traces are off. ``failed``: whether to mark it as an error."""

    name: str
    attributes: Attributes = field(default_factory=dict)
    span: Span | None = None
    failed: bool = False

    def answer(self, status: int, route: str | None = None) -> None:
        """Note the response of a request. ``route``: a pattern, never an address; None if it is unknown."""
        self.attributes["http.response.status_code"] = status
        self.failed = status >= 500
        if route is not None:
            self.attributes["http.route"] = route
            self.name = f"{self.name.partition(' ')[0]} {route}"

    def fail(self, error: BaseException) -> None:
        """Note the stable code of an error, or its type."""
        self.failed = True
        self.attributes["error.type"] = error.code if isinstance(error, MemoryHubError) else type(error).__name__

    def end(self) -> None:
        """End the span now. Later calls do nothing."""
        if self.span is None or not self.span.is_recording():
            return
        from opentelemetry.trace import StatusCode

        self.span.update_name(self.name)
        self.span.set_attributes(self.attributes)
        if self.failed:
            self.span.set_status(StatusCode.ERROR)
        self.span.end()


@contextmanager
def traced(
    name: str,
    attributes: Attributes | None = None,
    *,
    kind: str = "INTERNAL",
    expected: tuple[type[BaseException], ...] = (),
) -> Iterator[Traced]:
    """Record the block as a span, in which later ones are nested. More attributes can be added in the block.

    ``expected``: exceptions that aren't errors.
    """
    entry = Traced(name, dict(attributes or {}))
    if not settings.MEMORYHUB_TRACES:
        yield entry
        return
    with _recorded(entry, kind, expected=expected):
        yield entry


@contextmanager
def traced_request(method: str | None, headers: Mapping[str, str], address: str) -> Iterator[Traced]:
    """Record a request as a span, or yield the span that ``memoryhub.asgi`` has begun for it.

    ``headers``: its ``traceparent`` is joined if the request comes from a program on this machine, and not through a
    proxy. Others could hide their requests, or mix them with those of somebody else.
    """
    current = _current.get()
    if current is not None:
        yield current
        return
    shown = method if method in METHODS else "_OTHER"
    entry = Traced(shown, {"http.request.method": shown, "memoryhub.request_id": current_request_id()})
    is_joined = is_from_this_machine(address, headers)
    with _recorded(entry, "SERVER", traceparent=headers.get("traceparent", "") if is_joined else ""):
        yield entry


@contextmanager
def _recorded(
    entry: Traced, kind: str, *, traceparent: str = "", expected: tuple[type[BaseException], ...] = ()
) -> Iterator[None]:
    entry.span = _start(entry, kind, traceparent)
    token = _current.set(entry)
    try:
        yield
    except BaseException as error:
        if not isinstance(error, expected):
            entry.fail(error)
        raise
    finally:
        _current.reset(token)
        entry.end()


def _start(entry: Traced, kind: str, traceparent: str) -> Span:
    from opentelemetry.context import Context
    from opentelemetry.trace import SpanKind, set_span_in_context
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

    parent = _current.get()
    if parent is not None and parent.span is not None:
        context = set_span_in_context(parent.span, Context())
    else:  # without `tracestate`, which can be any text
        context = TraceContextTextMapPropagator().extract({"traceparent": traceparent}, Context())
    tracer = provider().get_tracer("memoryhub")
    return tracer.start_span(entry.name, context, SpanKind[kind])


@contextmanager
def traced_model_call(operation: str, model: str) -> Iterator[Traced]:
    """Record a request to a model as a span. ``operation``: "chat" or "embeddings"."""
    attributes: Attributes = {"gen_ai.operation.name": operation, "gen_ai.request.model": model}
    with traced(f"{operation} {model}", attributes, kind="CLIENT") as entry:
        yield entry


@contextmanager
def count_queries(entry: Traced) -> Iterator[None]:
    """Count this thread's queries in the block, and add up their time. Their texts aren't recorded."""

    def count(execute: Callable[..., Any], *query: Any) -> Any:
        began = time.perf_counter()
        try:
            return execute(*query)
        finally:
            found[0] += 1
            found[1] += time.perf_counter() - began

    if entry.span is None:
        yield
        return
    found: list[float] = [0, 0.0]
    try:
        with connection.execute_wrapper(count):
            yield
    finally:
        entry.attributes |= {"memoryhub.queries": int(found[0]), "memoryhub.query_seconds": round(found[1], 6)}


def current_trace_id() -> str:
    """Return the id of the current trace in hexadecimal; "" if there is none, or if it isn't recorded."""
    entry = _current.get()
    if entry is None or entry.span is None:
        return ""
    context = entry.span.get_span_context()
    return f"{context.trace_id:032x}" if context.trace_flags.sampled else ""


def provider() -> TracerProvider:
    """Return this process's provider of spans, created on the first call."""
    with _opening:
        return _open_provider()


@once
def _open_provider() -> TracerProvider:
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    resource = Resource.create({"process.pid": os.getpid()})
    if str(resource.attributes["service.name"]).startswith("unknown_service"):
        resource = resource.merge(Resource({"service.name": "memoryhub"}))
    made = TracerProvider(resource=resource, shutdown_on_exit=False)
    made.add_span_processor(BatchSpanProcessor(quiet_exporter()))
    return made


def shut_down() -> None:
    """Send what is left if the collector answers, for a second or two. Later spans open a new provider."""
    with _opening:
        if not _open_provider.cache_info().currsize:
            return
        made = _open_provider()
        _open_provider.cache_clear()
    sending = threading.Thread(target=made.shutdown, daemon=True)
    sending.start()
    sending.join(0.1 if _collector_is_down.is_set() else SHUTDOWN_SECONDS)


def quiet_exporter() -> SpanExporter:
    """Return an exporter to the collector that says once that it can't be reached, instead of after each batch."""
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter

    for name in NOISY:
        logging.getLogger(name).setLevel(logging.CRITICAL)
    seconds = None if TIMEOUTS & settings.GIVEN_SETTINGS else EXPORT_SECONDS
    exporter = OTLPSpanExporter(timeout=seconds)
    send = exporter.export

    def export(spans: Sequence[ReadableSpan]) -> SpanExportResult:
        result = send(spans)
        if result.name == "SUCCESS":
            _collector_is_down.clear()
        elif not _collector_is_down.is_set():
            _collector_is_down.set()
            logger.warning("Traces can't be sent to the collector. They are dropped until it answers.")
        return result

    exporter.export = export  # type: ignore[method-assign]
    return exporter
