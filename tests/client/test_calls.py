"""Requests and responses of the clients, against a scripted server."""

from __future__ import annotations

import copy
import inspect
import re
import subprocess
import sys
from pathlib import Path

import pytest

from memoryhub.client import (
    AsyncMemoryHub,
    BadRequest,
    Conflict,
    HubUnavailable,
    MemoryHub,
    NotAuthenticated,
    NotFound,
    Refused,
)
from tests.client.conftest import TOKEN

ROOT = Path(__file__).resolve().parent.parent.parent
API = "/api/v1"
HELLO = {"role": "user", "content": "Hello"}
RUN = {"id": 41, "kind": "compression", "status": "queued"}


def methods(client: type) -> dict[str, inspect.Signature]:
    return {
        name: inspect.signature(method)
        for name, method in inspect.getmembers(client, inspect.isfunction)
        if not name.startswith("_")
    }


def sent(httpserver):
    """Return the only request received."""
    [(request, _)] = httpserver.log
    return request


@pytest.mark.parametrize(
    ("name", "arguments", "options", "request_line", "body"),
    [
        ("me", (), {}, "GET /me", None),
        ("open_session", ("cli:main",), {}, "POST /sessions", {"key": "cli:main"}),
        ("session", (12,), {}, "GET /sessions/12", None),
        (
            "append",
            ("cli:main", "Hello"),
            {},
            "POST /entries",
            {"session": "cli:main", "entries": [{"role": "user", "content": "Hello"}]},
        ),
        (
            "append",
            (12, {"role": "assistant", "content": "Hi"}),
            {},
            "POST /sessions/12/entries",
            {"entries": [{"role": "assistant", "content": "Hi"}]},
        ),
        ("context", ("cli:main",), {"max_tokens": 0}, "GET /context?session=cli%3Amain&max_tokens=0", None),
        ("context", (12,), {}, "GET /sessions/12/context", None),
        ("context", (12,), {"text": True}, "GET /sessions/12/context?text=true", None),
        ("compress", (12,), {"prompt": "Short."}, "POST /sessions/12/compress", {"prompt": "Short."}),
        ("stats", (12,), {}, "GET /sessions/12/stats", None),
        ("compress", (12,), {}, "POST /sessions/12/compress", {}),
        ("consolidate", (12,), {}, "POST /sessions/12/consolidate", {}),
        ("clear", (12,), {}, "POST /sessions/12/clear", {}),
        ("clear", (12, [HELLO]), {}, "POST /sessions/12/clear", {"entries": [HELLO]}),
        ("archive_and_clear", (12,), {}, "POST /sessions/12/archive-and-clear", {}),
        ("import_session", ("a.jsonl", "{}"), {}, "POST /sessions/import", {"name": "a.jsonl", "content": "{}"}),
        ("document", ("a b/c.md", 3), {}, "GET /documents/a%20b%2Fc.md?revision=3", None),
        ("why", (7,), {}, "GET /facts/7/why", None),
        (
            "write_document",
            ("MEMORY.md", "# New"),
            {"base": 3, "reason": "said"},
            "PUT /documents/MEMORY.md",
            {"content": "# New", "reason": "said"},
        ),
        (
            "propose",
            ("MEMORY.md", "# New"),
            {"base": 0},
            "POST /documents/MEMORY.md/proposals",
            {"content": "# New", "base": 0},
        ),
        ("add_fact", ("Fridays.",), {}, "POST /documents/MEMORY.md/facts", {"fact": "Fridays."}),
        ("proposal", (3,), {}, "GET /proposals/3", None),
        ("note", ("Moved.",), {}, "POST /history", {"text": "Moved."}),
        ("knowledge_entry", (7,), {}, "GET /knowledge/7", None),
        (
            "learn",
            ("Twice.",),
            {"tags": ["ci"]},
            "POST /knowledge",
            {"content": "Twice.", "category": "learned_fact", "tags": ["ci"]},
        ),
        ("change_knowledge", (7,), {"tags": []}, "PATCH /knowledge/7", {"tags": []}),
        (
            "remember",
            ([{"content": "Cold.", "category": "insight"}, {"content": "Hot."}],),
            {"source": "log"},
            "POST /observations",
            {
                "observations": [
                    {"category": "insight", "source": "log", "content": "Cold."},
                    {"category": "finding", "source": "log", "content": "Hot."},
                ]
            },
        ),
        ("recall", ("time-outs", 3), {}, "GET /recall?query=time-outs&limit=3", None),
        ("write", ("a/b", ""), {}, "PUT /value?key=a%2Fb", {"value": ""}),
        ("extract", ("Report.",), {}, "POST /extract", {"text": "Report."}),
        ("search", ("a -b",), {"kinds": ["entry", "memory"]}, "GET /search?query=a+-b&kinds=entry%2Cmemory", None),
        ("search", ("eu",), {"mode": "grid"}, "GET /search?query=eu&mode=grid", None),
        ("run", (41,), {}, "GET /runs/41", None),
    ],
)
def test_each_method_sends_its_request_and_returns_the_response(
    client, httpserver, name, arguments, options, request_line, body
):
    httpserver.expect_request(re.compile(f"{API}/.*")).respond_with_json(RUN)

    assert client(name, *arguments, **options) == RUN

    request = sent(httpserver)
    line = f"{request.method} {request.environ['REQUEST_URI'].removeprefix(API)}"
    assert (line, request.get_json(silent=True), request.headers["Authorization"]) == (
        request_line,
        body,
        f"Bearer {TOKEN}",
    )
    assert ("Idempotency-Key" in request.headers) == (request.method != "GET")


