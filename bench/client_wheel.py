"""Build the client's wheel, install it in an empty environment, and use it there against a hub.

    python bench/client_wheel.py [FOLDER]         the folder of the wheel (default: dist)

The environment has the wheel and its dependencies only, and neither Django nor the hub's code.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

from speed.interfaces import ROOT, hub

PROGRAM = """
import importlib.util, pathlib, sys
import memoryhub.client
from memoryhub.client import MemoryHub

place = pathlib.Path(memoryhub.client.__file__)
assert pathlib.Path(sys.prefix) in place.parents, place
assert not any(importlib.util.find_spec(name) for name in ("django", "sessions_app", "memoryhub.lib"))
with MemoryHub(sys.argv[1], sys.argv[2]) as client:
    client.append("cli:main", "Which region do we deploy to?")
    client.append("cli:main", [{"type": "message", "role": "assistant", "content": "To eu-west-1."}])
    texts = [message["content"] for message in client.context("cli:main")["messages"]]
assert texts == ["Which region do we deploy to?", "To eu-west-1."], texts
"""


def main(folder: Path) -> None:
    with tempfile.TemporaryDirectory(prefix="memoryhub-client-") as home:
        environment = Path(home) / "venv"
        venv.create(environment, with_pip=True)
        python = environment / "bin" / "python"
        wheel = build(folder, python)
        subprocess.run([python, "-m", "pip", "install", "--quiet", wheel], check=True)
        os.environ |= {"MEMORYHUB_HOME": home, "DATABASE_URL": "", "DJANGO_SETTINGS_MODULE": "memoryhub.settings"}
        sys.path.insert(0, str(ROOT))
        with hub() as address:
            subprocess.run([python, "-I", "-c", PROGRAM, address, token()], check=True, cwd=home)
    print(f"{wheel}: installed without the hub, and appended and read")


def build(folder: Path, python: Path) -> Path:
    """Return the wheel, built in a folder with the pip of an environment."""
    command = [python, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", folder]
    subprocess.run([*command, ROOT / "packaging" / "client"], check=True)
    return max(folder.glob("memoryhub_client-*.whl"), key=lambda path: path.stat().st_mtime)


def token() -> str:
    import django

    django.setup()
    from django.utils import timezone

    from memoryhub.agents.api_tokens import issue_token
    from sessions_app.models import Workspace
    from sessions_app.services.audit import Actor, By

    workspace = Workspace.objects.create(slug="client", name="Client")
    by = By(Actor("person", "bench"), timezone.now())
    return issue_token(workspace, "client", ["read", "append"], by=by)[1]


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "dist").resolve())
