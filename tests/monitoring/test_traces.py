"""Traces: which spans there are, what they say, and that nothing of the memory is in them."""

from __future__ import annotations

import asyncio
import importlib.util
import json
import logging
import os
import re
import runpy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.exceptions import ImproperlyConfigured
from django.db import connection
from django.test import Client
from django.utils import timezone
from pytest_httpserver import HTTPServer

from knowledge_app.services.rows.knowledge import add_knowledge
from memoryhub import asgi
from memoryhub.agents.api_tokens import issue_token
from memoryhub.jobs.kinds import JobKind, kinds
from memoryhub.jobs.progress import Postponed
from memoryhub.jobs.queue import do_next_job, request_job
from memoryhub.lib.embeddings import EmbeddingSettings, embed
from memoryhub.lib.errors import MemoryHubError
from memoryhub.lib.llm import ModelSettings, ask
from memoryhub.lib.traces import current_trace_id, traced
from memoryhub.log_redaction import JsonLines, add_request_id
from sessions_app.models import Workspace
from sessions_app.services.audit import By
from tests.hub import NOW, PERSON, add, client_of, open_at

pytestmark = pytest.mark.django_db
ROOT = Path(__file__).resolve().parent.parent.parent
PLANTED = "zebrafinch"
ADDRESS = "203.0.113.77"
TRACE, PARENT = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
JOINING = {"traceparent": f"00-{TRACE}-{PARENT}-01", "tracestate": f"a={PLANTED}"}


def request_through_asgi(path: str, headers: dict[str, str] | None = None, peer: str = ADDRESS) -> None:
    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def ignore(_message: object) -> None:
        return

    pairs = {"host": "localhost", "user-agent": PLANTED} | (headers or {})
    scope = {
        "type": "http", "method": "POST", "scheme": "http", "path": path, "query_string": f"q={PLANTED}".encode(),
        "headers": [(name.encode(), value.encode()) for name, value in pairs.items()], "state": {asgi.PEER: peer},
    }  # fmt: skip
    asyncio.run(asgi.application(scope, receive, ignore))


def test_a_request_is_a_span_named_by_its_route(spans, workspace, admin_user):
    client = client_of(admin_user)

    client.get("/w/atlas/?q=x", headers={"X-Request-ID": "from-proxy-1"})

    span = spans.one("GET w/<slug:slug>/")
    assert span["kind"] == "SpanKind.SERVER"
    queries, seconds = (span["attributes"].pop(f"memoryhub.{name}") for name in ("queries", "query_seconds"))
    assert span["attributes"] == {
        "http.request.method": "GET",
        "http.route": "w/<slug:slug>/",
        "http.response.status_code": 200,
        "memoryhub.request_id": "from-proxy-1",
    }
    assert 1 < queries < 100
    assert 0 < seconds < 60
    assert span["resource"]["attributes"]["service.name"] == "memoryhub"
    assert span["resource"]["attributes"]["process.pid"] == os.getpid()


def test_an_unknown_address_and_an_unknown_method_are_no_names(spans):
    Client().generic("BREW", f"/{PLANTED}/")

    span = spans.one("_OTHER")
    assert span["attributes"]["http.response.status_code"] == 404
    assert "http.route" not in span["attributes"]


@pytest.mark.parametrize(
    ("path", "name"),
    [("/mcp", "POST mcp"), ("/oauth/token", "POST oauth/token")],
)
def test_what_asgi_serves_is_one_span(path, name, spans):
    request_through_asgi(path)

    [span] = spans.all()
    assert span["name"] == name
    assert span["attributes"]["http.route"] == path.strip("/")
    assert len(span["attributes"]["memoryhub.request_id"]) == 32


def test_a_request_refused_before_django_is_a_span(spans):
    request_through_asgi("/login/", {"content-length": "999999999"})

    assert spans.one("POST")["attributes"]["http.response.status_code"] == 413


@pytest.mark.parametrize(
    ("headers", "peer", "is_joined"),
    [
        (JOINING, "127.0.0.1", True),
        (JOINING, "::1", True),
        (JOINING, ADDRESS, False),
        (JOINING, "", False),
        (JOINING | {"x-forwarded-for": "127.0.0.1"}, "127.0.0.1", False),
        ({"traceparent": f"00-{PLANTED}-01"}, "127.0.0.1", False),
    ],
)
def test_only_programs_on_this_machine_are_joined(headers, peer, is_joined, spans):
    request_through_asgi("/mcp", headers, peer)

    [span] = spans.all()
    assert (span["context"]["trace_id"] == f"0x{TRACE}") is is_joined
    assert span["parent_id"] == (f"0x{PARENT}" if is_joined else None)
    assert span["context"]["trace_state"] == "[]"


