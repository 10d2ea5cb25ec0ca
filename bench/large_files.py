"""Measure the time and peak memory of importing and exporting one large session.

    MEMORYHUB_HOME=/tmp/large python bench/large_files.py {nanobot,grip,agterm} 100000

Each step runs in a process of its own and prints its CPU time and the growth of its peak memory.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
STEPS = ("import", "export session", "export workspace")


def write_agent(folder: Path, layout: str, count: int) -> None:
    """Write a folder with one session of ``count`` messages of about 300 characters."""
    rows = [
        {"role": "user" if number % 2 else "assistant", "content": f"message {number} " + "some words " * 25}
        for number in range(count)
    ]
    (folder / "sessions").mkdir(parents=True)
    (folder / "memory").mkdir()
    (folder / "memory" / "MEMORY.md").write_text("- a fact\n")
    if layout == "nanobot":
        head = {"_type": "metadata", "key": "cli:large", "last_consolidated": 0}
        text = "".join(json.dumps(row) + "\n" for row in [head, *rows])
        (folder / "sessions" / "cli_large.jsonl").write_text(text)
    elif layout == "grip":
        value = {"key": "cli:large", "messages": rows, "summary": None, "created_at": 1.0, "updated_at": 1.0}
        (folder / "sessions" / "cli_large.json").write_text(json.dumps(value))
    else:
        entries = [row | {"id": f"e{number}", "type": "message", "tokenCount": 60} for number, row in enumerate(rows)]
        (folder / "large.json").write_text(json.dumps({"sessionId": "large", "entries": entries, "summaries": []}))


def run_step(step: str, folder: Path) -> None:
    import django

    django.setup()
    from django.utils import timezone

    from memoryhub.sync.exporting import write_archive
    from memoryhub.sync.importing import import_workspace
    from sessions_app.models import Session
    from sessions_app.services.audit import Actor, By
    from sessions_app.services.transfer import session_parts

    by = By(Actor("command", "bench"), timezone.now())
    before, started = _peak(), time.process_time()
    if step == "import":
        import_workspace(folder, by=by)
    elif step == "export session":
        for _ in session_parts(Session.objects.latest("pk"))[1]:
            pass
    else:
        with (folder.parent / "out.zip").open("wb") as out:
            write_archive(Session.objects.latest("pk").workspace, "auto", out, by=by)
    print(f"{step:16} {time.process_time() - started:6.1f} s CPU, {_peak() - before:6.0f} MB more at the peak")


def _peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "memoryhub.settings")
    sys.path.insert(0, str(ROOT))
    if len(sys.argv) == 4:
        run_step(sys.argv[3], Path(sys.argv[1]))
        return
    home = Path(os.environ["MEMORYHUB_HOME"])
    folder = home / "agents" / f"large-{sys.argv[1]}"
    write_agent(folder, sys.argv[1], int(sys.argv[2]))
    subprocess.run([sys.executable, ROOT / "manage.py", "migrate", "-v0"], check=True)
    for step in STEPS:
        subprocess.run([sys.executable, __file__, folder, "-", step], check=True)


if __name__ == "__main__":
    main()
