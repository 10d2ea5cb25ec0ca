"""Traces of real processes: they reach a collector, and nothing waits for one that is down."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx2
import pytest
from django.conf import settings
from django.db import connection
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from pytest_httpserver import HTTPServer

PATIENCE_SECONDS = 60
ROOT = Path(__file__).resolve().parent.parent.parent
Spans = dict[int, list[str]]


class Hub:
    """A hub that sends traces to ``collector``. Its log goes to a file."""

    def __init__(self, home: Path, collector: str) -> None:
        self.log = home / "log"
        dropped = ("MEMORYHUB_", "DATABASE", "OTEL_")
        kept = {name: value for name, value in os.environ.items() if not name.startswith(dropped)}
        self.environment = kept | {
            "MEMORYHUB_HOME": str(home / "home"),
            "MEMORYHUB_TRACES": "1",
            "MEMORYHUB_LOG_FORMAT": "json",
            "MEMORYHUB_BACKUP_HOURS": "0",
            "DJANGO_SETTINGS_MODULE": "memoryhub.settings",
            "OTEL_EXPORTER_OTLP_ENDPOINT": collector,
            "OTEL_BSP_SCHEDULE_DELAY": "200",
        }

    def start(self, *options: str) -> None:
        command = [sys.executable, "manage.py", "serve", "--port", "0", *options]
        with self.log.open("w") as log:
            self.process = subprocess.Popen(
                command, cwd=ROOT, env=self.environment, stdout=subprocess.PIPE, stderr=log, text=True
            )
        for line in self.process.stdout:
            if found := re.search(r"MemoryHub is running at (\S+)", line):
                self.address = found[1]
            if line.startswith("Press Ctrl-C"):
                return
        raise AssertionError(self.log.read_text())

    def ask(self, path: str) -> None:
        assert httpx2.get(f"{self.address}{path}", timeout=PATIENCE_SECONDS).status_code in (200, 404)

    def stop(self) -> None:
        self.process.send_signal(signal.SIGTERM)
        self.process.communicate(timeout=PATIENCE_SECONDS)


@pytest.fixture(scope="module")
def home(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("hub")


@pytest.fixture
def start(home, new_database) -> Iterator[Callable[..., Hub]]:
    if not (home / "home").exists():
        (home / "home").mkdir()
        new_database(home / "home" / "memoryhub.sqlite3")

    def begin(collector: str, *options: str, **environment: str) -> Hub:
        hub = Hub(home, collector)
        hub.environment |= environment
        hubs.append(hub)
        hub.start(*options)
        return hub

    hubs: list[Hub] = []
    yield begin
    for hub in hubs:
        hub.process.kill()
        hub.process.communicate()


@pytest.fixture
def collector(httpserver: HTTPServer) -> HTTPServer:
    httpserver.expect_request("/v1/traces", method="POST").respond_with_data(b"")
    return httpserver


def received(collector: HTTPServer) -> Spans:
    """Return the names of the spans that each process has sent."""
    found: Spans = defaultdict(list)
    for request, _ in collector.log:
        for sent in ExportTraceServiceRequest.FromString(request.data).resource_spans:
            values = {pair.key: pair.value for pair in sent.resource.attributes}
            assert values["service.name"].string_value == "memoryhub"
            found[values["process.pid"].int_value] += [
                span.name for scope in sent.scope_spans for span in scope.spans
            ]
    return found


def wait_for(collector: HTTPServer, name: str) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not any(name in names for names in received(collector).values()):
        assert time.monotonic() < deadline, received(collector)
        time.sleep(0.1)


@pytest.mark.slow
def test_web_process_and_worker_send_traces(start, collector):
    hub = start(collector.url_for(""))
    hub.ask("/login/?next=/zebrafinch/")
    hub.ask("/zebrafinch/")

    wait_for(collector, "job sweep")
    wait_for(collector, "GET")

    assert {"GET login/", "GET"} <= set(received(collector)[hub.process.pid])
    assert len(received(collector)) == 2
    assert not [sent for sent, _ in collector.log if b"zebrafinch" in sent.data or b"127.0.0.1" in sent.data]
    assert '"trace_id": "' in hub.log.read_text()  # in the line about the page that isn't there


@pytest.mark.slow
def test_what_is_left_is_sent_at_the_end(start, collector):
    hub = start(collector.url_for(""), "--no-worker", OTEL_BSP_SCHEDULE_DELAY="60000")
    hub.ask("/login/")
    assert received(collector) == {}

    hub.stop()

    assert received(collector)[hub.process.pid] == ["GET login/"]
    command = [
        sys.executable,
        "manage.py",
        "import",
        str(ROOT / "tests" / "samples" / "nanobot-0.1"),
        "--name",
        "atlas",
    ]
    subprocess.run(command, cwd=ROOT, env=hub.environment, check=True, capture_output=True)
    assert any("job import" in names for names in received(collector).values())


@pytest.mark.slow
def test_a_collector_that_refuses_is_mentioned_once(start):
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))  # without listening
        hub = start(f"http://127.0.0.1:{closed.getsockname()[1]}", "--no-worker")
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not hub.log.read_text() and time.monotonic() < deadline:
            hub.ask("/login/")
            time.sleep(0.1)
        for _ in range(5):  # several batches
            hub.ask("/login/")
            time.sleep(0.25)
        hub.stop()

    [line] = filter(None, hub.log.read_text().splitlines())
    assert "Traces can't be sent to the collector" in line


@pytest.mark.slow
def test_nothing_waits_for_a_collector_that_never_answers(start):
    patient = str(10 * PATIENCE_SECONDS)
    with socket.create_server(("127.0.0.1", 0), backlog=100) as silent:
        hub = start(f"http://127.0.0.1:{silent.getsockname()[1]}", "--no-worker", OTEL_EXPORTER_OTLP_TIMEOUT=patient)
        hub.ask("/login/")
        sending, _ = silent.accept()  # a batch is being sent
        hub.ask("/login/")
        hub.stop()
        sending.close()


@pytest.mark.skipif(connection.vendor != "postgresql", reason="SQLite has one web process")
def test_each_of_several_web_processes_sends_traces(start, collector, transactional_db):
    database = connection.settings_dict
    place = f"{database['USER']}:{database['PASSWORD']}@{database['HOST']}:{database['PORT']}/{database['NAME']}"
    own = {"DATABASE_URL": f"postgres://{place}", "MEMORYHUB_SECRET_KEY": settings.SECRET_KEY}
    hub = start(collector.url_for(""), "--no-worker", "--processes", "2", **own)
    deadline = time.monotonic() + PATIENCE_SECONDS
    while len(received(collector)) < 2 and time.monotonic() < deadline:
        hub.ask("/login/")
        time.sleep(0.05)

    children = received(collector)
    assert len(children) == 2
    assert hub.process.pid not in children
    hub.stop()
