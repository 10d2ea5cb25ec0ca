"""Two machines with homes of their own share a PostgreSQL database and a folder of files.

    DATABASE_URL=postgres://... python bench/drills/machines.py

The database must be empty. Each machine has a web process and a worker, with a MEMORYHUB_HOME and, by `unshare --uts`
(Linux, root), a host name of their own. Checked are uploads, exports, tables and backups that one machine stores and
the other reads; that one worker at a time follows a folder, and the other takes over when it is killed; and that a
scheduled backup runs once. With MEMORYHUB_FILES, the files are somewhere else, for example in a bucket. Exit status 1
when a check fails.
"""

from __future__ import annotations

import io
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))
HOME = Path(tempfile.mkdtemp(prefix="memoryhub-machines-"))
os.environ["MEMORYHUB_HOME"] = str(HOME / "drill")
os.environ.setdefault("MEMORYHUB_FILES", str(HOME / "shared"))
os.environ["MEMORYHUB_SECRET_KEY"] = "shared by all machines"
os.environ["MEMORYHUB_QUIET_SECONDS"] = "0.2"
os.environ["DJANGO_SETTINGS_MODULE"] = "memoryhub.settings"

import django  # noqa: E402

django.setup()

from django.contrib.auth.models import User  # noqa: E402
from django.core.files.uploadedfile import SimpleUploadedFile  # noqa: E402
from django.core.management import call_command  # noqa: E402
from django.utils import timezone  # noqa: E402

from bench.drills.person import Person  # noqa: E402
from knowledge_app.models import KnowledgeEntry, MemoryDocument, MemoryRevision  # noqa: E402
from memoryhub.backups import folder as backups  # noqa: E402
from memoryhub.integrity import check_memory  # noqa: E402
from memoryhub.jobs.queue import request_job  # noqa: E402
from memoryhub.models import Job, Process  # noqa: E402
from sessions_app.models import Workspace  # noqa: E402
from sessions_app.services.audit import Actor, By  # noqa: E402

MACHINES = ("machine-a", "machine-b")
PASSWORD = "a long pass phrase"
PATIENCE_SECONDS = 180.0
TAKEN_OVER_WITHIN = 10.0
faults: list[str] = []


