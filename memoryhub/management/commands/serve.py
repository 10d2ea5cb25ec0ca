"""Start the hub: migrate the database, collect static files, run a worker and the web server."""

from __future__ import annotations

import hashlib
import ipaddress
import signal
import socket
import sys
import webbrowser
from argparse import ArgumentParser
from contextlib import nullcontext
from pathlib import Path
from threading import Event
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.contrib.staticfiles.finders import get_finders
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError
from django.db import DatabaseError, connection
from django.db.migrations.executor import MigrationExecutor
from django.utils import timezone

from memoryhub.accounts.setup import issue_setup_token, operator_exists
from memoryhub.backups.in_use_lock import database_label, migration_lock
from memoryhub.forgetting.cached_texts import follow_erasures
from memoryhub.integrity.file_check import check_file
from memoryhub.lib.database.direct_connection import default_is_direct
from memoryhub.lib.database.faults import DAMAGED
from memoryhub.lib.database.migrations import applied_migrations, is_too_old
from memoryhub.management.arguments import port_number, positive_count
from memoryhub.management.http_server import run_server
from memoryhub.management.restore_guard import in_use
from memoryhub.management.serve_address import publish_address
from memoryhub.management.supervisor import keep_running
from memoryhub.models import Process
from memoryhub.processes import registered
from memoryhub.system_checks import TOO_OLD, UPGRADE_FIRST
from sessions_app.services.secret_key import DifferentKey, require_known_key

FILE_CHECK_SECONDS = 3.0  # at most, before each start; a worker checks the whole file once a day
WORKER = [sys.executable, "-m", "django", "worker", "--until-stdin-closes", "--skip-checks"]  # serve ran them


_stopping = Event()


class Command(BaseCommand):
    help = "Start the hub: migrate the database, and run the web server and a worker."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--host", default="127.0.0.1", help="address to listen on (default: %(default)s)")
        parser.add_argument("--port", default=8765, type=port_number, help="port to listen on (default: %(default)s)")
        parser.add_argument(
            "--processes",
            default=1,
            type=positive_count,
            help="web processes; several need PostgreSQL (default: %(default)s)",
        )
        parser.add_argument("--no-worker", action="store_true", help="don't start a worker for background jobs")
        parser.add_argument(
            "--in-container",
            action="store_true",
            help="listen on all addresses inside a container; publish its port only on loopback or behind TLS",
        )
        parser.add_argument("--open", action="store_true", help="open the hub in a browser")

    def handle(self, *, host: str, port: int, no_worker: bool, in_container: bool, **options: Any) -> None:
        if options["processes"] > 1 and connection.vendor == "sqlite":
            raise CommandError("--processes needs PostgreSQL: SQLite has one writer.")
        signal.signal(signal.SIGTERM, _stop)  # uvicorn raises it again after it has stopped
        with _listen(host, port, in_container=in_container) as listener, in_use(connection):
            _refuse_damage()
            applied = _migrate()
            _collect_static_files()
            address = str(settings.MEMORYHUB_URL) if in_container else _address(listener)
            start_page = address if operator_exists() else f"{address}/setup/{issue_setup_token(timezone.now())}/"
            connection.close()
            with publish_address(address), registered(Process.Kind.WEB, also=follow_erasures()):
                self._announce(applied, address, start_page, no_worker=no_worker)
                if options["open"]:
                    webbrowser.open(start_page)
                if _stopping.is_set():  # Python ignores exceptions in some callbacks, such as those of SQLite
                    raise KeyboardInterrupt
                with nullcontext() if no_worker else keep_running(WORKER, folder=settings.BASE_DIR):
                    run_server(listener, processes=options["processes"])
        self.stdout.write("MemoryHub has stopped.")

    def _announce(self, applied: int, address: str, start_page: str, *, no_worker: bool) -> None:
        migrations = f"{applied} migrations applied" if applied else "up to date"
        lines = [
            f"MemoryHub is running at {address}",
            f"  database    {database_label(connection)}, {migrations}",
            f"  worker      {'not started (--no-worker)' if no_worker else 'running'}",
        ]
        if start_page != address:
            minutes = settings.MEMORYHUB_SETUP_MINUTES
            lines.append(
                f"  setup link  {start_page}\n"
                f"              (creates the first account; works once within {minutes} minutes)"
            )
        lines.append("Press Ctrl-C to stop.")
        self.stdout.write("\n".join(lines))
        self.stdout.flush()


