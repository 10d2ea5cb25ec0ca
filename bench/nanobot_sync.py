"""Test two-way sync with the real nanobot and a scripted model on loopback.

    python bench/nanobot_sync.py PYTHON_WITH_NANOBOT        (an environment with nanobot-ai 0.1.4.post6)

It checks that a turn of the agent appears in the hub; that an edit of MEMORY.md in the hub is in nanobot's next
prompt; and that when the agent saves a memory based on the text from before an edit, the file has both changes. It
prints how long each step took; the exit status is 1 if any of them failed.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))
HOME = tempfile.mkdtemp(prefix="memoryhub-nanobot-")
os.environ["MEMORYHUB_HOME"] = f"{HOME}/hub"
os.environ["DJANGO_SETTINGS_MODULE"] = "memoryhub.settings"

import django  # noqa: E402

django.setup()

from django.core.management import call_command  # noqa: E402
from django.utils import timezone  # noqa: E402

from knowledge_app.models import MemoryDocument  # noqa: E402
from knowledge_app.services.documents.editing import save_text  # noqa: E402
from memoryhub.sync.importing import import_workspace  # noqa: E402
from sessions_app.models import Entry, Workspace  # noqa: E402
from sessions_app.services.audit import Actor, By  # noqa: E402

PERSON = Actor("person", "bench")
PATIENCE_SECONDS = 20.0
MEMORY = "# Long-term Memory\n\n- likes tea\n- works at the harbour\n- has a boat\n"


class Model(BaseHTTPRequestHandler):
    """Answers each request with the next reply of the script, and records the prompts."""

    prompts: list[dict[str, Any]] = []
    script: list[Callable[[], dict[str, Any]]] = []

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.prompts.append(asked)
        message = self.script.pop(0)() if self.script else {"role": "assistant", "content": "Noted."}
        is_stream = bool(asked.get("stream"))
        choice = {"index": 0, "finish_reason": "tool_calls" if message.get("tool_calls") else "stop"}
        choice |= {"delta" if is_stream else "message": message}
        usage = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
        kind = "chat.completion.chunk" if is_stream else "chat.completion"
        body = {"id": "c", "object": kind, "created": 1, "model": "m", "choices": [choice], "usage": usage}
        text = json.dumps(body)
        data = (f"data: {text}\n\ndata: [DONE]\n\n" if is_stream else text).encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream" if is_stream else "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: object) -> None:
        pass


def main() -> None:
    python = sys.argv[1]
    server = ThreadingHTTPServer(("127.0.0.1", 0), Model)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    agent = prepare(server.server_port)
    call_command("migrate", verbosity=0, skip_checks=True)
    workspace = import_workspace(agent, by=By(PERSON, timezone.now()), name="nanobot").workspace
    Workspace.objects.filter(pk=workspace.pk).update(write_back=True)
    follower = subprocess.Popen([sys.executable, "manage.py", "sync", "nanobot", "--watch"], cwd=ROOT)
    try:
        time.sleep(5)  # until it watches the folder
        faults = [*turn_shows_up(python, agent), *edit_reaches_prompt(python, agent), *both_at_once(python, agent)]
    finally:
        follower.terminate()
        follower.wait(20)
        server.shutdown()
    print("all steps passed" if not faults else f"FAILED: {'; '.join(faults)}")
    sys.exit(bool(faults))


def prepare(port: int) -> Path:
    agent = Path(HOME) / "agent"
    (agent / "workspace" / "memory").mkdir(parents=True)
    (agent / "workspace" / "memory" / "MEMORY.md").write_text(MEMORY)
    defaults = {"workspace": str(agent / "workspace"), "model": "scripted", "provider": "custom"}
    provider = {"apiBase": f"http://127.0.0.1:{port}/v1", "apiKey": "none"}
    config = {"agents": {"defaults": defaults}, "providers": {"custom": provider}}
    (agent / "config.json").write_text(json.dumps(config))
    return agent


def say(python: str, agent: Path, text: str) -> None:
    command = [python, "-m", "nanobot", "agent", "-c", str(agent / "config.json"), "-m", text]
    environment = os.environ | {"HOME": str(agent)}
    environment.pop("DJANGO_SETTINGS_MODULE")
    done = subprocess.run(command, cwd=agent, env=environment, capture_output=True, text=True, timeout=120)
    if done.returncode:
        raise SystemExit(f"nanobot failed: {done.stdout[-500:]} {done.stderr[-2000:]}")


def wait_for(what: str, is_so: Callable[[], bool]) -> list[str]:
    started = time.perf_counter()
    while not is_so():
        if time.perf_counter() - started > PATIENCE_SECONDS:
            return [what]
        time.sleep(0.02)
    print(f"{what}: {time.perf_counter() - started:.2f} s")
    return []


def edit(old: str, new: str) -> None:
    document = MemoryDocument.objects.select_related("head").get(name="MEMORY.md")
    head = document.head
    if head is None:
        raise SystemExit("the memory document has no text")
    text = head.content.replace(old, new)
    save_text(document, text, base_number=head.number, by=By(PERSON, timezone.now()), reason="bench")


def turn_shows_up(python: str, agent: Path) -> list[str]:
    say(python, agent, "the tide turns at noon")
    return wait_for(
        "a turn is in the hub after nanobot ended",
        lambda: Entry.objects.filter(content__contains="the tide turns at noon").exists(),
    )


def edit_reaches_prompt(python: str, agent: Path) -> list[str]:
    file = agent / "workspace" / "memory" / "MEMORY.md"
    edit("- likes tea", "- likes coffee, corrected by a person")
    faults = wait_for("an edit in the hub is in the file", lambda: "likes coffee" in file.read_text())
    say(python, agent, "what do I like?")
    prompt = json.dumps(Model.prompts[-1])
    print(f"nanobot's next prompt has the correction: {'likes coffee' in prompt}")
    return faults + ([] if "likes coffee" in prompt else ["the correction is in the prompt"])


def both_at_once(python: str, agent: Path) -> list[str]:
    """The agent saves a text based on the file from before a person's edit."""
    file = agent / "workspace" / "memory" / "MEMORY.md"
    made_before = file.read_text() + "- learnt by the agent\n"

    def late_write() -> dict[str, Any]:
        edit("- has a boat", "- has two boats, corrected by a person")
        wait_for(
            "a second edit is in the file while the agent waits for its model",
            lambda: "two boats" in file.read_text(),
        )
        arguments = json.dumps({"path": str(file), "content": made_before})
        function = {"name": "write_file", "arguments": arguments}
        call = {"index": 0, "id": "c1", "type": "function", "function": function}
        return {"role": "assistant", "content": None, "tool_calls": [call]}

    Model.script = [late_write]
    say(python, agent, "remember this")
    return wait_for(
        "both are in the file after nanobot ended",
        lambda: all(words in file.read_text() for words in ("two boats", "likes coffee", "learnt by the agent")),
    )


if __name__ == "__main__":
    main()
