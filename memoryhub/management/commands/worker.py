"""Carry out jobs and runs, and follow agents' folders. `serve` starts one; start more if busy."""

from __future__ import annotations

import logging
import os
import signal
import threading
import time
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.db import connection

from memoryhub.forgetting.cached_texts import follow_erasures
from memoryhub.lib.errors import MemoryHubError
from memoryhub.lib.traces import shut_down
from memoryhub.management.database_ready import prepare_database
from memoryhub.management.restore_guard import in_use
from memoryhub.management.shared_heaps import share_heaps
from memoryhub.models import Process
from memoryhub.processes import registered
from memoryhub.sync.watching import follow_workspaces, followed_workspaces
from memoryhub.worker import carry_out_jobs, carry_out_runs
from sessions_app.services.audit import Actor

SYNC = Actor("sync", "the worker")
PATIENCE_SECONDS = 8.0  # for running steps, once the worker is asked to stop


class Command(BaseCommand):
    help = "Run background jobs until stopped."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--until-stdin-closes",
            action="store_true",
            help="stop when standard input closes, for example because the parent process ended",
        )

    def handle(self, *, until_stdin_closes: bool, **_options: Any) -> None:
        share_heaps()
        logging.disable(logging.INFO)  # a line for each job is noise; failures are still logged
        stopping = threading.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: _stop(stopping))
        if until_stdin_closes:
            threading.Thread(target=_end_with_stdin, args=(stopping,), daemon=True).start()
        try:
            prepare_database()
        except MemoryHubError as error:
            raise CommandError(error.message) from error
        with in_use(connection), registered(Process.Kind.WORKER, also=follow_erasures()):
            loops = [
                threading.Thread(target=loop, args=(stopping,), name=loop.__name__, daemon=True)
                for loop in (carry_out_runs, carry_out_jobs, _follow)
            ]
            for loop in loops:
                loop.start()
            while not stopping.wait(3600):
                pass
            deadline = time.monotonic() + PATIENCE_SECONDS
            for loop in loops:
                loop.join(max(0.0, deadline - time.monotonic()))
        connection.close()
        shut_down()
        if any(loop.is_alive() for loop in loops):
            os._exit(0)  # during a step: the next worker resumes it


def _follow(stopping: threading.Event) -> None:
    follow_workspaces(stopping, followed_workspaces, actor=SYNC)


def _stop(stopping: threading.Event) -> None:
    """Stop after the running steps; at once on the second signal."""
    if stopping.is_set():
        os._exit(1)
    stopping.set()


def _end_with_stdin(stopping: threading.Event) -> None:
    """Stop at the end of standard input, which closes even if the starter was killed."""
    while os.read(0, 1024):  # sys.stdin is locked while a thread reads it, which makes Python abort when it ends
        pass
    stopping.set()
