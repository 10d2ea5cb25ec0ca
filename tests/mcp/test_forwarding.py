import fcntl
import json
import subprocess
import sys
import threading
from base64 import b64encode
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from memoryhub.management.serve_address import address_for_links, publish_address
from memoryhub.mcp.forwarding import STOPPED, Hub, database_mark, forward, running_hub
from memoryhub.mcp.handshake import VERSION_KEY
from tests.mcp.early_answers import discover, initialize, request
from tests.mcp.test_handshake import Pipe

ROOT = Path(__file__).resolve().parents[2]
INITIALIZED = '{"jsonrpc": "2.0", "method": "notifications/initialized"}\n'
READY = {"jsonrpc": "2.0", "id": 0, "result": {"protocolVersion": "2025-06-18", "serverInfo": {}}}
LIMIT = {"code": "too_many_calls", "detail": "Wait 5 seconds.", "status": 429}


class FakeHub(ThreadingHTTPServer):
    """Answers with the scripted statuses and bodies, in order; a status of 0 ends the connection."""

    def __init__(self, *answers):
        super().__init__(("127.0.0.1", 0), Handler)
        self.answers, self.requests = list(answers), []
        threading.Thread(target=self.serve_forever, args=(0.01,), daemon=True).start()

    def stop(self):
        self.shutdown()
        self.server_close()


class Handler(BaseHTTPRequestHandler):
    def do_POST(self):
        line = self.rfile.read(int(self.headers["Content-Length"])).decode()
        names = ("MCP-Protocol-Version", "Mcp-Method", "Mcp-Name")
        self.server.requests.append((json.loads(line).get("method"), [self.headers[name] for name in names]))
        status, value = self.server.answers.pop(0)
        if status:
            body = json.dumps(value, indent=1).encode() if value else b""
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    def log_message(self, *_args):
        """Log nothing."""


@pytest.fixture
def exchange():
    """Return a function that sends lines by way of a hub; it returns what the client gets and what is left."""
    pipe = Pipe()

    def run(hub, *lines):
        pipe.send(*lines)
        pipe.end()
        pipe.wire.read()
        is_done = forward(pipe.wire, Hub(f"http://127.0.0.1:{hub.server_port}", "mh_x"))
        left = [] if is_done else [*iter(pipe.wire.readline, "")]
        pipe.wire._send("END\n")
        return is_done, [json.loads(line) for line in iter(pipe.output.readline, "END\n")][1:], left

    yield run
    pipe.output.close()


def result(number, **values):
    return {"jsonrpc": "2.0", "id": number, "result": values}


def test_a_hub_answers_in_the_agreed_version(exchange):
    hub = FakeHub((200, READY), (202, None), (200, result(1, a="é\n")))
    is_done, answers, _ = exchange(hub, initialize(), INITIALIZED, request("tools/call", 1, name="x"))

    assert (is_done, answers) == (True, [result(1, a="é\n")])  # initialize was answered early, once
    assert [headers[0] for _, headers in hub.requests] == [None, "2025-06-18", "2025-06-18"]
    hub.stop()


@pytest.mark.parametrize("refusal", [(401, LIMIT), (200, {"error": {}}), (503, None), (0, None)])
def test_a_hub_that_does_not_know_the_token_is_left_alone(exchange, refusal):
    hub = FakeHub(refusal)
    call = request("tools/call", 1, name="x")

    assert exchange(hub, initialize(), call) == (False, [], [initialize(), call])
    hub.stop()


def test_protocols_without_an_initialize_request_get_their_headers(exchange):
    hub = FakeHub((200, result(1)))
    call = request("tools/call", 1, name="größe", _meta={VERSION_KEY: "2026-07-28"})
    is_done, answers, _ = exchange(hub, discover(), call)

    assert (is_done, answers) == (True, [result(1)])
    name = f"=?base64?{b64encode('größe'.encode()).decode()}?="
    assert hub.requests == [("tools/call", ["2026-07-28", "tools/call", name])]
    hub.stop()


