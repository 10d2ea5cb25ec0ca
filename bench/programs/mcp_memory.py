"""Check that a model remembers over MCP, with Claude Code as the client and a scripted model.

    python bench/programs/mcp_memory.py [--tools FOLDER]

It needs Node.js; npm installs Claude Code in FOLDER if it isn't there. Each turn is a new session of Claude Code,
whose model has the hub's tools only: it remembers a preference, recalls it, corrects it, and tries to change and to
withdraw a fact that a person pinned. The exit status is 1 if one of these ended in another way.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "bench")]
PINNED, CHANGED = "- Deploys go to eu-west-1.", "- Deploys go to us-east-1."
PREFERENCE, CORRECTED = "The user prefers tabs over spaces.", "The user prefers four spaces over tabs."


def call(tool: str, **arguments: Any) -> tuple[str, dict[str, Any]]:
    return f"mcp__memory__memory_{tool}", arguments


def first_id(result: str) -> int:
    """Return the id of the first hit in a result of memory_recall."""
    found = re.search(r'"id":\s*(\d+)|\bid (\d+)|#(\d+)', result)
    assert found is not None, result
    return int(next(filter(None, found.groups())))


def script() -> dict[str, list[Callable[[str], tuple[str, dict[str, Any]]]]]:
    """Return the calls of each turn. The ids come from what the model recalled."""
    preference, deploys = call("recall", query="tabs or spaces"), call("recall", query="where do deploys go")
    new = CHANGED.removeprefix("- ")
    return {
        "remember": [lambda _: call("remember", content=PREFERENCE, category="preference")],
        "recall": [lambda _: preference],
        "correct": [
            lambda _: preference,
            lambda result: call("correct", kind="finding", id=first_id(result), text=CORRECTED),
        ],
        "again": [lambda _: preference],
        "replace": [lambda _: call("line_replace", old=PINNED, new=CHANGED)],
        "change": [
            lambda _: deploys,
            lambda result: call("correct", kind="fact", id=first_id(result), text=new),
        ],
        "withdraw": [lambda _: deploys, lambda result: call("withdraw", kind="fact", id=first_id(result))],
    }


def prepare() -> str:
    """Create a workspace with a pinned fact; return an agent's token for it."""
    import django

    django.setup()
    from django.utils import timezone

    from knowledge_app.models import Fact
    from knowledge_app.services.documents.editing import save_text, start_document
    from memoryhub.agents.api_tokens import issue_token
    from sessions_app.models import Workspace
    from sessions_app.services.audit import Actor, By

    workspace = Workspace.objects.create(slug="atlas", name="Atlas")
    by = By(Actor("person", "bench"), timezone.now())
    document = start_document(workspace, "MEMORY.md")
    save_text(document, f"# Memory\n\n{PINNED}\n", base_number=0, by=by, reason="edited")
    assert Fact.objects.update(pinned=True) == 1
    return issue_token(workspace, "claude", ["read", "append", "edit"], by=by)[1]


def ask(claude: Path, home: Path, model: str, servers: dict[str, Any], turn: str) -> str:
    """Have Claude Code answer one prompt in a session of its own; return its answer."""
    env = {"ANTHROPIC_BASE_URL": model, "ANTHROPIC_API_KEY": "none", "DISABLE_AUTOUPDATER": "1", "IS_SANDBOX": "1"}
    env |= {"HOME": str(home), "PATH": os.environ["PATH"], "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1"}
    only = [
        "--strict-mcp-config",
        "--mcp-config",
        json.dumps({"mcpServers": servers}),
        "--allowedTools",
        "mcp__memory",
    ]
    done = subprocess.run(
        [str(claude), "-p", f"turn-{turn}", *only],
        cwd=home,
        env=env,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=300,
    )
    return done.stdout if done.returncode == 0 else f"exit status {done.returncode}: {done.stderr or done.stdout}"


def faults(answers: dict[str, str]) -> list[str]:
    from knowledge_app.models import MemoryDocument, Observation

    found = [
        f"{turn}: {answers[turn]}"
        for turn, text in (("recall", PREFERENCE), ("again", CORRECTED))
        if text not in answers[turn]
    ]
    if PREFERENCE in answers["again"]:
        found.append("the old preference was recalled after its correction")
    kept = list(Observation.objects.filter(withdrawn_at=None).values_list("content", flat=True))
    if kept != [CORRECTED]:
        found.append(f"observations: {kept}")
    head = MemoryDocument.objects.select_related("head").get().head.content
    if PINNED not in head or CHANGED in head:
        found.append(f"the pinned fact was changed: {head}")
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tools", type=Path, help="where npm installed Claude Code")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="memoryhub-mcp-") as place:
        os.environ |= {"MEMORYHUB_HOME": place, "DATABASE_URL": "", "DJANGO_SETTINGS_MODULE": "memoryhub.settings"}
        from speed.interfaces import hub

        from bench.programs.programs_model import SCRIPTS, running_model

        tools, home = options.tools or Path(place) / "tools", Path(place) / "claude"
        claude = tools / "node_modules" / ".bin" / "claude"
        if not claude.exists():
            command = ["npm", "install", "--no-audit", "--no-fund", "--prefix", str(tools)]
            subprocess.run([*command, "@anthropic-ai/claude-code"], check=True, capture_output=True)
        home.mkdir()
        SCRIPTS.update(script())
        with hub() as address, running_model() as model:
            headers = {"Authorization": f"Bearer {prepare()}"}
            servers = {"memory": {"type": "http", "url": f"{address}/mcp", "headers": headers}}
            answers = {turn: ask(claude, home, model, servers, turn) for turn in SCRIPTS}
            found = faults(answers)
    for turn, answer in answers.items():
        print(f"{turn}: {' '.join(answer.split())[:160]}")
    print("\n".join(found) or "ok")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
