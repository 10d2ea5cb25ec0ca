"""Compare calls over REST and MCP with direct calls of the functions behind them.

    python bench/speed/interfaces.py [ENTRIES]

It starts a hub of its own on a free port, with one workspace of 100,000 (or ENTRIES) entries and 2,000 observations.
A single client makes one call after another.
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
from itertools import count
from pathlib import Path
from statistics import median, quantiles

ROOT = Path(__file__).resolve().parents[2]
OBSERVATIONS, TALK, BATCH = 2_000, 200, 100
CALLS = {"append 1": 300, "append 100": 60, "context": 300, "recall": 300, "search": 100, "value": 300}
TOOLS = {"recall": "memory_recall", "search": "memory_search", "value": "memory_read"}
QUERIES = [f"harbour {word}" for word in ("tide", "lamp", "crane", "rope", "bell", "quay", "mast", "gull")]
Work = Callable[[int], object]


def main(entries: int) -> None:
    with tempfile.TemporaryDirectory(prefix="memoryhub-bench-") as home:
        os.environ |= {"MEMORYHUB_HOME": home, "DATABASE_URL": "", "DJANGO_SETTINGS_MODULE": "memoryhub.settings"}
        sys.path.insert(0, str(ROOT))
        with hub() as address:
            token = prepare(entries)
            bare = {name: timed(work, CALLS[name]) for name, work in functions(token).items()}
            rest = {name: timed(work, CALLS[name]) for name, work in calls(address, token).items()}
            mcp = asyncio.run(tools(f"{address}/mcp", token))
    print(
        f"{entries:,} entries, SQLite; milliseconds for each call: median (99th percentile), ratio to the direct call"
    )
    for name, taken in bare.items():
        shown = [figures(taken), f"REST {figures(rest[name])} {ratio(rest[name], taken)}"]
        shown += [f"MCP {figures(mcp[name])} {ratio(mcp[name], taken)}"] if name in mcp else []
        print(f"  {name:<11} {'   '.join(shown)}")
    for name, size in (("append 1", 1), ("append 100", BATCH)):
        by_rest, directly = size / median(rest[name]), size / median(bare[name])
        print(f"  entries per second, {name}: REST {by_rest:,.0f}, direct {directly:,.0f}")


@contextmanager
def hub() -> Iterator[str]:
    command = [sys.executable, "manage.py", "serve", "--port", "0", "--no-worker"]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            greeting = "".join(iter(process.stdout.readline, "Press Ctrl-C to stop.\n"))
            found = re.search(r"MemoryHub is running at (\S+)", greeting)
            assert found is not None, "the hub didn't start"
            yield found[1]
        finally:
            process.terminate()
            process.wait(30)


def prepare(entries: int) -> str:
    """Fill a workspace and return a token for it."""
    import django

    django.setup()
    from django.db import connection
    from django.utils import timezone

    from bench.bulk_rows import add_conversations, add_workspaces, update_statistics
    from bench.corpus import Writer
    from knowledge_app.models import Observation
    from knowledge_app.services.rows.key_values import write_value
    from memoryhub.agents.api_tokens import SCOPES, issue_token
    from memoryhub.conversations.appending import record_entries
    from memoryhub.lib.search.index_maintenance import bulk_indexing
    from sessions_app.models import Workspace
    from sessions_app.services.audit import Actor, By
    from sessions_app.services.parsing import read_batch

    add_workspaces(1)
    workspace = Workspace.objects.get()
    by, writer = By(Actor("person", "bench"), timezone.now()), Writer()
    add_conversations(writer, entries)
    said = [
        Observation(workspace=workspace, uid=f"o{n}", category="finding", content=f"{QUERIES[n % 8]} {text}")
        for n, text in enumerate(writer.texts(OBSERVATIONS))
    ]
    with bulk_indexing(connection, Observation._meta.db_table):
        Observation.objects.bulk_create(said, batch_size=500)
    talk = [{"role": ("user", "assistant")[n % 2], "content": text} for n, text in enumerate(writer.texts(TALK))]
    record_entries(workspace, "cli:talk", read_batch(talk, now=by.at), by=by)
    write_value(workspace, "theme", "dark", by=by)
    update_statistics()
    return issue_token(workspace, "bench", list(SCOPES), by=by, per_minute=60_000)[1]


def functions(token: str) -> dict[str, Work]:
    """Return the direct calls: the functions that REST and MCP call once a request is parsed and authenticated."""
    from django.utils import timezone

    from memoryhub.agents.api_tokens import authenticate
    from memoryhub.agents.operations import conversations, knowledge, queries

    now = timezone.now()
    caller = authenticate(token, via="rest", now=now)
    return {
        "append 1": lambda n: conversations.append(caller, "cli:bare", messages(1, n), now=now),
        "append 100": lambda n: conversations.append(caller, "cli:bare", messages(BATCH, n), now=now),
        "context": lambda _: conversations.context_of_key(caller, "cli:talk", now=now),
        "recall": lambda n: knowledge.recall_for(caller, QUERIES[n % 8], now=now),
        "search": lambda n: queries.search(caller, QUERIES[n % 8], now=now),
        "value": lambda _: knowledge.read_value(caller, "theme", now=now),
    }


def calls(address: str, token: str) -> dict[str, Work]:
    """Return the same calls over REST, through the Python client."""
    from memoryhub.client import MemoryHub

    hub = MemoryHub(address, token, timeout=60)
    return {
        "append 1": lambda n: hub.append("cli:rest", messages(1, n)),
        "append 100": lambda n: hub.append("cli:rest", messages(BATCH, n)),
        "context": lambda _: hub.context("cli:talk"),
        "recall": lambda n: hub.recall(QUERIES[n % 8]),
        "search": lambda n: hub.search(QUERIES[n % 8]),
        "value": lambda _: hub.read("theme"),
    }


def messages(size: int, number: int) -> list[dict[str, str]]:
    return [{"role": "user", "content": f"The crane at quay {number} moved {place} crates"} for place in range(size)]


def timed(work: Work, times: int) -> list[float]:
    work(-1)
    taken = []
    for number in range(times):
        began = time.perf_counter()
        work(number)
        taken.append(time.perf_counter() - began)
    return taken


async def tools(address: str, token: str) -> dict[str, list[float]]:
    """Return the times of MCP tool calls, through the SDK's client."""
    import httpx2
    from mcp import Client
    from mcp.client.streamable_http import streamable_http_client

    taken: dict[str, list[float]] = {name: [] for name in TOOLS}
    number = count()
    async with (
        httpx2.AsyncClient(headers={"Authorization": f"Bearer {token}"}, timeout=60) as http,
        Client(streamable_http_client(address, http_client=http)) as client,
    ):
        for name, tool in TOOLS.items():
            for _ in range(CALLS[name]):
                values = {"key": "theme"} if name == "value" else {"query": QUERIES[next(number) % 8]}
                began = time.perf_counter()
                result = await client.call_tool(tool, values)
                taken[name].append(time.perf_counter() - began)
                assert not result.is_error, result.content
    return taken


def figures(taken: list[float]) -> str:
    return f"{median(taken) * 1000:7.1f} ({quantiles(taken, n=100)[-1] * 1000:7.1f})"


def ratio(taken: list[float], bare: list[float]) -> str:
    return f"{median(taken) / median(bare):5.1f}x"


if __name__ == "__main__":
    main(int(sys.argv[1]) if sys.argv[1:] else 100_000)