def test_a_request_from_elsewhere_can_not_hide_itself(spans):
    request_through_asgi("/mcp", {"traceparent": f"00-{TRACE}-{PARENT}-00"})

    assert spans.one("POST mcp")


def test_a_job_is_a_span(spans, workspace):
    request_job("sweep", None, {}, by=By(PERSON, timezone.now()))
    assert do_next_job(clock=timezone.now)

    span = spans.one("job sweep")
    assert span["attributes"]["memoryhub.job.status"] == "done"
    assert span["attributes"]["memoryhub.queries"] > 0
    assert span["status"]["status_code"] == "UNSET"


@pytest.mark.parametrize(
    ("error", "found"),
    [
        (MemoryHubError(PLANTED, code="no_place"), ("ERROR", "no_place", "failed")),
        (ValueError(PLANTED), ("ERROR", "ValueError", "failed")),
        (Postponed(PLANTED, until=NOW), ("UNSET", None, "queued")),
    ],
)
def test_a_failed_job_says_why_in_one_word(error, found, spans, workspace, monkeypatch):
    def fail(*_: object) -> None:
        raise error

    monkeypatch.setitem(kinds(), "export", JobKind(fail, lane="long", label="Export"))
    request_job("export", workspace, {"layout": PLANTED}, by=By(PERSON, timezone.now()))
    do_next_job(clock=timezone.now)

    span = spans.one("job export")
    attributes = span["attributes"]
    assert (
        span["status"]["status_code"],
        attributes.get("error.type"),
        attributes["memoryhub.job.status"],
    ) == found
    assert PLANTED not in spans.everything()


def model_settings(httpserver: HTTPServer) -> dict[str, Any]:
    place = {"allowed": frozenset({f"{httpserver.host}:{httpserver.port}"}), "timeout_seconds": 5.0, "retries": 0}
    return place | {"base_url": httpserver.url_for("/v1"), "model": "toy", "api_key": f"sk-{PLANTED}"}


def test_calls_of_models_say_how_long_they_are(spans, httpserver):
    choice = {"finish_reason": "stop", "message": {"content": PLANTED}}
    usage = {"prompt_tokens": 90, "completion_tokens": 12}
    httpserver.expect_request("/v1/chat/completions").respond_with_json({"choices": [choice], "usage": usage})
    httpserver.expect_request("/v1/embeddings").respond_with_json(
        {"data": [{"embedding": [0.5, 0.5]}], "usage": usage}
    )

    with traced("run test") as around:
        ask(ModelSettings(**model_settings(httpserver)), [{"role": "user", "content": PLANTED}], max_tokens=9)
    embed(EmbeddingSettings(**model_settings(httpserver)), [PLANTED])

    chat, embeddings = spans.one("chat toy"), spans.one("embeddings toy")
    assert chat["attributes"] == {
        "gen_ai.operation.name": "chat",
        "gen_ai.request.model": "toy",
        "gen_ai.usage.input_tokens": 90,
        "gen_ai.usage.output_tokens": 12,
    }
    assert embeddings["attributes"]["gen_ai.usage.input_tokens"] == 90
    assert chat["parent_id"] == f"0x{around.span.get_span_context().span_id:016x}"
    assert embeddings["parent_id"] is None
    assert PLANTED not in spans.everything()


def test_a_refused_call_of_a_model_does_not_quote_it(spans, httpserver):
    httpserver.expect_request("/v1/chat/completions").respond_with_data(PLANTED, status=400)

    with pytest.raises(MemoryHubError):
        ask(ModelSettings(**model_settings(httpserver)), [{"role": "user", "content": PLANTED}], max_tokens=9)

    span = spans.one("chat toy")
    assert span["attributes"]["error.type"] == "model_refused"
    assert span["status"] == {"status_code": "ERROR"}
    assert PLANTED not in spans.everything()


