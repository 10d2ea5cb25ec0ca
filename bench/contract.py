"""The API against its own description, for as long as one likes: every answer to every scope, right and wrong calls.

    python bench/contract.py [SECONDS]        for each scope, and for a token that has them all (default 60)

A hub of its own is started; exit status 1 where an answer is a 5xx, or none that the description names. The tests do
the same with a few examples of each call.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from doors import ROOT, hub

from sessions_app.services.audit import By

SETTINGS = Path(__file__).resolve().parent / "schemathesis.toml"


def main(seconds: int) -> int:
    with tempfile.TemporaryDirectory(prefix="memoryhub-contract-") as home:
        os.environ |= {"MEMORYHUB_HOME": home, "DATABASE_URL": "", "DJANGO_SETTINGS_MODULE": "memoryhub.settings"}
        sys.path.insert(0, str(ROOT))
        with hub() as address:
            failed = [name for name, token in tokens().items() if not fits(address, token, seconds, home)]
    print(f"failed for {', '.join(failed)}" if failed else "every answer is as described")
    return int(bool(failed))


def tokens() -> dict[str, str]:
    """Return a token of each scope and one of all, for a workspace with a session and a document."""
    import django

    django.setup()
    from django.utils import timezone

    from memoryhub.agents.operations import conversations, memory
    from memoryhub.agents.tokens import SCOPES, authenticate, issue_token
    from sessions_app.models import Workspace
    from sessions_app.services.audit import Actor

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


def fits(address: str, token: str, seconds: int, folder: str) -> bool:
    command = [sys.executable, "-m", "schemathesis.cli", "--config-file", str(SETTINGS), "run"]
    command += [f"{address}/api/v1/openapi.json", "-H", f"Authorization: Bearer {token}"]
    command += ["--max-time", str(seconds), "--continue-on-failure", "--warnings", "off"]
    return subprocess.run(command, cwd=folder, check=False).returncode == 0


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if sys.argv[1:] else 60))