def test_other_protocols_are_left_to_the_sdk(exchange):
    hub = FakeHub()
    assert exchange(hub, request("server/discover")) == (False, [], [request("server/discover")])
    hub.stop()


@pytest.mark.parametrize(
    "line", ["nonsense\n", "[1]\n", "[" * 5_000 + "\n", '{"jsonrpc": "2.0", "method": "initialize"}\n']
)
def test_what_is_no_request_is_left_to_the_sdk(exchange, line):
    hub = FakeHub()
    assert exchange(hub, line) == (False, [], [line])
    hub.stop()


def test_what_the_hub_refuses_is_told_as_the_command_does(exchange):
    hub = FakeHub((200, READY), (429, LIMIT), (429, LIMIT), (400, {"jsonrpc": "2.0", "id": 3, "error": {"code": 1}}))
    lines = [request("tools/call", 1, name="x"), request("prompts/get", 2), request("nonsense", 3)]
    _, answers, _ = exchange(hub, initialize(), *lines)

    text = "too_many_calls: Wait 5 seconds."
    assert answers[0] == result(1, content=[{"type": "text", "text": text}], isError=True)
    assert answers[1]["error"]["message"] == text
    assert answers[2] == {"jsonrpc": "2.0", "id": 3, "error": {"code": 1}}
    hub.stop()


def test_a_call_during_which_the_hub_stops_is_not_repeated(exchange):
    hub = FakeHub((200, READY), (202, None), (0, None))
    is_done, answers, left = exchange(hub, initialize(), INITIALIZED, request("tools/call", 1), request("ping", 2))

    assert (is_done, answers[0]["error"]["message"]) == (False, STOPPED)
    assert left == [initialize(), INITIALIZED, request("ping", 2)]
    hub.stop()


def test_the_command_goes_on_when_the_hub_is_gone():
    pipe, hub = Pipe(), FakeHub((200, READY), (202, None))
    pipe.send(initialize(), INITIALIZED)
    threading.Thread(target=pipe.wire.read, daemon=True).start()
    served = []
    address = f"http://127.0.0.1:{hub.server_port}"
    thread = threading.Thread(target=lambda: served.append(forward(pipe.wire, Hub(address, "mh_x"))))
    thread.start()
    while len(hub.requests) < 2:
        thread.join(0.01)
    hub.stop()
    pipe.send(request("ping", 2))
    thread.join()

    assert served == [False]
    assert [pipe.wire.readline() for _ in range(3)] == [initialize(), INITIALIZED, request("ping", 2)]
    assert pipe.wire.is_initializing  # the answer of what serves next is left out
    pipe.end()
    pipe.output.close()


def test_only_a_running_hub_with_the_same_database_is_found(settings, tmp_path):
    settings.MEMORYHUB_HOME, settings.GIVEN_DATABASE_URL = tmp_path, "postgres://a"
    address = "http://127.0.0.1:8765"
    with publish_address(address):
        assert running_hub(tmp_path, "postgres://a") == address_for_links() == address
        assert running_hub(tmp_path, "") == ""
    (tmp_path / "address").write_text(f"{address}\n{database_mark('')}")
    assert running_hub(tmp_path, "") == ""  # nothing holds the lock


@pytest.mark.parametrize("address", ["https://127.0.0.1:1", "http://hub.example.org:80", "http://127.0.0.1", "x", ""])
def test_tokens_are_sent_to_this_machine_only(tmp_path, address):
    with (tmp_path / "address").open("w") as file:
        file.write(f"{address}\n{database_mark('')}")
        file.flush()
        fcntl.flock(file, fcntl.LOCK_EX)
        assert running_hub(tmp_path, "") == ""


def test_forwarding_imports_neither_django_nor_the_sdk():
    code = "import sys, memoryhub.mcp.forwarding; print(sorted({'django', 'mcp', 'pydantic'} & set(sys.modules)))"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True, timeout=60
    )

    assert done.stdout.strip() == "[]"
