"""The base class of the commands: ``--json`` prints one JSON document, and expected errors are one sentence."""

from __future__ import annotations

import json
import re
import sys
from abc import abstractmethod
from pathlib import Path
from typing import Any, NoReturn

from django.core.management.base import BaseCommand, CommandParser

from memoryhub.lib.database.faults import fault_of
from memoryhub.lib.errors import MemoryHubError
from memoryhub.management.arguments import explain_errors
from memoryhub.management.database_ready import run_on_ready_database
from memoryhub.management.progress_bar import clear

STOPPED = 130  # exit status after Ctrl-C
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


def escape_control(text: str) -> str:
    """Escape control characters, so that stored text can't control the terminal."""
    return _CONTROL.sub(lambda found: f"\\x{ord(found.group()):02x}", text)


def output_document(text: str, output: str | None) -> dict[str, Any]:
    """Return a document with the text, or write it to the file ``output`` and return its name."""
    if not output:
        return {"text": text}
    Path(output).write_text(text, encoding="utf-8")
    return {"file": output}


class JsonParser(CommandParser):
    """Prints argument errors as JSON if ``--json`` is given. The exit status is 2 either way."""

    def error(self, message: str) -> NoReturn:
        if "--json" in sys.argv:
            sys.stdout.write(json.dumps({"error": {"code": "wrong_arguments", "message": message}}) + "\n")
            self.exit(2)
        super().error(message)
        raise SystemExit(2)


class JsonCommand(BaseCommand):
    """A command whose ``run`` returns a JSON document, which ``show`` prints as text.

    A MemoryHubError is printed as ``{"error": {"code", "message", …}}``, or as a sentence on standard error; the exit
    status is 1. On a new database, the tables are created first. ``run`` may set ``exit_status``. After Ctrl-C,
    ``stopped`` is printed on standard error, and the exit status is 130.
    """

    requires_system_checks: list[str] = []
    exit_status = 0
    stopped = "Stopped."

    def create_parser(self, prog_name: str, subcommand: str, **kwargs: Any) -> CommandParser:
        parser = super().create_parser(prog_name, subcommand, **kwargs)
        parser.__class__ = JsonParser
        parser.add_argument("--json", action="store_true", help="print one JSON document and nothing else")
        explain_errors(parser)
        return parser

    def handle(self, *_args: Any, **options: Any) -> None:
        result = None
        try:
            result = run_on_ready_database(lambda: self.run(**options))
        except MemoryHubError as error:
            self._fail(error, as_json=options["json"])
        except Exception as error:
            fault = fault_of(error)
            if fault is None:
                raise
            self._fail(MemoryHubError(fault.message, code=fault.code), as_json=options["json"])
        except KeyboardInterrupt:
            pass  # reported below, after open files are closed
        clear()
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
        """Print the document as text."""

    def line(self, text: str) -> None:
        self.stdout.write(escape_control(text))

    def _fail(self, error: MemoryHubError, *, as_json: bool) -> NoReturn:
        if as_json:
            document = {"error": {"code": error.code, "message": error.message, **error.details}}
            self.stdout.write(json.dumps(document, ensure_ascii=False, default=str))
        else:
            self.stderr.write(escape_control(error.message))
        sys.exit(1)