@pytest.mark.slow
def test_nothing_of_the_memory_is_in_spans(spans, db, monkeypatch):
    """Names, texts, search terms, addresses, tokens and errors are planted wherever a request or a job meets them."""
    workspace = Workspace.objects.create(slug=PLANTED, name=PLANTED)
    person = User.objects.create_superuser(PLANTED, f"{PLANTED}@example.org")
    session = open_at(workspace, f"cli:{PLANTED}")
    add(session, [{"role": "user", "content": f"the {PLANTED} sings"}])
    by = By(PERSON, NOW)
    add_knowledge(workspace, f"a {PLANTED} sings", category="user_preference", source=PLANTED, by=by)
    _, token = issue_token(workspace, PLANTED, ["read"], by=By(PERSON, timezone.now()))
    sent = {"User-Agent": PLANTED, "Referer": f"https://example.org/{PLANTED}", "X-Forwarded-For": ADDRESS, **JOINING}
    browser = Client(headers=sent, REMOTE_ADDR=ADDRESS, raise_request_exception=False)
    browser.force_login(person)
    for path in ("/", f"/w/{PLANTED}/", f"/w/{PLANTED}/search/?q={PLANTED}", f"/w/{PLANTED}/knowledge/", "/setup/x/"):
        browser.get(path)
    agent = Client(headers=sent | {"Authorization": f"Bearer {token}"}, REMOTE_ADDR=ADDRESS)
    for path in ("search", "knowledge"):
        agent.get(f"/api/v1/{path}?q={PLANTED}")

    def fail(*_args: object) -> None:
        with connection.cursor() as cursor:
            cursor.execute("SELECT %s", [PLANTED])
        raise RuntimeError(PLANTED)

    monkeypatch.setattr("memoryhub.dashboard.views.home.keyset_page", fail)
    assert browser.get(f"/?q={PLANTED}").status_code == 500
    request_job("export", workspace, {"layout": PLANTED}, by=By(PERSON, timezone.now()))
    assert do_next_job(clock=timezone.now)
    request_through_asgi("/mcp", {"authorization": f"Bearer {token}"})

    found = spans.everything()
    assert len(spans.all()) >= 9
    assert [word for word in (PLANTED, ADDRESS, token, "example.org", "SELECT") if word in found] == []


def test_log_records_have_the_id_of_their_trace(spans):
    def line() -> dict[str, Any]:
        record = logging.LogRecord("x", logging.ERROR, "", 0, "failed", (), None)
        assert add_request_id()(record)
        return json.loads(JsonLines().format(record))

    with traced("job test"):
        trace_id, within = current_trace_id(), line()

    assert within["trace_id"] == trace_id
    assert len(trace_id) == 32
    assert spans.one("job test")["context"]["trace_id"] == f"0x{trace_id}"
    assert "trace_id" not in line()


def test_the_log_of_a_refusal_has_the_id_of_its_trace(spans, caplog):
    Client().get("/no/such/page")

    [record] = [record for record in caplog.records if record.name == "django.request"]
    assert add_request_id()(record)
    assert f"0x{record.trace_id}" == spans.one("GET")["context"]["trace_id"]


@pytest.fixture
def start(tmp_path, monkeypatch) -> Callable[..., None]:
    """Return a function that reads the settings of a hub with traces, as its start does."""

    def read(**environment: str) -> None:
        for name in [name for name in os.environ if name.startswith("OTEL_")]:
            monkeypatch.delenv(name)
        own = {"MEMORYHUB_HOME": str(tmp_path), "MEMORYHUB_TRACES": "1", "DATABASE_URL": ""}
        for name, value in (own | environment).items():
            monkeypatch.setenv(name, value)
        runpy.run_path(str(ROOT / "memoryhub" / "settings.py"))

    return read


@pytest.mark.slow
@pytest.mark.parametrize("missing", ["sdk", "exporter"])
def test_a_missing_package_is_named(missing, start, monkeypatch):
    find = importlib.util.find_spec
    is_missing = f"opentelemetry.{missing}".__eq__
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if is_missing(name) else find(name))
    words = 'MEMORYHUB_TRACES is on: run `.venv/bin/uv pip install "opentelemetry-exporter-otlp-proto-http'

    with pytest.raises(ImproperlyConfigured, match=re.escape(words)):
        start()


@pytest.mark.slow
def test_another_protocol_is_refused(start):
    start(OTEL_EXPORTER_OTLP_PROTOCOL="http/protobuf")
    words = "OTEL_EXPORTER_OTLP_PROTOCOL is grpc, but MemoryHub only sends http/protobuf."

    with pytest.raises(ImproperlyConfigured, match=re.escape(words)):
        start(OTEL_EXPORTER_OTLP_PROTOCOL="grpc")
