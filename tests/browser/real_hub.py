"""A hub running in separate processes."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

from django.conf import settings


class RealHub:
    """A hub started with ``serve``, including its worker unless ``options`` leave it out."""

    def __init__(self, home: Path, *options: str) -> None:
        self.home, self.options, self.address, self.setup = home, options, "", ""
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("MEMORYHUB_", "DATABASE"))}
        own = {
            "MEMORYHUB_HOME": str(home),
            "MEMORYHUB_SECRET_KEY": settings.SECRET_KEY,  # for commands in the tests' process
            "DJANGO_SETTINGS_MODULE": "memoryhub.settings",
        }
        self.environment = kept | own
        self.port = "0"  # any free port; the same after a restart

    def start(self) -> None:
        command = [sys.executable, "manage.py", "serve", "--port", self.port, *self.options]
        self.process = subprocess.Popen(command, env=self.environment, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.address = (re.findall(r"MemoryHub is running at (\S+)", line) or [self.address])[0]
            self.setup = (re.findall(r"setup link\s+(\S+)", line) or [self.setup])[0]
            if line.startswith("Press Ctrl-C"):
                self.port = self.address.rpartition(":")[2]
                return
        raise AssertionError("the hub didn't start")

    def stop(self) -> None:
        self.process.send_signal(signal.SIGTERM)
        self.process.communicate(timeout=30)
