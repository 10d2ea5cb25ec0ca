"""How `manage.py test` chooses the number of processes."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from tests import command


@pytest.fixture
def options_for(request, monkeypatch):
    """Return a function that gives the options that pytest gets for a command line."""
    monkeypatch.setattr(command, "default_processes", lambda: 6)
    monkeypatch.chdir(request.config.rootpath)

    def options(line: str, *, has_xdist: bool = True) -> list[str]:
        arguments = line.split()
        namespace = request.config._parser.parse_known_args(arguments)
        config = SimpleNamespace(
            known_args_namespace=namespace, pluginmanager=SimpleNamespace(hasplugin=lambda name: has_xdist)
        )
        command.pytest_load_initial_conftests(config, arguments)
        return arguments

    return options


@pytest.mark.parametrize(
    "line", ["", "-x", "tests/lib", "-k merge", "tests/test_asgi.py tests/test_house.py", "--cov"]
)
def test_many_tests_use_several_processes(options_for, line):
    assert options_for(line) == ["--dist", "worksteal", "-n", "6", *line.split()]


@pytest.mark.parametrize(
    "line",
    [
        "tests/test_house.py",
        "tests/test_house.py::test_files_stay_small",
        "tests/test_house.py::test_files_stay_small tests/test_asgi.py::test_nothing",
        "tests/missing.py tests/test_house.py",
        "--pdb",
        "--trace",
        "-s",
        "--lf",
        "--collect-only",
        "--fixtures",
        "--help",
        "-n 0",
        "-n 0 tests/lib",
        "--tx 2*popen --dist load",
    ],
)
def test_explicit_options_are_kept(options_for, line):
    assert options_for(line) == line.split()


def test_the_number_of_processes_can_be_chosen(options_for):
    assert options_for("-n 3") == ["--dist", "worksteal", "-n", "3"]
    assert options_for("-n 3 --dist loadfile") == ["-n", "3", "--dist", "loadfile"]


def test_one_process_runs_everything_without_xdist(options_for):
    assert options_for("-p no:xdist", has_xdist=False) == ["-p", "no:xdist"]