@pytest.mark.parametrize(
    ("name", "arguments", "answer", "returned"),
    [
        ("read", ("region",), {"key": "region", "value": "eu", "updated_at": None}, "eu"),
        ("knowledge_prompt", (), {"text": "- tests"}, "- tests"),
        ("cached_response", ("Hi", "m"), {"hit": True, "response": "Hello"}, "Hello"),
        ("cached_response", ("Hi", "m"), {"hit": False, "response": None}, None),
        ("keep_response", ("Hi", "m", "Hello"), {"kept": True}, True),
    ],
)
def test_single_value_is_unwrapped(client, httpserver, name, arguments, answer, returned):
    httpserver.expect_request(re.compile(f"{API}/.*")).respond_with_json(answer)

    assert client(name, *arguments) == returned


def test_session_export_returns_bytes(client, httpserver):
    httpserver.expect_request(f"{API}/sessions/12/export", query_string="layout=grip").respond_with_data("{}\n")

    assert client("export_session", 12, "grip") == b"{}\n"


@pytest.mark.parametrize(
    "name", ["sessions", "documents", "proposals", "history", "knowledge", "observations", "keys", "runs"]
)
def test_list_follows_its_pages(client, httpserver, name):
    first = {"items": ["a", "b"], "next": "c 2"}
    httpserver.expect_ordered_request(f"{API}/{name}", query_string="").respond_with_json(first)
    httpserver.expect_ordered_request(f"{API}/{name}", query_string={"cursor": "c 2"}).respond_with_json(
        {"items": ["c"], "next": None}
    )

    assert client(name) == ["a", "b", "c"]


def test_list_keeps_its_filter_on_later_pages(client, httpserver):
    place = f"{API}/documents/MEMORY.md/revisions"
    httpserver.expect_request(place).respond_with_json([{"revision": 1}])
    httpserver.expect_ordered_request(f"{API}/sessions/12/entries", query_string="epoch=0").respond_with_json(
        {"items": [1], "next": "x"}
    )
    httpserver.expect_ordered_request(
        f"{API}/sessions/12/entries", query_string="epoch=0&cursor=x"
    ).respond_with_json({"items": [2], "next": None})

    assert client("entries", 12, 0) == [1, 2]
    assert client("revisions", "MEMORY.md") == [{"revision": 1}]


def test_list_fetches_pages_lazily(httpserver):
    httpserver.expect_request(f"{API}/keys").respond_with_json({"items": ["a", "b"], "next": "c"})

    with MemoryHub(httpserver.url_for("/"), TOKEN) as hub:
        assert next(hub.keys()) == "a"

    assert len(httpserver.log) == 1


def test_document_write_sends_its_base(client, httpserver):
    held = {"name": "MEMORY.md", "status": "held", "revision": 3, "proposal": {"id": 8}}
    httpserver.expect_request(
        f"{API}/documents/MEMORY.md", method="PUT", headers={"If-Match": '"3"'}
    ).respond_with_json(held, status=202)

    assert client("write_document", "MEMORY.md", "# New", base=3) == held


