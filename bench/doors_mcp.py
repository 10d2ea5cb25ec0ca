"""What MCP adds to a call: 100 tool calls by HTTP, through the SDK's client, beside the bare functions behind them.

A hub of its own is started on a free port, in a home of its own, and ended afterwards.
"""

from __future__ import annotations

import asyncio
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median, quantiles
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
CALLS = 100
CASES: dict[str, dict[str, Any]] = {
    "memory_read": {"key": "theme"},
    "memory_recall": {"query": "label service"},
    "memory_search": {"query": "label service"},
    "history_append": {"content": "Looked at the label service"},
}


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="memoryhub-bench-") as home:
        os.environ |= {"MEMORYHUB_HOME": home, "DATABASE_URL": "", "DJANGO_SETTINGS_MODULE": "memoryhub.settings"}
        sys.path.insert(0, str(ROOT))
        with _hub() as address:
            token = _prepare()
            bare = {name: _timed(_bare(name, values, token)) for name, values in CASES.items()}
            by_http = asyncio.run(_by_http(f"{address}/mcp", token))
    print(f"{CALLS} calls of each, milliseconds a call: median (of 100, the 95th), SQLite")
    for name in CASES:
        print(f"  {name:15} bare {_figures(bare[name])}   by MCP {_figures(by_http[name])}")


@contextmanager
def _hub() -> Iterator[str]:
    command = [sys.executable, "manage.py", "serve", "--port", "0", "--no-worker"]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            greeting = "".join(iter(process.stdout.readline, "Ctrl-C stops it.\n"))
            found = re.search(r"MemoryHub is at (\S+)", greeting)
            assert found is not None, "the hub didn't start"
            yield found[1]
        finally:
            process.terminate()
            process.wait(30)


def _prepare() -> str:
    """Fill a workspace with a little of everything; return a token for it."""
    import django

    django.setup()
    from django.utils import timezone

    from knowledge_app.services.key_values import write_value
    from knowledge_app.services.observations import Said, store
    from memoryhub.flows.tokens import issue_token
    from sessions_app.models import Workspace
    from sessions_app.services.audit import Actor

    now, actor = timezone.now(), Actor("person", "bench")
    workspace = Workspace.objects.create(slug="bench", name="Bench")
    write_value(workspace, "theme", "dark", actor=actor, now=now)
    said = [Said("finding", f"The label service answers {number * 7919} in {number} ms") for number in range(300)]
    store(workspace, said, actor=actor, now=now, even_if_known=True)
    return issue_token(workspace, "bench", ["read", "append"], actor=actor, now=now, per_minute=60_000)[1]


def _bare(name: str, values: dict[str, Any], token: str) -> Callable[[], object]:
    from django.utils import timezone

    from memoryhub.flows.agents import asking, knowledge, memory
    from memoryhub.flows.tokens import authenticate

    now = timezone.now()
    caller = authenticate(token, via="mcp", now=now)
    functions: dict[str, Callable[[], object]] = {
        "memory_read": lambda: knowledge.read_value(caller, values["key"], now=now),
        "memory_recall": lambda: knowledge.recall_for(caller, values["query"], now=now),
        "memory_search": lambda: asking.search(caller, values["query"], now=now),
        "history_append": lambda: memory.append_history(caller, values["content"], now=now),
    }
    return functions[name]


def _timed(run: Callable[[], object]) -> list[float]:
    run()
    taken = []
    for _ in range(CALLS):
        began = time.perf_counter()
        run()
        taken.append(time.perf_counter() - began)
    return taken


async def _by_http(address: str, token: str) -> dict[str, list[float]]:
    import httpx2
    from mcp import Client
    from mcp.client.streamable_http import streamable_http_client

    taken: dict[str, list[float]] = {}
    async with (
        httpx2.AsyncClient(headers={"Authorization": f"Bearer {token}"}, timeout=30) as http,
        Client(streamable_http_client(address, http_client=http)) as client,
    ):
        for name, values in CASES.items():
            taken[name] = []
            for _ in range(CALLS):
                began = time.perf_counter()
                result = await client.call_tool(name, values)
                taken[name].append(time.perf_counter() - began)
                assert not result.is_error, result.content
    return taken


def _figures(taken: list[float]) -> str:
    return f"{median(taken) * 1000:6.1f} ({quantiles(taken, n=20)[-1] * 1000:6.1f})"


if __name__ == "__main__":
    main()
