from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from memoryhub.lib import traces


class Recorded:
    """The spans of this process."""

    def __init__(self, exporter: InMemorySpanExporter) -> None:
        self.exporter = exporter

    def all(self) -> list[dict[str, Any]]:
        """Return the spans that have ended, as they are exported."""
        traces.provider().force_flush()
        return [json.loads(span.to_json()) for span in self.exporter.get_finished_spans()]

    def one(self, name: str) -> dict[str, Any]:
        [found] = [span for span in self.all() if span["name"] == name]
        return found

    def everything(self) -> str:
        return json.dumps(self.all(), ensure_ascii=False)


@pytest.fixture
def spans(settings, monkeypatch) -> Iterator[Recorded]:
    """The spans of this test, recorded in memory."""
    exporter = InMemorySpanExporter()
    monkeypatch.setattr(traces, "quiet_exporter", lambda: exporter)
    settings.MEMORYHUB_TRACES = True
    traces.shut_down()
    yield Recorded(exporter)
    traces.shut_down()
