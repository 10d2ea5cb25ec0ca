"""What this process counts for /metrics. Nothing is counted, and prometheus-client isn't imported, unless it is on.

With PROMETHEUS_MULTIPROC_DIR, prometheus-client adds up the figures of all processes that share that folder.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache as once
from typing import TYPE_CHECKING

from django.conf import settings

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry, Counter, Histogram

BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10)  # seconds
METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})


@dataclass(frozen=True)
class ProcessMetrics:
    registry: CollectorRegistry
    requests: Counter
    seconds: Histogram
    appended: Counter
    searches: Counter


@once
def process_metrics() -> ProcessMetrics:
    """Return this process's metrics, created on the first call."""
    from prometheus_client import CollectorRegistry, Counter, Histogram, ProcessCollector

    registry = CollectorRegistry()
    ProcessCollector(namespace="memoryhub", registry=registry)
    labels = ("route", "method", "status")
    return ProcessMetrics(
        registry,
        Counter("memoryhub_requests", "Requests by route and status.", labels, registry=registry),
        Histogram(
            "memoryhub_request_seconds",
            "Time until the response began, in seconds.",
            ("route",),
            buckets=BUCKETS,
            registry=registry,
        ),
        Counter("memoryhub_appended_entries", "Entries that agents and people appended.", registry=registry),
        Counter("memoryhub_searches", "Ranked searches by pages, agents and commands.", registry=registry),
    )


def count_request(route: str, method: str | None, status: int, seconds: float) -> None:
    """Count a request. ``route``: a pattern, never an address, so that there are few of them."""
    metrics = process_metrics()
    metrics.requests.labels(route, method if method in METHODS else "other", str(status)).inc()
    metrics.seconds.labels(route).observe(seconds)


def count_appended(entries: int) -> None:
    if settings.MEMORYHUB_METRICS:
        process_metrics().appended.inc(entries)


def count_search() -> None:
    if settings.MEMORYHUB_METRICS:
        process_metrics().searches.inc()