def run_as(machine: str, *arguments: str) -> subprocess.Popen[str]:
    """Start a command of manage.py as if on this machine."""
    environment = os.environ | {"MEMORYHUB_HOME": str(HOME / machine)}
    command = f"hostname {machine} && exec {sys.executable} manage.py {' '.join(arguments)}"
    return subprocess.Popen(
        ["unshare", "--uts", "sh", "-c", command],
        cwd=ROOT,
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


class Hub(Person):
    """The web process of a machine, with a signed-in operator."""

    def __init__(self, machine: str) -> None:
        self.process = run_as(machine, "serve", "--no-worker", "--port", "0")
        assert self.process.stdout is not None
        address = ""
        for line in self.process.stdout:
            if found := re.search(r"MemoryHub is running at (\S+)", line):
                address = found[1].rstrip("/")
            if line.startswith("Press Ctrl-C"):
                break
        super().__init__(address, "admin", PASSWORD)


def check(what: str, is_true: object) -> None:
    print(f"{'ok    ' if is_true else 'BROKEN'} {what}", flush=True)
    if not is_true:
        faults.append(what)


def wait_until(what: str, is_true: Callable[[], object], seconds: float = PATIENCE_SECONDS) -> float:
    """Wait until a condition is true, and return how many seconds that took."""
    started_at = time.monotonic()
    while not is_true():
        if time.monotonic() - started_at > seconds:
            raise SystemExit(f"BROKEN after {seconds:.0f} s: {what}")
        time.sleep(0.05)
    return time.monotonic() - started_at


def last_job(kind: str) -> Job:
    wait_until(f"{kind} finished", lambda: Job.objects.filter(kind=kind).exclude(finished_at=None).exists())
    job = Job.objects.filter(kind=kind).latest("id")
    check(f"{kind} is {job.status} {job.error}", job.status == "done")
    return job


def exchange_files(first: Hub, second: Hub) -> None:
    """Store files on the first machine that the second one reads, with a worker on the second one."""
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as packed:
        packed.writestr("agent/memory/MEMORY.md", "# Facts\n\n- tea at four\n")
    upload = SimpleUploadedFile("agent.zip", archive.getvalue())
    first.post("/import/", upload=upload, layout="auto", name="", path="")
    last_job("import")
    workspace = Workspace.objects.get()
    check("upload on the first machine, import by the second", MemoryDocument.objects.exists())

    request_job("export", workspace, {"layout": "hub"}, by=By(Actor("person", "admin"), timezone.now()))
    job = last_job("export")
    got = first.post(f"/work/{job.pk}/download/", f"/work/{job.pk}/")
    check("export by the second machine, download from the first", zipfile.ZipFile(io.BytesIO(got)).testzip() is None)

    admin = "/admin/knowledge_app/knowledgeentry"
    rows = f"workspace,category,content\n{workspace.slug},learned_fact,likes tea\n"
    table = SimpleUploadedFile("rows.csv", rows.encode())
    preview = first.post(f"{admin}/import/", import_file=table, format="0").decode()
    hidden = dict(re.findall(r'name="(import_file_name|original_file_name|format)" value="([^"]*)"', preview))
    second.post(f"{admin}/process_import/", f"{admin}/import/", **hidden)
    check("table previewed by the first machine, imported by the second", KnowledgeEntry.objects.count() == 1)


def exchange_backups(first: Hub, second: Hub) -> None:
    first.post("/backups/make/", "/backups/")
    name = last_job("backup").result["file"]
    for hub in (first, second):
        check(f"the backup is listed by {hub.address}", name in hub.get("/backups/").decode())
    got = [hub.post(f"/backups/{name}/download/", "/backups/") for hub in (first, second)]
    check(f"the same {len(got[0]):,} bytes from both", got[0] == got[1] and len(got[0]) > 1000)
    first.post(f"/backups/{name}/check/", "/backups/")
    check("the backup is verified", last_job("backup_check").result["fault"] == "")


def texts_of(workspace: Workspace) -> str:
    return "".join(MemoryDocument.objects.filter(workspace=workspace).values_list("head__content", flat=True))


def follow_by_turns(workers: dict[str, subprocess.Popen[str]], rounds: int = 3) -> list[float]:
    """Kill the worker that follows a folder; return the seconds until the other one imported the next change."""
    file = HOME / "agent" / "memory" / "MEMORY.md"
    file.parent.mkdir(parents=True)
    file.write_text("# Facts\n\n- first\n")
    call_command("import_workspace", str(file.parent.parent), verbosity=0)
    workspace = Workspace.objects.latest("id")
    Workspace.objects.filter(pk=workspace.pk).update(is_followed=True)
    waits = []
    holder = "machine-b"  # it was started first
    for number in range(rounds):
        _add_line(file, f"- round {number}")
        wait_until("the change is imported", lambda number=number: f"round {number}" in texts_of(workspace))
        workers[holder].send_signal(signal.SIGKILL)
        workers[holder].wait()
        _add_line(file, f"- killed {number}")
        waits.append(wait_until("taken over", lambda number=number: f"killed {number}" in texts_of(workspace)))
        print(f"{holder} was killed; the other worker imported the next change after {waits[-1]:.1f} s", flush=True)
        workers[holder] = start_worker(holder)
        holder = MACHINES[1 - MACHINES.index(holder)]
    count = MemoryRevision.objects.filter(document__workspace=workspace).count()
    check(f"{count} revisions for the first text and {2 * rounds} changes", count == 1 + 2 * rounds)
    return waits


def _add_line(file: Path, line: str) -> None:
    with file.open("a") as out:
        out.write(f"{line}\n")


def start_worker(machine: str) -> subprocess.Popen[str]:
    worker = run_as(machine, "worker", "--until-stdin-closes")
    wait_until(f"{machine} has a worker", lambda: Process.objects.filter(pid=worker.pid, kind="worker").exists())
    return worker


def schedule_once(workers: dict[str, subprocess.Popen[str]]) -> None:
    """Start both workers when a backup is due, and check that one backup is created."""
    for worker in workers.values():
        worker.kill()
        worker.wait()
    for kept in backups.list_backups():
        backups.storage().delete(kept.name)
    old = timezone.now() - timedelta(days=3)
    backups.update_state(watched_since=old.isoformat(), failed_at="")
    Job.objects.filter(kind="backup").update(finished_at=old)
    known = set(Job.objects.filter(kind="backup").values_list("pk", flat=True))
    workers |= {machine: run_as(machine, "worker", "--until-stdin-closes") for machine in MACHINES}
    new = Job.objects.filter(kind="backup", status="done").exclude(pk__in=known)
    wait_until("a scheduled backup", new.exists)
    time.sleep(5)
    check(f"{len(backups.list_backups())} scheduled backup", len(backups.list_backups()) == 1)


def main() -> None:
    call_command("migrate", verbosity=0)
    User.objects.create_superuser("admin", password=PASSWORD)
    workers: dict[str, subprocess.Popen[str]] = {}
    hubs: list[Hub] = []
    try:
        hubs = [Hub(machine) for machine in MACHINES]
        workers["machine-b"] = start_worker("machine-b")
        exchange_files(*hubs)
        exchange_backups(*hubs)
        workers["machine-a"] = start_worker("machine-a")
        waits = follow_by_turns(workers)
        check(f"taken over within {TAKEN_OVER_WITHIN:.0f} s", max(waits) < TAKEN_OVER_WITHIN)
        schedule_once(workers)
        check("check_memory", not check_memory().broken)
    finally:
        for process in [*workers.values(), *(hub.process for hub in hubs)]:
            process.kill()
    print("all checks passed" if not faults else f"{len(faults)} faults")
    sys.exit(bool(faults))


if __name__ == "__main__":
    main()
