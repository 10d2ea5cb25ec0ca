"""Folders that only some of the machines with workers have."""

from __future__ import annotations

import socket
from datetime import timedelta
from pathlib import Path

from memoryhub.jobs.progress import TryAgain
from memoryhub.models import Job, Process
from memoryhub.processes import live_processes

PAUSES = (timedelta(seconds=1),) * 12  # between attempts of a job that needs a folder; any worker may take it


def is_left_to_others(path: str) -> bool:
    """Return whether a folder or file isn't on this machine, while other machines have live workers."""
    if Path(path).exists():
        return False
    return any(process.host != socket.gethostname() for process in live_processes(Process.Kind.WORKER))


def leave_to_others(job: Job, path: str) -> None:
    """Raise TryAgain if a worker on another machine may have the folder. The last attempt is made anywhere."""
    if job.attempt_count < len(PAUSES) and is_left_to_others(path):
        raise TryAgain(f"{path} isn't on the machine {socket.gethostname()}.")
