"""A scripted model on loopback with OpenAI's API, for benchmarks and soak tests."""

from __future__ import annotations

import json
import random
import re
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

TEXT = "the label service was looked at its queue had been read and an answer about replicas was given"
WORDS = TEXT.split()
BAD = ["I'm sorry, I can't help with that.", "", "TODO", "word " * 200_000]


class Handler(BaseHTTPRequestHandler):
    """Answers with a summary of the requested size; sometimes with a bad one, an error, or not at all."""

    protocol_version = "HTTP/1.1"
    delay_seconds = 0.0
    share_of_bad = 0.0

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  the name is the base class's
        """Log nothing."""

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        time.sleep(self.delay_seconds * random.uniform(0.2, 2))
        if random.random() < self.share_of_bad:
            kind = random.randrange(len(BAD) + 2)
            if kind == len(BAD):
                self.answer(502, b"<h1>Bad gateway</h1>")
                return
            if kind > len(BAD):
                self.close_connection = True
                return
            text = BAD[kind]
        else:
            text = summary(asked["messages"])
        message: dict[str, Any] = {"role": "assistant", "content": text}
        if "tools" in asked and text not in BAD:
            message = saved_memory(asked["messages"][1]["content"])
        reply = {
            "model": asked["model"],
            "choices": [{"index": 0, "finish_reason": "stop", "message": message}],
            "usage": {
                "prompt_tokens": len(asked["messages"][1]["content"]) // 4,
                "completion_tokens": len(text) // 4,
            },
        }
        self.answer(200, json.dumps(reply).encode())

    def answer(self, status: int, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


class Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Log nothing: the client may have been killed."""


def summary(messages: list[dict[str, str]]) -> str:
    """Return a text of about the requested size."""
    found = re.search(r"about (\d+) tokens", messages[0]["content"])
    size = int(found.group(1)) * 3 if found else 200
    return " ".join(random.choice(WORDS) for _ in range(max(20, size // 5)))


def saved_memory(asked: str) -> dict[str, Any]:
    """Return a save_memory call: the memory of the request with one fact about the conversation added."""
    mark = asked.split("\n")[1]
    memory = asked.split(f"{mark}\n")[1].removesuffix("\n")
    topic = re.search(r"topic-\S+", asked.partition("The conversation:")[2])
    fact = f"- {topic.group() if topic else f'number {random.randrange(10**9)}'} was talked about"
    lines = [] if memory == "(empty)" else memory.split("\n")
    update = "\n".join([*lines, *([] if fact in lines else [fact])])
    arguments = json.dumps({"history_entry": "[2026-04-01 12:00] They talked.", "memory_update": update})
    function = {"name": "save_memory", "arguments": arguments}
    return {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": "c", "type": "function", "function": function}],
    }


@contextmanager
def running_model(*, delay_seconds: float = 0.0, share_of_bad: float = 0.0) -> Iterator[str]:
    """Serve the model during the block; yield its base URL."""
    behaviour = {"delay_seconds": delay_seconds, "share_of_bad": share_of_bad}
    server = Server(("127.0.0.1", 0), type("ScriptedHandler", (Handler,), behaviour))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/v1"
    finally:
        server.shutdown()
        server.server_close()