def _stop(*_: object) -> None:
    _stopping.set()
    raise KeyboardInterrupt


def _listen(host: str, port: int, *, in_container: bool = False) -> socket.socket:
    """Return a listening socket. Raises CommandError if that is impossible or unsafe.

    This comes first, so that a second start on the same port stops before it touches the database.
    """
    try:
        family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
    except (OSError, UnicodeError) as problem:
        raise CommandError(f"Can't listen on {host} port {port}: {problem}.") from None
    if not ipaddress.ip_address(str(address[0]).partition("%")[0]).is_loopback:
        _refuse_unsafe_exposure(host, in_container=in_container)
    try:
        listener = socket.create_server(address[:2], family=family, backlog=512)
    except PermissionError:
        raise CommandError(
            f"This user isn't allowed to listen on port {port}. Choose one above 1023 with --port."
        ) from None
    except OSError as problem:
        raise CommandError(_listen_error(host, port, problem)) from None
    listener.setsockopt(
        socket.IPPROTO_TCP, socket.TCP_NODELAY, 1
    )  # without this, agents wait 40 ms for each response body
    return listener


def _refuse_unsafe_exposure(host: str, *, in_container: bool) -> None:
    if settings.DEBUG:
        raise CommandError(
            f"MEMORYHUB_DEBUG is on, which would show tracebacks to anybody who can reach {host}. "
            "Turn it off, or listen on 127.0.0.1."
        )
    if urlsplit(settings.MEMORYHUB_URL).scheme != "https" and not in_container:
        raise CommandError(
            f"Other machines could reach {host}, and passwords and memory would be sent unencrypted. Use a TLS proxy "
            "and set MEMORYHUB_URL to its https:// address (docs/deploying.md), or listen on 127.0.0.1."
        )


def _listen_error(host: str, port: int, problem: OSError) -> str:
    with socket.socket() as probe:
        probe.settimeout(1)
        is_in_use = probe.connect_ex(("127.0.0.1", port)) == 0
    if is_in_use:
        return f"Port {port} is in use. Is MemoryHub already running? Choose another port with --port."
    return f"Can't listen on {host} port {port}: {problem.strerror or problem}."


def _refuse_damage() -> None:
    if damage := check_file(FILE_CHECK_SECONDS):
        raise CommandError(f"{DAMAGED.message} ({damage.strip().splitlines()[0]})")


def _migrate() -> int:
    """Apply pending migrations; return their number. Of several hubs that start at once, one does it."""
    try:
        with migration_lock(connection), default_is_direct():
            require_known_key()
            applied = _apply_migrations()
            require_known_key()
    except DifferentKey as problem:
        raise CommandError(problem.message) from problem
    except DatabaseError as problem:
        first_line = str(problem).strip().partition("\n")[0]
        raise CommandError(f"The database ({database_label(connection)}) can't be used: {first_line}") from problem
    return applied


def _apply_migrations() -> int:
    if is_too_old(applied_migrations(connection)):
        raise CommandError(f"{TOO_OLD} {UPGRADE_FIRST}")
    executor = MigrationExecutor(connection)
    plan = executor.migration_plan(executor.loader.graph.leaf_nodes())
    if plan:
        call_command("migrate", interactive=False, verbosity=0)
    return len(plan)


def _collect_static_files() -> None:
    """Collect the static files if any of them changed. In debug mode they are served from their sources."""
    if settings.DEBUG:
        return
    mark = Path(settings.STATIC_ROOT).with_suffix(".collected")
    fingerprint = _static_fingerprint()
    if not mark.exists() or mark.read_text() != fingerprint:
        call_command("collectstatic", interactive=False, verbosity=0)
        mark.write_text(fingerprint)


def _static_fingerprint() -> str:
    digest = hashlib.sha256()
    for finder in get_finders():
        for name, storage in finder.list([]):
            facts = Path(storage.path(name)).stat()
            digest.update(f"{name}\0{facts.st_size}\0{facts.st_mtime_ns}\0".encode())
    return digest.hexdigest()


def _address(listener: socket.socket) -> str:
    """Return the address to open: MEMORYHUB_URL if it names another machine, otherwise that of the socket."""
    public = urlsplit(settings.MEMORYHUB_URL)
    if public.hostname not in {"127.0.0.1", "localhost", "::1"}:
        return str(settings.MEMORYHUB_URL)
    host, port = listener.getsockname()[:2]
    return f"{public.scheme}://{f'[{host}]' if ':' in host else host}:{port}"
