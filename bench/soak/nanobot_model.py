"""A scripted model for the real nanobot: it answers its chat requests, streamed or not, and records the prompts."""

from __future__ import annotations

import itertools
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

Message = dict[str, Any]
Reply = Callable[[dict[str, Any]], Message]
_numbers = itertools.count(1)  # nanobot takes calls with the same id for one
USAGE = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}


class Handler(BaseHTTPRequestHandler):
    reply: Reply

    def do_POST(self) -> None:
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        message = type(self).reply(request)
        is_stream = bool(request.get("stream"))
        choice = {"index": 0, "finish_reason": "tool_calls" if message.get("tool_calls") else "stop"}
        choice |= {"delta" if is_stream else "message": message}
        kind = "chat.completion.chunk" if is_stream else "chat.completion"
        text = json.dumps(
            {"id": "c", "object": kind, "created": 1, "model": "m", "choices": [choice], "usage": USAGE}
        )
        data = (f"data: {text}\n\ndata: [DONE]\n\n" if is_stream else text).encode()
        try:
            self.send_response(200)
            self.send_header("Content-Type", "text/event-stream" if is_stream else "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)
        except OSError:  # nanobot was killed while it waited
            self.close_connection = True

    def log_message(self, *_: object) -> None:
        """Log nothing."""


def tool_call(name: str, arguments: dict[str, Any]) -> Message:
    function = {"name": name, "arguments": json.dumps(arguments)}
    call = {"index": 0, "id": f"call-{next(_numbers)}", "type": "function", "function": function}
    return {"role": "assistant", "content": None, "tool_calls": [call]}


@contextmanager
def nanobot_model(reply: Reply) -> Iterator[str]:
    """Serve the model during the block; yield its base URL."""
    server = ThreadingHTTPServer(
        ("127.0.0.1", 0), type("ScriptedHandler", (Handler,), {"reply": staticmethod(reply)})
    )
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v1"
    finally:
        server.shutdown()


def write_config(agent: Path, base_url: str) -> Path:
    """Create nanobot's workspace and its config.json for the model; return the path of the configuration."""
    (agent / "workspace" / "memory").mkdir(parents=True)
    defaults = {"workspace": str(agent / "workspace"), "model": "scripted", "provider": "custom"}
    provider = {"apiBase": base_url, "apiKey": "none"}
    config = agent / "config.json"
    config.write_text(json.dumps({"agents": {"defaults": defaults}, "providers": {"custom": provider}}))
    return config