def test_lone_surrogate_is_escaped(client, httpserver):
    httpserver.expect_request(f"{API}/value").respond_with_json({})

    client("write", "broken", "a\ud83d")

    assert sent(httpserver).json == {"value": "a\ud83d"}


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, BadRequest),
        (401, NotAuthenticated),
        (403, Refused),
        (404, NotFound),
        (409, Conflict),
        (412, Conflict),
        (422, BadRequest),
        (500, HubUnavailable),
    ],
)
def test_problem_raises_the_error_of_its_status(client, httpserver, naps, status, kind):
    problem = {
        "type": "about:blank",
        "title": "No",
        "status": status,
        "detail": "The document has moved on.",
        "code": "stale_base",
        "head": 4,
        "errors": [{"field": "base", "message": "old"}],
    }
    httpserver.expect_request(f"{API}/me").respond_with_json(
        problem, status=status, content_type="application/problem+json"
    )

    with pytest.raises(kind) as raised:
        client("me")

    error = raised.value
    assert (str(error), error.code, error.status, error.details) == (error.detail, "stale_base", status, {"head": 4})
    assert error.errors == [{"field": "base", "message": "old"}]
    assert copy.copy(error).code == "stale_base"
    assert naps == []


def test_page_of_a_proxy_is_a_bad_answer(client, httpserver):
    httpserver.expect_request(f"{API}/me").respond_with_data("<h1>Welcome</h1>")
    httpserver.expect_request(f"{API}/sessions/1").respond_with_data("<h1>No</h1>", status=404)

    with pytest.raises(HubUnavailable, match="Check the address") as raised:
        client("me")
    assert raised.value.code == "bad_answer"
    with pytest.raises(NotFound, match="status 404"):
        client("session", 1)


def test_response_of_another_shape_is_a_bad_answer(client, httpserver):
    httpserver.expect_request(f"{API}/value").respond_with_json({"other": 1})

    with pytest.raises(HubUnavailable):
        client("read", "region")


def test_token_is_not_sent_to_a_redirect(client, httpserver):
    httpserver.expect_request(f"{API}/me").respond_with_data("", status=301, headers={"Location": "/elsewhere"})

    with pytest.raises(HubUnavailable, match="/elsewhere"):
        client("me")

    assert len(httpserver.log) == 1


@pytest.mark.parametrize(
    ("name", "arguments", "options", "code"),
    [
        ("document", ("..",), {}, "bad_name"),
        ("search", ("long " * 20_000,), {}, "bad_address"),
        ("note", ("Moved.",), {"idempotency_key": "schlüssel"}, "bad_idempotency_key"),
    ],
)
def test_invalid_url_or_header_values_are_refused_before_sending(client, httpserver, name, arguments, options, code):
    with pytest.raises(BadRequest) as raised:
        client(name, *arguments, **options)

    assert (raised.value.code, httpserver.log) == (code, [])


@pytest.mark.parametrize("url", ["", "hub.example.org", "ftp://hub.example.org", "http://", "http://hub:port"])
def test_address_without_scheme_or_host_is_refused(url):
    with pytest.raises(ValueError, match="address"):
        MemoryHub(url, TOKEN)


def test_a_wrong_token_is_refused_without_being_printed():
    with pytest.raises(ValueError, match="token") as raised:
        MemoryHub("http://127.0.0.1:1", "mh_geheim-ü")

    assert "geheim" not in str(raised.value)


def test_both_clients_have_the_same_methods_with_the_same_parameters():
    names = {name: list(signature.parameters) for name, signature in methods(MemoryHub).items()}

    assert {name: list(signature.parameters) for name, signature in methods(AsyncMemoryHub).items()} == names


def test_each_method_is_documented():
    page = (ROOT / "docs" / "client.md").read_text()

    assert [name for name in methods(MemoryHub) if not re.search(rf"^\| `{name}\(", page, re.MULTILINE)] == []


def test_client_imports_nothing_of_the_server():
    listing = "import sys, memoryhub.client; print(*sorted(sys.modules))"
    loaded = subprocess.run(
        [sys.executable, "-c", listing], capture_output=True, text=True, check=True, cwd=ROOT
    ).stdout.split()
    ours = {name for name in loaded if name.startswith(("memoryhub", "sessions_app", "knowledge_app"))}

    assert "django" not in loaded
    assert {name for name in ours if not name.startswith("memoryhub.client")} == {"memoryhub"}
