"""Test the REST API against its OpenAPI description, with valid and invalid calls and tokens of every scope.

    python bench/api_contract.py [SECONDS]        for each scope and for a token with all scopes (default: 60)

It starts a hub of its own. The exit status is 1 if any response is a 5xx or isn't described. The test suite does the
same with a few examples of each call.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from speed.interfaces import ROOT, hub

SETTINGS = Path(__file__).resolve().parent / "schemathesis.toml"


def main(seconds: int) -> int:
    with tempfile.TemporaryDirectory(prefix="memoryhub-contract-") as home:
        os.environ |= {"MEMORYHUB_HOME": home, "DATABASE_URL": "", "DJANGO_SETTINGS_MODULE": "memoryhub.settings"}
        sys.path.insert(0, str(ROOT))
        with hub() as address:
            failed = [
                name for name, token in tokens().items() if not matches_description(address, token, seconds, home)
            ]
    print(f"failed for {', '.join(failed)}" if failed else "all responses match the description")
    return int(bool(failed))


def tokens() -> dict[str, str]:
    """Create a workspace with a session and a document; return a token for each scope and one with all scopes."""
    import django

    django.setup()
    from django.utils import timezone

    from memoryhub.agents.api_tokens import SCOPES, authenticate, issue_token
    from memoryhub.agents.operations import conversations, memory
    from sessions_app.models import Workspace
    from sessions_app.services.audit import Actor, By

    by = By(Actor("person", "bench"), timezone.now())
    workspace = Workspace.objects.create(slug="contract", name="Contract")
    wanted = {"all": list(SCOPES)} | {scope: [scope] for scope in SCOPES}
    made = {
        name: issue_token(workspace, name, scopes, by=by, per_minute=60_000)[1] for name, scopes in wanted.items()
    }
    caller = authenticate(made["all"], via="rest", now=by.at)
    conversations.append(caller, "cli:main", [{"role": "user", "content": "hello"}], now=by.at)
    memory.write_document(caller, "MEMORY.md", "- a fact\n", base=0, now=by.at)
    return made


def matches_description(address: str, token: str, seconds: int, folder: str) -> bool:
    command = [sys.executable, "-m", "schemathesis.cli", "--config-file", str(SETTINGS), "run"]
    command += [f"{address}/api/v1/openapi.json", "-H", f"Authorization: Bearer {token}"]
    command += ["--max-time", str(seconds), "--continue-on-failure", "--warnings", "off"]
    return subprocess.run(command, cwd=folder, check=False).returncode == 0


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if sys.argv[1:] else 60))
