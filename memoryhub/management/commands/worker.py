"""Run background jobs, compressions and webhooks, follow agents' folders. `serve` starts one; start more if busy."""

from __future__ import annotations

import logging
import signal
import sys
import threading
import time
from argparse import ArgumentParser
from typing import Any

from django.core.management import call_command
from django.core.management.base import BaseCommand
from django.db import connection
from django.utils import timezone

from memoryhub.backups.folder import keep_backups
from memoryhub.jobs.heartbeat_files import working
from memoryhub.management.restore_guard import in_use
from memoryhub.sync.import_requests import close_interrupted_imports
from memoryhub.sync.watching import follow_workspaces, followed_workspaces
from memoryhub.worker import look_after, look_after_jobs
from sessions_app.services.audit import Actor

LAST_SYNC_SECONDS = 3.0  # for the syncs at hand
SYNC = Actor("sync", "the worker")
PATIENCE_SECONDS = 8.0  # for the job at hand, once the worker is told to end


class Command(BaseCommand):
    help = "Run background jobs until stopped."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--until-stdin-closes",
            action="store_true",
            help="stop when standard input closes, for example because the parent process ended",
        )

    def handle(self, *, until_stdin_closes: bool, **_options: Any) -> None:
        with in_use(connection), working():
            self._work(until_stdin_closes=until_stdin_closes)

    def _work(self, *, until_stdin_closes: bool) -> None:
        if connection.vendor == "sqlite":  # the one worker there is; on PostgreSQL another may be at it
            close_interrupted_imports(timezone.now())
        if until_stdin_closes:
            threading.Thread(target=_end_with_stdin, daemon=True).start()
        logging.disable(logging.INFO)  # a line for each job is noise; failures are still told
        logging.getLogger("django_tasks_db").addFilter(_is_no_farewell)
        stopping = threading.Event()
        threading.Thread(target=look_after, args=(stopping,), name="upkeep", daemon=True).start()
        jobs = threading.Thread(target=look_after_jobs, args=(stopping,), name="jobs", daemon=True)
        jobs.start()
        threading.Thread(target=keep_backups, args=(stopping,), name="backups", daemon=True).start()
        following = threading.Thread(target=_follow, args=(stopping,), name="follow", daemon=True)
        following.start()
        try:
            call_command("db_worker", queue_name="*", reload=False)
        finally:
            stopping.set()
            following.join(LAST_SYNC_SECONDS)
            jobs.join(LAST_SYNC_SECONDS)


def _follow(stopping: threading.Event) -> None:
    follow_workspaces(stopping, followed_workspaces, actor=SYNC)


def _is_no_farewell(record: logging.LogRecord) -> bool:
    return not str(record.msg).startswith("Received")


def _end_with_stdin() -> None:
    """Wait for the end of standard input, then end this process: kindly at first, then in the middle of a job.

    The starter may have been killed without a word. Its end of the pipe closes all the same, on every system.
    """
    sys.stdin.buffer.read()
    main_thread = threading.main_thread().ident or 0
    signal.pthread_kill(main_thread, signal.SIGTERM)  # sent to that thread, it also wakes it from its sleep
    time.sleep(PATIENCE_SECONDS)
    signal.pthread_kill(main_thread, signal.SIGTERM)
