"""The one base of all commands: ``--json`` prints one document, expected errors are one sentence."""

from __future__ import annotations

import json
import re
import sys
from abc import abstractmethod
from argparse import ArgumentParser
from pathlib import Path
from typing import Any, NoReturn

from django.core.management.base import BaseCommand, CommandParser

from memoryhub.lib.errors import MemoryHubError
from memoryhub.management.progress_bar import wipe

STOPPED = 130  # the exit status of what Ctrl-C ended
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


def escape_control(text: str) -> str:
    """Show control characters as escapes, so that stored text can't steer a terminal."""
    return _CONTROL.sub(lambda found: f"\\x{ord(found.group()):02x}", text)


def handed_out(text: str, output: str | None) -> dict[str, Any]:
    """Return a text as a command's document, or write it to a file and return its name."""
    if not output:
        return {"text": text}
    Path(output).write_text(text, encoding="utf-8")
    return {"file": output}


class _Parser(CommandParser):
    """Argument errors as JSON when ``--json`` is among the arguments; exit status 2 either way."""

    def error(self, message: str) -> NoReturn:
        if "--json" in sys.argv:
            sys.stdout.write(json.dumps({"error": {"code": "wrong_arguments", "message": message}}) + "\n")
            self.exit(2)
        super().error(message)
        raise SystemExit(2)


class JsonCommand(BaseCommand):
    """A command whose ``run`` returns one JSON document and whose ``show`` prints it for people.

    A MemoryHubError becomes ``{"error": {"code", "message", …}}`` or a sentence on standard error, and exit status 1.
    ``exit_status`` may be raised by ``run`` where the document itself is bad news. Ctrl-C ends it with ``stopped``, a
    sentence on standard error, and exit status 130.
    """

    requires_system_checks: list[str] = []
    exit_status = 0
    stopped = "Stopped."

    def create_parser(self, prog_name: str, subcommand: str, **kwargs: Any) -> CommandParser:
        parser = super().create_parser(prog_name, subcommand, **kwargs)
        parser.__class__ = _Parser
        return parser

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--json", action="store_true", help="print one JSON document and nothing else")

    def handle(self, *_args: Any, **options: Any) -> None:
        result = None
        try:
            result = self.run(**options)
        except MemoryHubError as error:
            self._fail(error, as_json=options["json"])
        except KeyboardInterrupt:
            pass  # told below, when what was being read is closed
        wipe()
        if result is None:
            self.stderr.write(self.stopped)
            sys.exit(STOPPED)
        if options["json"]:
            self.stdout.write(json.dumps(result, ensure_ascii=False, default=str))
        else:
            self.show(result)
        if self.exit_status:
            sys.exit(self.exit_status)

    @abstractmethod
    def run(self, *args: Any, **options: Any) -> dict[str, Any]:
        """Do the work and return the document."""

    @abstractmethod
    def show(self, result: dict[str, Any]) -> None:
        """Print the document for people."""

    def line(self, text: str) -> None:
        self.stdout.write(escape_control(text))

    def _fail(self, error: MemoryHubError, *, as_json: bool) -> NoReturn:
        if as_json:
            document = {"error": {"code": error.code, "message": error.message, **error.details}}
            self.stdout.write(json.dumps(document, ensure_ascii=False, default=str))
        else:
            self.stderr.write(escape_control(error.message))
        sys.exit(1)
