from __future__ import annotations

import time
from collections.abc import Callable

from django.conf import settings
from django.core.exceptions import MiddlewareNotUsed
from django.http import HttpRequest, HttpResponse

from memoryhub.lib.metrics import count_request
from memoryhub.lib.traces import count_queries, current_trace_id, traced_request

GetResponse = Callable[[HttpRequest], HttpResponse]


def count_requests(get_response: GetResponse) -> GetResponse:
    """Count requests by route for /metrics. Addresses without a route count as one."""
    if not settings.MEMORYHUB_METRICS:
        raise MiddlewareNotUsed

    def middleware(request: HttpRequest) -> HttpResponse:
        began = time.perf_counter()
        response = get_response(request)
        match = request.resolver_match
        route = match.route if match else "none"
        count_request(route or "/", request.method, response.status_code, time.perf_counter() - began)
        return response

    return middleware


def trace_requests(get_response: GetResponse) -> GetResponse:
    """Complete the span that memoryhub.asgi has begun for each request, or record one."""
    if not settings.MEMORYHUB_TRACES:
        raise MiddlewareNotUsed

    def middleware(request: HttpRequest) -> HttpResponse:
        address = request.META.get("REMOTE_ADDR", "")
        with traced_request(request.method, request.headers, address) as span, count_queries(span):
            request.META["memoryhub.trace_id"] = current_trace_id()  # for records that are logged later
            response = get_response(request)
            match = request.resolver_match
            span.answer(response.status_code, (match.route or "/") if match else None)
        return response

    return middleware
