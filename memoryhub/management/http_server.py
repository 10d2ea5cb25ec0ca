"""The web server of `manage.py serve`: uvicorn, with limits on incomplete requests and open files."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import resource
import signal
import socket
import threading
from contextlib import suppress
from typing import Any, ClassVar

import h11
import uvicorn
from django.conf import settings
from django.core.management.base import CommandError
from uvicorn.protocols.http.h11_impl import H11Protocol

from memoryhub.lib.http.proxy_header import PEER
from memoryhub.live.streams import PATH
from memoryhub.management.shared_heaps import share_heaps
from memoryhub.management.web_processes import WebProcesses

HEADER_SECONDS = 10.0  # to receive the headers of a request; memoryhub.asgi limits the time of bodies
MAX_INCOMPLETE = 256  # requests; the oldest is closed for a newer one
MAX_CONNECTIONS = 4_000  # more are answered with 503; half of them may be streams of open pages
OPEN_FILES = 8_192
SHUTDOWN_SECONDS = 5  # for running requests when the hub stops


class LimitedProtocol(H11Protocol):
    """Closes connections that don't send complete requests in time."""

    incomplete: ClassVar[dict[LimitedProtocol, None]] = {}  # oldest first
    timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self.app_state = {**self.app_state, PEER: self.client[0] if self.client else ""}  # before X-Forwarded-For
        self._follow_request()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._follow_request()

    def connection_lost(self, exc: Exception | None) -> None:
        self._complete()
        super().connection_lost(exc)

    def shutdown(self) -> None:
        """Close a stream at once, whose response has no end; let other requests finish."""
        if self.cycle is not None and self.scope["path"] == PATH:
            self.transport.close()
        else:
            super().shutdown()

    def _follow_request(self) -> None:
        if self.conn.their_state is h11.IDLE:
            self.timer = self.timer or self.loop.call_later(HEADER_SECONDS, self._close)
        elif self.timer:
            self.timer.cancel()
            self.timer = None
        if self.conn.their_state not in (h11.IDLE, h11.SEND_BODY):
            self._complete()
            return
        self.incomplete.setdefault(self)
        if len(self.incomplete) > MAX_INCOMPLETE:
            next(iter(self.incomplete))._close()

    def _complete(self) -> None:
        self.incomplete.pop(self, None)
        if self.timer:
            self.timer.cancel()
            self.timer = None

    def _close(self) -> None:
        self._complete()
        self.transport.close()


def raise_open_file_limit() -> int:
    """Raise the soft limit of open files as far as allowed, up to OPEN_FILES; return the limit."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return OPEN_FILES
    wanted = OPEN_FILES if hard == resource.RLIM_INFINITY else min(OPEN_FILES, hard)
    if wanted > soft:
        with suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    return resource.getrlimit(resource.RLIMIT_NOFILE)[0]


def server_config(app: Any, **options: Any) -> uvicorn.Config:
    """Return uvicorn's configuration. Half of the allowed open files are left to the database and other files."""
    return uvicorn.Config(
        app,
        http=LimitedProtocol,
        ws="none",
        log_config=None,
        access_log=False,
        server_header=False,
        limit_concurrency=min(MAX_CONNECTIONS, raise_open_file_limit() // 2),
        timeout_graceful_shutdown=SHUTDOWN_SECONDS,
        **options,
    )


def run_server(listener: socket.socket, *, processes: int = 1) -> None:
    """Serve the hub until it is stopped. Several processes accept connections of the same socket.

    Raises CommandError if web processes can't start, or end again and again.
    """
    is_behind_proxy = settings.MEMORYHUB_URL.startswith("https:")
    if processes > 1:
        child = f"{__name__}:child_application"
        config = server_config(child, factory=True, lifespan="on", proxy_headers=is_behind_proxy, workers=processes)
        served = WebProcesses(config, sockets=[listener])
        served.run()
        if served.failure:
            raise CommandError(f"{served.failure} The messages above say why.")
        return
    share_heaps()
    config = server_config("memoryhub.asgi:application", lifespan="on", proxy_headers=is_behind_proxy)
    with suppress(KeyboardInterrupt):  # raised by Ctrl-C and SIGTERM after the server has stopped
        uvicorn.Server(config).run(sockets=[listener])


def child_application() -> Any:
    """Return the application of one of several web processes, which ends when ``serve`` does, even if that is killed.

    Called by uvicorn in the new process, before Django is set up.
    """
    from memoryhub.asgi import application

    share_heaps()
    threading.Thread(target=_follow_parent, daemon=True).start()
    return application


def _follow_parent() -> None:
    """Register this process until its parent has ended, then stop it."""
    from django.db import DatabaseError

    from memoryhub.forgetting.cached_texts import follow_erasures
    from memoryhub.models import Process
    from memoryhub.processes import registered

    if parent := multiprocessing.parent_process():
        with suppress(DatabaseError), registered(Process.Kind.WEB, also=follow_erasures()):
            parent.join()
        parent.join()
        os.kill(os.getpid(), signal.SIGTERM)
