"""Errors of wrong command-line arguments."""

from __future__ import annotations

import json
from argparse import ArgumentError
from collections.abc import Iterator

import pytest
from django.core.management import CommandError, call_command, load_command_class

from tests.reference import COMMON_OPTIONS, own_commands


def test_no_argument_names_its_type_in_an_error():
    """argparse does so (invalid _port value) if a type raises a ValueError."""
    assert [error for name in own_commands() for error in type_errors(name) if "invalid" in error] == []


def type_errors(name: str) -> Iterator[str]:
    parser = load_command_class("memoryhub", name).create_parser("manage.py", name)
    for action in parser._actions:
        if action.dest not in COMMON_OPTIONS and action.nargs != 0:
            try:
                parser._get_value(action, "abc")
            except ArgumentError as error:
                yield f"{name}: {error}"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("serve", "--port", "abc"), "argument --port: 'abc' isn't a whole number"),
        (("serve", "--processes", "0"), "argument --processes: 0 is less than 1"),
        (("serve", "--port", "70000"), "argument --port: 70000 isn't a port: use 1 to 65535, or 0 for a free port"),
        (("history", "list", "atlas", "--limit", "abc"), "argument --limit: 'abc' isn't a whole number"),
        (("history", "archive", "atlas", "9" * 20), f"argument positions: {'9' * 20} is too large"),
        (("observations", "list", "atlas", "--limit=-1"), "argument --limit: -1 is negative: use 0 or more"),
        (("compact", "atlas", "--threshold", "nan"), "argument --threshold: 'nan' isn't a number"),
        (("activity", "--since", "2026-13-01"), "argument --since: '2026-13-01' isn't a date: use YYYY-MM-DD"),
    ],
)
def test_a_wrong_argument_is_explained(arguments, message):
    with pytest.raises(CommandError) as refused:
        call_command(*arguments)

    assert str(refused.value) == f"Error: {message}"


def test_a_wrong_argument_is_explained_in_json(capsys, monkeypatch):
    monkeypatch.setattr("sys.argv", ["manage.py", "runs", "--limit", "abc", "--json"])

    with pytest.raises(SystemExit) as ended:
        call_command("runs", "--limit", "abc", "--json")

    error = json.loads(capsys.readouterr().out)["error"]
    assert (ended.value.code, error) == (
        2,
        {"code": "wrong_arguments", "message": "argument --limit: 'abc' isn't a whole number"},
    )
