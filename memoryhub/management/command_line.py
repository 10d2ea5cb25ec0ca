"""The command line of manage.py. Its help lists the hub's commands by group, with a line for each."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from textwrap import wrap

from django.core.management import ManagementUtility, get_commands

from memoryhub.lib.traces import shut_down

WIDTH = 79
GROUPS = {
    "Run the hub": {
        "serve": "Start the hub: the web server and a worker",
        "worker": "Run background jobs, if serve runs without a worker",
        "demo": "Create and import the demo",
        "attention": "List what needs attention",
        "work": "List, show or cancel background jobs",
        "settings": "Show the hub's settings",
        "secret_key": "Check or change the hub's secret key",
    },
    "Import, export and sync": {
        "import": "Import an agent's folder, an AgTerm export or an archive",
        "import_workspace": "The same as import",
        "export_workspace": "Export a workspace for another agent or hub",
        "sync": "Sync workspaces with their agents' folders",
        "export": "Export a table for a spreadsheet",
        "import_table": "Import an edited table that was written by export",
    },
    "Memory": {
        "document": "Print a memory document or one of its revisions",
        "documents_by_person": "List the memory documents about each person",
        "facts": "List, explain, add, pin, verify or withdraw facts",
        "knowledge": "List, add, edit, merge or withdraw knowledge entries",
        "observations": "List, add, edit, verify or withdraw observations",
        "key_values": "Get, set, list, restore or withdraw key-values",
        "history": "List, archive or unarchive history entries",
        "terms": "Show, correct, build or export the semantic graph",
        "consolidate": "Move facts from sessions to MEMORY.md and the history",
        "extract": "Extract observations from the output of an agent's step",
        "compact": "Find duplicate and contradictory lines of MEMORY.md",
        "hygiene": "Scan for duplicates, stale rows, secrets and the like",
        "review": "List, approve or reject held changes",
        "runs": "List, show, undo, retry or approve runs",
        "past": "Show a workspace as it was, or compare two moments",
        "scratch": "End the run of a scratchpad",
    },
    "Conversations": {
        "session": "Create, rename, prune, export, import or delete sessions",
        "append": "Append entries to a session",
        "context": "Show what the model would receive for a session",
        "compress": "Replace old entries with a summary",
        "stats": "Show compression statistics",
    },
    "Search": {
        "search": "Search all memory",
        "recall": "Find the memory that answers a question",
        "rebuild_search": "Rebuild damaged search indexes",
    },
    "Agents and tokens": {
        "workspace": "Create, show or change a workspace",
        "token": "Create, list or revoke agents' tokens",
        "mcp_server": "Serve a workspace over MCP on standard input and output",
        "webhook": "List, add or remove a workspace's webhooks",
        "cache": "Use the response cache",
    },
    "People and data": {
        "people": "Manage accounts, roles and invitations",
        "person_data": "Find, export or erase the data about a person",
        "forget": "Permanently erase a phrase, person, source or session",
        "access": "Show who read what",
        "activity": "Show or export the audit log",
    },
    "Backups": {
        "backup": "Back up the whole hub, or verify a backup",
        "restore": "Replace the database with a backup",
    },
    "Maintenance": {
        "check_memory": "Verify the invariants of the database",
        "vacuum": "Remove what deleted rows left in the database file",
    },
}


def execute(argv: list[str]) -> None:
    """Run the command in ``argv``, as Django's execute_from_command_line does."""
    if argv[1:2] in (["--help"], ["-h"]):
        argv = [argv[0], "help", *argv[2:]]
    try:
        CommandLine(argv).execute()
    finally:
        shut_down()


class CommandLine(ManagementUtility):
    def main_help_text(self, commands_only: bool = False) -> str:  # noqa: FBT001, FBT002 (as Django declares it)
        if commands_only:
            return super().main_help_text(commands_only=True)
        with_django = "--all" in self.argv
        lines = [f"Usage: python3 {self.prog_name} COMMAND [arguments]", *_own_commands()]
        if with_django:
            lines += _other_commands()
        lines += ["", f"python3 {self.prog_name} help COMMAND shows the arguments of a command."]
        if not with_django:
            lines.append(f"python3 {self.prog_name} help --all also lists the commands of Django and its apps.")
        return "\n".join(lines)


def _own_commands() -> Iterator[str]:
    width = max(len(name) for commands in GROUPS.values() for name in commands)
    for group, commands in GROUPS.items():
        yield from ("", group)
        yield from (f"  {name:{width}}  {summary}" for name, summary in commands.items())


def _other_commands() -> Iterator[str]:
    names = defaultdict(list)
    for name, app in sorted(get_commands().items()):
        if app != "memoryhub":
            names["Django" if app == "django.core" else str(app)].append(name)
    for app, found in names.items():
        yield from ("", app)
        yield from wrap(", ".join(found), WIDTH, initial_indent="  ", subsequent_indent="  ")
