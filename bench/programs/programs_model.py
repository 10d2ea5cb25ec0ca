"""A scripted model on loopback for agents, with the APIs of Anthropic, OpenAI (Responses and Chat) and Gemini.

A prompt contains ``turn-NAME``. The answer is ``reply-NAME``; if the prompt also says ``with a command``, the model
first calls the program's shell with ``echo result-NAME``. A turn in ``SCRIPTS`` makes those calls first, one after
another (Anthropic's API only). A request for a summary gets ``summary-of-it``.
"""

from __future__ import annotations

import itertools
import json
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from typing import Any

from bench.scripted_model import Server

SHELLS = ("Bash", "bash", "exec_command", "run_shell_command", "shell_command", "shell", "exec", "terminal")
TURN = re.compile(r"turn-(\w+)")
SUMMARY = "summary-of-it"
USAGE = {"input_tokens": 100, "output_tokens": 20}
numbers = itertools.count(1)
Call = tuple[str, dict[str, Any]]  # a tool's name and its arguments
SCRIPTS: dict[str, list[Callable[[str], Call]]] = {}  # by turn: functions of the result before


@dataclass
class Talk:
    """A request: its items in order, as ``(kind, text)`` with the kinds user, assistant, call and result, and its
    tools."""

    items: list[tuple[str, str]] = field(default_factory=list)
    tools: list[str] = field(default_factory=list)

    def answer(self) -> tuple[str, Call | None]:
        """Return the text of the answer, and a tool call or None."""
        places = [place for place, (kind, text) in enumerate(self.items) if kind == "user" and TURN.search(text)]
        last = next((text for kind, text in reversed(self.items) if kind == "user"), "")
        if not TURN.search(last[-400:]) and re.search(r"summary|checkpoint|snapshot", last[-400:], re.IGNORECASE):
            return f"<summary>{SUMMARY}</summary>", None
        if not places:
            return "Hello.", None
        text = self.items[places[-1]][1]
        name = TURN.findall(text)[-1]
        if name in SCRIPTS:
            since = self.items[places[-1] :]
            made = sum(kind == "call" for kind, _ in since)
            result = next((text for kind, text in reversed(since) if kind == "result"), "")
            script = SCRIPTS[name]
            return (result, None) if made == len(script) else ("", script[made](result))
        shell = next((tool for tool in SHELLS if tool in self.tools), "")
        has_called = any(kind == "call" for kind, _ in self.items[places[-1] :])
        if "with a command" in text and shell and not has_called:
            command = f"echo result-{name}"
            key = "cmd" if shell == "exec_command" else "command"
            return "", (shell, {key: command} | ({} if key == "cmd" else {"description": "Print a word"}))
        return f"reply-{name}", None


def text_of(content: Any) -> str:
    if isinstance(content, list):
        return "\n".join(str(part.get("text") or "") for part in content if isinstance(part, dict))
    return content if isinstance(content, str) else ""


def anthropic_talk(body: dict[str, Any]) -> Talk:
    talk = Talk(tools=[str(tool.get("name")) for tool in body.get("tools", [])])
    for message in body.get("messages", []):
        if text := text_of(message["content"]):
            talk.items.append((message["role"], text))
        for part in message["content"] if isinstance(message["content"], list) else ():
            if part.get("type") == "tool_use":
                talk.items.append(("call", ""))
            elif part.get("type") == "tool_result":
                talk.items.append(("result", text_of(part.get("content"))))
    return talk


def responses_talk(body: dict[str, Any]) -> Talk:
    talk = Talk(tools=[str(tool.get("name") or tool.get("type")) for tool in body.get("tools", [])])
    for item in body.get("input", []):
        if item.get("type", "message") == "message":
            role = "assistant" if item.get("role") == "assistant" else "user"
            talk.items.append((role, text_of(item.get("content"))))
        elif str(item.get("type")).endswith("_call"):
            talk.items.append(("call", ""))
    return talk


def chat_talk(body: dict[str, Any]) -> Talk:
    talk = Talk(tools=[str(tool.get("function", {}).get("name")) for tool in body.get("tools") or []])
    for message in body.get("messages", []):
        if message["role"] in ("user", "assistant") and (text := text_of(message.get("content"))):
            talk.items.append((message["role"], text))
        talk.items += [("call", "") for _ in message.get("tool_calls") or []]
    return talk


