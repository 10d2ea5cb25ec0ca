"""The reference pages that are made from the code: docs/reference/. ``make reference`` writes them anew.

A test compares what stands there with what this module says, so that no command, route, call or tool is missing.
"""

from __future__ import annotations

import re
from argparse import Action, ArgumentParser, _HelpAction
from collections.abc import Iterator
from pathlib import Path

from django.core.management import get_commands, load_command_class
from django.urls import URLResolver, get_resolver

from tests.whole_site.roles import CALLS, PAGES, TOOLS

ROOT = Path(__file__).resolve().parent.parent
PLACE = ROOT / "docs" / "reference"
MADE = "\n<!-- Made by `make reference`. -->"
EVERYWHERE = {"version", "verbosity", "settings", "pythonpath", "traceback", "no_color", "force_color", "skip_checks"}
COMMANDS = """
Run each as `python3 manage.py COMMAND`; `--help` says the same. Those with `--json` print one JSON document and
nothing else; errors are `{"error": {"code", "message"}}` with exit status 1, wrong arguments end with status 2.
`serve` and `test` make the environment where it is missing.
"""
ROUTES = """
Every address of the pages, with who may see it (GET) and who may send to it (POST), at least. `stranger`: signed
in, without a role there; `owner`: who made the row; `-`: not answered. Addresses of agents are in
[calls.md](calls.md); what the pages are for in [pages.md](../pages.md).
"""
CALLED = """
What agents may call, with the scope that their token needs. [rest.md](../rest.md) and [mcp.md](../mcp.md) say how.
"""


def pages() -> dict[str, str]:
    """Return the text of each reference page by its file name."""
    return {"commands.md": commands_page(), "routes.md": routes_page(), "calls.md": calls_page()}


def commands_page() -> str:
    lines = ["# Commands", MADE, COMMANDS]
    for name in sorted(name for name, app in get_commands().items() if app == "memoryhub"):
        parser = load_command_class("memoryhub", name).create_parser("manage.py", name)
        lines += [f"## {name}", "", parser.description or "", "", *_arguments(parser), ""]
    return "\n".join(lines)


def _arguments(parser: ArgumentParser) -> Iterator[str]:
    yield from ("| argument | meaning |", "| --- | --- |")
    for action in parser._actions:
        if isinstance(action, _HelpAction) or action.dest in EVERYWHERE:
            continue
        yield f"| {_spelling(action)} | {_meaning(action)} |"


def _spelling(action: Action) -> str:
    value = action.metavar or (action.dest.upper() if not action.choices else "|".join(map(str, action.choices)))
    value = value if isinstance(value, str) else " ".join(value)
    if not action.option_strings:
        name = value if action.choices or action.metavar else action.dest.upper()
        return f"`{name}`" + (" (may be left out)" if action.nargs in ("?", "*") else "")
    takes = "" if action.nargs == 0 else f" {value}"
    return f"`{', '.join(action.option_strings)}{takes}`".replace("|", "\\|")


def _meaning(action: Action) -> str:
    text = action.help or ""
    if "%(" in text:
        text = text % {"default": action.default, "prog": "manage.py"}
    if action.default not in (None, "", False, [], ()) and str(action.default) not in text and action.nargs != 0:
        text = f"{text} (default: {action.default})".strip()
    return text.replace("|", "\\|").replace("\n", " ")


def routes_page() -> str:
    lines = ["# Routes", MADE, ROUTES]
    lines += ["| address | name | see | send |", "| --- | --- | --- | --- |"]
    for address, name in sorted(_routes(get_resolver())):
        see, send = PAGES[name]
        lines.append(f"| `{address}` | {name} | {see} | {send} |")
    return "\n".join([*lines, ""])


def _routes(resolver: URLResolver, before: str = "/", namespace: str = "") -> Iterator[tuple[str, str]]:
    """Yield each page's address, with what stands in it in capitals, and its name."""
    for item in resolver.url_patterns:
        address = before + re.sub(r"<(?:\w+:)?(\w+)>", lambda found: found[1].upper(), str(item.pattern))
        if isinstance(item, URLResolver):
            if item.namespace != "api":
                yield from _routes(item, address, f"{item.namespace}:" if item.namespace else namespace)
        elif item.name:
            yield address, namespace + item.name


def calls_page() -> str:
    lines = ["# Calls and tools", MADE, CALLED, "## REST, below `/api/v1`", "", "| call | scope |", "| --- | --- |"]
    lines += [f"| `{call}` | {scope} |" for call, scope in sorted(CALLS.items())]
    lines += ["", "## MCP", "", "| tool | scope |", "| --- | --- |"]
    lines += [f"| `{tool}` | {scope} |" for tool, scope in sorted(TOOLS.items())]
    return "\n".join([*lines, ""])


def write() -> None:
    PLACE.mkdir(exist_ok=True)
    for name, text in pages().items():
        (PLACE / name).write_text(text, encoding="utf-8")
