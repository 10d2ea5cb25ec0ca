"""The list of commands that manage.py shows."""

from memoryhub.management.command_line import GROUPS, WIDTH, CommandLine
from tests.reference import own_commands


def test_help_lists_every_command_once_with_one_line():
    lines = CommandLine(["manage.py", "help"]).main_help_text().splitlines()

    assert sorted(name for commands in GROUPS.values() for name in commands) == own_commands()
    assert [name for name in own_commands() if sum(line.startswith(f"  {name} ") for line in lines) != 1] == []
    assert [line for line in lines if len(line) > WIDTH] == []


def test_other_commands_are_listed_on_request():
    own, everything = (CommandLine(["manage.py", "help", *more]).main_help_text() for more in ([], ["--all"]))

    assert "makemigrations" not in own
    assert "collectstatic" not in own
    assert "makemigrations" in everything
    assert "collectstatic" in everything
