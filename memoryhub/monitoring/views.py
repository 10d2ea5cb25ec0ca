"""The page for Prometheus: off by default, and only for a token or for this machine."""

from __future__ import annotations

from django.conf import settings
from django.contrib.auth.decorators import login_not_required
from django.http import Http404, HttpRequest, HttpResponse
from django.utils.crypto import constant_time_compare
from django.views.decorators.http import require_GET

from memoryhub.lib.http.local_requests import is_from_this_machine


@login_not_required
@require_GET
def metrics(request: HttpRequest) -> HttpResponse:
    """Return the figures in Prometheus' text format."""
    if not settings.MEMORYHUB_METRICS:
        raise Http404
    if refusal := _refusal(request):
        return refusal
    from prometheus_client import CollectorRegistry, generate_latest
    from prometheus_client.multiprocess import MultiProcessCollector

    from memoryhub.lib.metrics import process_metrics
    from memoryhub.monitoring.figures import DatabaseFigures

    of_processes = process_metrics().registry
    if settings.METRICS_FOLDER:
        of_processes = CollectorRegistry()
        MultiProcessCollector(of_processes, path=settings.METRICS_FOLDER)  # type: ignore[no-untyped-call]
    of_database = CollectorRegistry()
    of_database.register(DatabaseFigures())
    text = generate_latest(of_database) + generate_latest(of_processes)
    return HttpResponse(text, content_type="text/plain; version=0.0.4; charset=utf-8")


def _refusal(request: HttpRequest) -> HttpResponse | None:
    """Return the response to a request that isn't allowed. With a token set, this machine needs it, too."""
    if settings.MEMORYHUB_METRICS_TOKEN:
        given = request.headers.get("Authorization", "").removeprefix("Bearer ").strip()
        if constant_time_compare(given, settings.MEMORYHUB_METRICS_TOKEN):
            return None
        headers = {"WWW-Authenticate": "Bearer"}
        return HttpResponse("Send MEMORYHUB_METRICS_TOKEN as a bearer token.\n", "text/plain", 401, headers=headers)
    if is_from_this_machine(request.META.get("REMOTE_ADDR", ""), request.headers):
        return None
    text = "Only this machine may read the metrics. For others, set MEMORYHUB_METRICS_TOKEN.\n"
    return HttpResponse(text, "text/plain", 403)
