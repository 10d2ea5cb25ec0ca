"""Compare how soon stdio MCP servers answer: the hub's, and the reference server-memory from npm.

    python bench/speed/mcp_start.py [RUNS]

It needs `npm install @modelcontextprotocol/server-memory` in the current folder, and node; without them, it measures
the hub only. The servers start in turn, RUNS times (default: 7) each, with a hub of its own.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

ROOT = Path(__file__).resolve().parents[2]
MANAGE = [sys.executable, str(ROOT / "manage.py")]
CALLS = {"memoryhub": "memory_list", "server-memory": "read_graph"}
REFERENCE = Path("node_modules/@modelcontextprotocol/server-memory/dist/index.js")
LIMIT = 1.5
CLIENT = {"name": "bench", "version": "1"}
PARAMS = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": CLIENT}


def main(runs: int) -> None:
    with tempfile.TemporaryDirectory(prefix="memoryhub-bench-") as home:
        os.environ |= {"MEMORYHUB_HOME": home, "DATABASE_URL": "", "MEMORY_FILE_PATH": f"{home}/reference.jsonl"}
        os.environ["MEMORYHUB_TOKEN"] = prepare()
        servers = {"memoryhub": [*MANAGE, "mcp_server"]}
        if REFERENCE.exists():
            servers["server-memory"] = ["node", str(REFERENCE)]
        taken: dict[str, list[list[float]]] = {name: [] for name in servers}
        for _ in range(runs):
            for name, command in servers.items():
                taken[name].append(start(command, CALLS[name]))
    medians = {name: [median(column) for column in zip(*rows, strict=True)] for name, rows in taken.items()}
    for name, rows in taken.items():
        first, tools, call = medians[name]
        slowest = max(row[0] for row in rows)
        print(f"{name:14} initialize {first:.2f} s (slowest {slowest:.2f}), tools {tools:.2f} s, a call {call:.2f} s")
    if REFERENCE.exists():
        ratio = medians["memoryhub"][0] / medians["server-memory"][0]
        print(f"initialize: {ratio:.2f} times server-memory (limit: {LIMIT})")


def prepare() -> str:
    """Create a hub with a workspace, and return a token."""
    for arguments in (["migrate", "--verbosity", "0"], ["workspace", "create", "atlas"]):
        subprocess.run([*MANAGE, *arguments], check=True, stdout=subprocess.DEVNULL)
    command = [*MANAGE, "token", "make", "atlas", "bench", "--scopes", "read"]
    printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return next(word for word in printed.split() if word.startswith("mh_"))


def start(command: list[str], tool: str) -> list[float]:
    """Return the seconds from a server's start to its answers to initialize, tools/list and a call of a tool."""
    started = time.monotonic()
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None

        def send(**message: object) -> None:
            process.stdin.write(json.dumps({"jsonrpc": "2.0"} | message) + "\n")
            process.stdin.flush()

        answers, seconds = [], []
        for method, params in (("initialize", PARAMS), ("tools/list", {}), ("tools/call", {"name": tool})):
            send(id=len(answers), method=method, params=params)
            answers.append(json.loads(process.stdout.readline())["result"])
            seconds.append(time.monotonic() - started)
            if method == "initialize":
                send(method="notifications/initialized")
        process.stdin.close()
        process.wait(30)
    if "serverInfo" not in answers[0] or not answers[1].get("tools") or answers[2].get("isError"):
        raise SystemExit(f"{command[-1]} gave a wrong answer.")
    return seconds


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 7)
