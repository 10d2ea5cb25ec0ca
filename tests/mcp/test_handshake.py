import asyncio
import json
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS, MODERN_PROTOCOL_VERSIONS

from memoryhub.mcp.handshake import ANSWERS, DISCOVER, Wire
from memoryhub.mcp.server import build_server
from tests.mcp.early_answers import METHODS, discover, initialize, recorded, request, sdk_answers

ROOT = Path(__file__).resolve().parents[2]


class Pipe:
    """A wire, with pipes to and from a client that sends some lines."""

    def __init__(self):
        (reader, self.input), (output, writer) = os.pipe(), os.pipe()
        self.output = os.fdopen(output)
        self.wire = Wire(reader, writer, json.loads(ANSWERS.read_text()))

    def send(self, *lines):
        os.write(self.input, "".join(lines).encode())

    def early(self):
        """Return the answers that are given before anything serves."""

        def serve():
            self.wire.read()
            os.write(self.wire.writer, b"END\n")

        self.end()
        thread = threading.Thread(target=serve)
        thread.start()
        answers = [json.loads(line) for line in iter(self.output.readline, "END\n")]
        thread.join()
        return answers

    def end(self):
        os.close(self.input)


@pytest.fixture
def pipe():
    pipe = Pipe()
    yield pipe
    for descriptor in (pipe.wire.reader, pipe.wire.writer):
        os.close(descriptor)
    pipe.output.close()


def test_the_recorded_answers_are_the_sdk_s():
    """``make reference`` records them."""
    assert ANSWERS.read_text() == recorded()


@pytest.mark.parametrize("version", [*HANDSHAKE_PROTOCOL_VERSIONS, "2024-01-01"])
def test_early_answers_are_the_sdk_s(pipe, version):
    pipe.send(initialize(version), *(request(method, number) for number, method in enumerate(METHODS, start=1)))

    early = pipe.early()

    assert [one["id"] for one in early] == [0, 1, 2, 3]
    assert [one["result"] for one in early] == list(sdk_answers(version).values())


def test_clients_that_discover_the_server_first_are_answered_early(pipe):
    pipe.send(discover())

    [answer] = pipe.early()

    assert answer["result"]["supportedVersions"] == list(MODERN_PROTOCOL_VERSIONS)
    assert pipe.wire.readline() == ""


def test_what_follows_a_request_for_the_sdk_is_left_to_it(pipe):
    """A client whose request for another version takes too long initializes: two answers would not fit together."""
    pipe.send(discover("2099-01-01"), initialize(), request("tools/list", 1))

    assert pipe.early() == []
    assert pipe.wire.readline() == discover("2099-01-01")
    assert pipe.wire.readline() == initialize()


def test_what_is_not_answered_early_is_answered_by_the_sdk_once(pipe):
    pipe.send(
        initialize(), request("resources/list", 1), '{"jsonrpc": "2.0", "method": "notifications/initialized"}\n'
        '{"jsonrpc": "2.0", "id": 2, "method": "ping"}\n'
    )  # fmt: skip

    def client():
        answers.extend(json.loads(pipe.output.readline()) for _ in range(2))
        pipe.end()

    threads = [threading.Thread(target=pipe.wire.read), threading.Thread(target=client)]
    threads[0].start()
    answers = [json.loads(pipe.output.readline()) for _ in range(2)]  # before anything serves
    threads[1].start()
    asyncio.run(build_server(lambda _request, _now: None).serve_wire(pipe.wire))
    for thread in threads:
        thread.join()

    assert [one.get("id") for one in answers] == [0, 1, None, 2]
    assert answers[1]["result"] == {"resources": []}
    assert answers[2]["method"] == "notifications/resources/list_changed"
    assert answers[3]["result"] == {}


@pytest.mark.parametrize(
    "line",
    [
        "nonsense\n",
        "[]\n",
        "{}\n",
        request("ping"),
        request("tools/list"),
        request("initialize"),
        request(DISCOVER),
        "half",
    ],
)
def test_other_first_lines_are_left_to_the_sdk(pipe, line):
    pipe.send(line)

    assert pipe.early() == []
    assert line in (pipe.wire.readline(), pipe.wire.readline())


def test_the_early_answer_imports_neither_django_nor_the_sdk():
    code = (
        "import sys, memoryhub.mcp.handshake; "
        "print(sorted({'django', 'mcp', 'pydantic', 'anyio', 'asyncio'} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True, timeout=60
    )

    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("number", [None, True, 1.5, [1]])
def test_an_initialize_request_without_a_valid_id_is_left_to_the_sdk(pipe, number):
    line = json.dumps(json.loads(initialize()) | {"id": number}) + "\n"
    pipe.send(line)

    assert pipe.early() == []
    assert pipe.wire.readline() == line