def gemini_talk(body: dict[str, Any]) -> Talk:
    declared = [one for tool in body.get("tools", []) for one in tool.get("functionDeclarations", [])]
    talk = Talk(tools=[str(one.get("name")) for one in declared])
    for content in body.get("contents", []):
        parts = content.get("parts", [])
        if text := text_of(parts):
            talk.items.append(("user" if content.get("role") == "user" else "assistant", text))
        talk.items += [("call", "") for part in parts if "functionCall" in part]
    return talk


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  the name is the base class's
        """Log nothing."""

    def do_GET(self) -> None:
        self.answer({"data": [], "models": []})

    do_HEAD = do_GET  # noqa: N815  the name that the base class calls

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers.get("Content-Length", 0))) or b"{}")
        if "ountTokens" in self.path or "count_tokens" in self.path:
            self.answer({"input_tokens": 100, "totalTokens": 100})
        elif "enerateContent" in self.path:
            self.answer_gemini(body)
        elif "chat/completions" in self.path:
            self.answer_chat(body)
        elif "responses" in self.path:
            self.answer_responses(body)
        elif "messages" in self.path:
            self.answer_anthropic(body)
        else:
            self.answer({})

    def answer(self, value: Any) -> None:
        data = json.dumps(value).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def stream(self, events: list[dict[str, Any]]) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        for event in events:
            name = f"event: {event['type']}\n" if "type" in event else ""
            self.wfile.write(f"{name}data: {json.dumps(event)}\n\n".encode())
        self.close_connection = True

    def answer_anthropic(self, body: dict[str, Any]) -> None:
        text, call = anthropic_talk(body).answer()
        number = next(numbers)
        block: dict[str, Any] = {"type": "text", "text": text}
        delta: dict[str, Any] = {"type": "text_delta", "text": text}
        if call:
            block = {"type": "tool_use", "id": f"toolu_{number:06d}", "name": call[0], "input": call[1]}
            delta = {"type": "input_json_delta", "partial_json": json.dumps(call[1])}
        stop = "tool_use" if call else "end_turn"
        message = {"id": f"msg_{number:06d}", "type": "message", "role": "assistant", "model": body.get("model")}
        message |= {"stop_sequence": None, "usage": USAGE}
        if not body.get("stream"):
            self.answer(message | {"content": [block], "stop_reason": stop})
            return
        empty = block | ({"input": {}} if call else {"text": ""})
        events: list[dict[str, Any]] = [
            {"type": "message_start", "message": message | {"content": [], "stop_reason": None}},
            {"type": "content_block_start", "index": 0, "content_block": empty},
            {"type": "content_block_delta", "index": 0, "delta": delta},
            {"type": "content_block_stop", "index": 0},
            {"type": "message_delta", "delta": {"stop_reason": stop, "stop_sequence": None}, "usage": USAGE},
            {"type": "message_stop"},
        ]
        self.stream(events)

    def answer_responses(self, body: dict[str, Any]) -> None:
        text, call = responses_talk(body).answer()
        number = next(numbers)
        content = [{"type": "output_text", "text": text, "annotations": []}]
        item: dict[str, Any] = {"type": "message", "id": f"msg_{number:06d}", "role": "assistant", "content": content}
        if call:
            ids = {"id": f"fc_{number:06d}", "call_id": f"call_{number:06d}"}
            item = {"type": "function_call", **ids, "name": call[0], "arguments": json.dumps(call[1])}
        item["status"] = "completed"
        response = {"id": f"resp_{number:06d}", "object": "response", "status": "in_progress", "output": []}
        details = {"input_tokens_details": {"cached_tokens": 0}, "output_tokens_details": {"reasoning_tokens": 0}}
        usage = USAGE | {"total_tokens": 120} | details
        events: list[dict[str, Any]] = [
            {"type": "response.created", "response": response},
            {"type": "response.output_item.added", "output_index": 0, "item": item},
            {"type": "response.output_item.done", "output_index": 0, "item": item},
            {"type": "response.completed", "response": response | {"output": [item], "usage": usage}},
        ]
        self.stream(events)

    def answer_chat(self, body: dict[str, Any]) -> None:
        text, call = chat_talk(body).answer()
        number = next(numbers)
        message: dict[str, Any] = {"role": "assistant", "content": text}
        if call:
            function = {"name": call[0], "arguments": json.dumps(call[1])}
            message["tool_calls"] = [
                {"index": 0, "id": f"call_{number:06d}", "type": "function", "function": function}
            ]
        base = {"id": f"chat_{number:06d}", "created": 0, "model": body.get("model")}
        end = {"index": 0, "finish_reason": "tool_calls" if call else "stop"}
        usage = {"prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120}
        if not body.get("stream"):
            value = base | {"object": "chat.completion", "choices": [end | {"message": message}], "usage": usage}
            self.answer(value)
            return
        chunk = base | {"object": "chat.completion.chunk"}
        first = {"index": 0, "delta": message, "finish_reason": None}
        self.stream([chunk | {"choices": [first]}, chunk | {"choices": [end | {"delta": {}}], "usage": usage}])

    def answer_gemini(self, body: dict[str, Any]) -> None:
        text, call = gemini_talk(body).answer()
        part: dict[str, Any] = {"functionCall": {"name": call[0], "args": call[1]}} if call else {"text": text}
        wants_json = body.get("generationConfig", {}).get("responseMimeType") == "application/json"
        if wants_json:  # the choice of a model, and whether the model should go on
            part = {"text": json.dumps({"model_choice": "flash", "reasoning": "short", "next_speaker": "user"})}
        content = {"role": "model", "parts": [part]}
        usage = {"promptTokenCount": 100, "candidatesTokenCount": 20, "totalTokenCount": 120}
        value = {"candidates": [{"content": content, "finishReason": "STOP", "index": 0}], "usageMetadata": usage}
        if "streamGenerateContent" in self.path:
            self.stream([value])
        else:
            self.answer(value)


@contextmanager
def running_model() -> Iterator[str]:
    """Serve the model during the block; yield its base URL."""
    server = Server(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
