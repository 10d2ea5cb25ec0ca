"""Request ids in headers, logs and errors, and JSON logs of real processes."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import subprocess
import sys
from pathlib import Path

import pytest
from django.test import Client

from memoryhub import asgi
from memoryhub.lib.http.request_ids import current_request_id, identified
from memoryhub.log_redaction import JsonLines, add_request_id
from memoryhub.mcp.server import build_server

ROOT = Path(__file__).resolve().parent.parent.parent
PROGRAM = """
import logging, django
django.setup()
from django.test import Client
from memoryhub.mcp.server import build_server
build_server(None)
logging.getLogger("mcp").info("a detail of a library")
client = Client(headers={"Host": "localhost"})
client.get("/api/v1/nothing", headers={"X-Request-ID": "from-proxy-1"})
client.get("/api/invitation/secret-token/")
try:
    raise ValueError("two\\nlines at /setup/secret-token/")
except ValueError:
    logging.getLogger("x").exception("failed %s", "é")
"""


@pytest.mark.django_db
def test_every_response_has_an_id_of_its_own(client):
    first, second = (client.get("/login/")["X-Request-ID"] for _ in range(2))

    assert len(first) == len(second) == 32
    assert first != second


@pytest.mark.django_db
@pytest.mark.parametrize("given", ["", "x" * 65, "a b", "é", 'a"b', "a\x1bb", "a\nb"])
def test_an_id_that_is_not_plain_is_replaced(given, client):
    assert len(client.get("/login/", headers={"X-Request-ID": given})["X-Request-ID"]) == 32


@pytest.mark.django_db
def test_a_plain_id_of_a_proxy_is_kept(client):
    response = client.get("/api/v1/nothing", headers={"X-Request-ID": "Root=1-67:a_b"})

    assert response["X-Request-ID"] == response.json()["request_id"] == "Root=1-67:a_b"


@pytest.mark.django_db
def test_error_pages_show_the_id(admin_client, monkeypatch):
    def fail(*_args: object) -> None:
        raise RuntimeError("broken")

    monkeypatch.setattr("memoryhub.dashboard.views.home.keyset_page", fail)
    browser = Client(raise_request_exception=False)
    browser.cookies = admin_client.cookies

    response = browser.get("/", headers={"X-Request-ID": "seen-1"})

    assert response.status_code == 500
    assert "seen-1" in response.content.decode()
    refused = Client(enforce_csrf_checks=True).post("/login/", headers={"X-Request-ID": "seen-2"})
    assert refused.status_code == 403
    assert "seen-2" in refused.content.decode()


@pytest.mark.parametrize("given", [b"from-proxy-2", b"not plain"])
def test_mcp_and_early_refusals_have_ids(given):
    sent = [ask("/mcp", given), ask("/login/", given, [(b"content-length", b"999999999")])]

    for start, body in sent:
        found = dict(start["headers"])[b"x-request-id"].decode()
        assert json.loads(body["body"])["request_id"] == found
        assert (found == given.decode()) is (given == b"from-proxy-2")
        assert [name for name, _ in start["headers"]].count(b"x-request-id") == 1
    assert [start["status"] for start, _ in sent] == [401, 413]


def ask(path: str, request_id: bytes, headers: list[tuple[bytes, bytes]] | None = None) -> list[dict[str, object]]:
    async def receive() -> dict[str, object]:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def take(message: dict[str, object]) -> None:
        sent.append(message)

    sent: list[dict[str, object]] = []
    pairs = [(b"host", b"localhost"), (b"x-request-id", request_id), *(headers or [])]
    scope = {"type": "http", "method": "POST", "scheme": "http", "path": path, "headers": pairs}
    asyncio.run(asgi.application(scope, receive, take))
    return sent


def test_an_id_ends_with_its_request():
    with identified("one"):
        assert current_request_id() == "one"
    assert current_request_id() == ""


def test_a_json_line_is_one_line_without_tokens_or_extra_values():
    record = logging.LogRecord("x", logging.ERROR, "", 0, "at %s\nnext", ("/setup/abc/",), None)
    record.password = "hunter2"
    assert add_request_id()(record)

    line = JsonLines().format(record)

    assert "\n" not in line
    assert json.loads(line)["message"] == "at /setup/…/\nnext"
    assert "hunter2" not in line


def test_the_mcp_server_asks_for_no_details_of_its_library():
    assert build_server(lambda _request, _now: None).settings.log_level == "WARNING"


@pytest.mark.slow
def test_a_process_logs_json_and_no_details_of_libraries(tmp_path):
    (tmp_path / "static").mkdir()  # where whitenoise looks
    own = {"DJANGO_SETTINGS_MODULE": "memoryhub.settings", "MEMORYHUB_LOG_FORMAT": "json", "DATABASE_URL": ""}
    environment = os.environ | own | {"MEMORYHUB_HOME": str(tmp_path)}

    ended = subprocess.run(
        [sys.executable, "-c", PROGRAM], cwd=ROOT, env=environment, capture_output=True, text=True, check=True
    ).stderr

    lines = [json.loads(line) for line in ended.splitlines()]
    assert [(line["level"], line["logger"]) for line in lines] == [
        ("WARNING", "django.request"),
        ("WARNING", "django.request"),
        ("ERROR", "x"),
    ]
    assert lines[0]["request_id"] == "from-proxy-1"
    assert len(lines[1]["request_id"]) == 32
    assert lines[2]["request_id"] == "-"
    assert "Traceback" in lines[2]["traceback"]
    assert lines[2]["message"] == "failed é"
    assert "secret-token" not in ended
