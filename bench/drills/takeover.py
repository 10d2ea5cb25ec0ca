"""Two workers on two machines share a PostgreSQL database: the one with an import is killed, the other finishes it.

    DATABASE_URL=postgres://... python bench/drills/takeover.py [ROUNDS]

Each worker has a MEMORYHUB_HOME and, by `unshare --uts` (Linux, root), a host name of its own, so that only the lease
in the database tells that the other one is gone. Exit status 1 when an import isn't finished, or a check fails.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))
HOME = Path(tempfile.mkdtemp(prefix="memoryhub-takeover-"))
os.environ["MEMORYHUB_HOME"] = str(HOME / "web")
os.environ["MEMORYHUB_SECRET_KEY"] = "shared by all machines"
os.environ["DJANGO_SETTINGS_MODULE"] = "memoryhub.settings"

import django  # noqa: E402

django.setup()

from django.contrib.auth.models import User  # noqa: E402
from django.core.management import call_command  # noqa: E402

from memoryhub.integrity import check_memory  # noqa: E402
from memoryhub.models import Job  # noqa: E402
from memoryhub.sync.import_requests import request_import  # noqa: E402
from sessions_app.models import Session  # noqa: E402

FILES = 300
PATIENCE_SECONDS = 300.0
TAKEN_OVER_WITHIN = 20.0


def start_worker(name: str) -> subprocess.Popen[bytes]:
    """Start a worker as if on a machine of this name."""
    environment = os.environ | {"MEMORYHUB_HOME": str(HOME / name)}
    command = f"hostname {name} && exec {sys.executable} manage.py worker --until-stdin-closes"
    return subprocess.Popen(
        ["unshare", "--uts", "sh", "-c", command], cwd=ROOT, env=environment, stdin=subprocess.PIPE
    )


def write_agent(folder: Path) -> None:
    (folder / "sessions").mkdir(parents=True)
    for number in range(FILES):
        lines = f'{{"_type": "metadata", "key": "cli:{number}"}}\n{{"role": "user", "content": "hello {number}"}}\n'
        (folder / "sessions" / f"cli_{number}.jsonl").write_text(lines)


def wait_for(job: Job, is_there: object, seconds: float = PATIENCE_SECONDS) -> Job:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        job = Job.objects.get(pk=job.pk)
        if is_there(job):  # type: ignore[operator]
            return job
        time.sleep(0.05)
    raise SystemExit(f"BROKEN {job} is {job.status} at {job.steps_done} of {job.steps_total} after {seconds:.0f} s")


def take_over(number: int, user: User, workers: dict[str, subprocess.Popen[bytes]]) -> float:
    """Kill the worker that imports, and return how long the other one needed to take the import over."""
    folder = HOME / f"agent-{number}"
    write_agent(folder)
    job = request_import(path=str(folder), user=user).job
    assert job is not None
    job = wait_for(job, lambda row: row.status == "running" and row.steps_done > 0)
    first = job.lease_owner.partition(":")[0]
    workers[first].send_signal(signal.SIGKILL)
    workers[first].wait()
    killed_at = time.monotonic()
    wait_for(job, lambda row: row.lease_owner and row.lease_owner != job.lease_owner)
    seconds = time.monotonic() - killed_at
    workers[first] = start_worker(first)
    job = wait_for(job, lambda row: not row.is_live)
    print(f"{first} was killed; taken over after {seconds:.1f} s; the import is {job.status}")
    return seconds if job.status == "done" else float("inf")


def main() -> None:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 3
    call_command("migrate", verbosity=0)
    user = User.objects.create_user("soak")
    workers = {name: start_worker(name) for name in ("machine-a", "machine-b")}
    try:
        waits = [take_over(number, user, workers) for number in range(rounds)]
    finally:
        for worker in workers.values():
            worker.kill()
    faults = [str(row) for row in check_memory().broken]
    faults += [f"taken over after {seconds:.0f} s" for seconds in waits if seconds > TAKEN_OVER_WITHIN]
    if Session.objects.count() != rounds * FILES:
        faults.append(f"{Session.objects.count()} sessions, {rounds * FILES} expected")
    for fault in faults[:20]:
        print(f"BROKEN {fault}")
    print("all checks passed" if not faults else f"{len(faults)} faults")
    sys.exit(bool(faults))


if __name__ == "__main__":
    main()
