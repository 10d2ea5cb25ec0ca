from __future__ import annotations

import time
from collections.abc import Callable

from django.conf import settings
from django.core.exceptions import MiddlewareNotUsed
from django.http import HttpRequest, HttpResponse

from memoryhub.lib.metrics import count_request

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
