"""How `manage.py test` chooses the number of processes."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from tests import command


@pytest.fixture(scope="module")
def parser(pytestconfig):
    """Return pytest's parser with the plugin's options, also where pytest was started without it."""
    if not hasattr(pytestconfig.option, "all"):
        command.pytest_addoption(pytestconfig._parser)
    return pytestconfig._parser


@pytest.fixture
def options_for(request, parser, monkeypatch):
    """Return a function that gives the options that pytest gets for a command line."""
    monkeypatch.setattr(command, "default_processes", lambda: 6)
    monkeypatch.chdir(request.config.rootpath)

    def options(line: str, *, has_xdist: bool = True) -> list[str]:
        arguments = line.split()
        namespace = parser.parse_known_args(arguments)
        config = SimpleNamespace(
            known_args_namespace=namespace, pluginmanager=SimpleNamespace(hasplugin=lambda name: has_xdist)
        )
        command.pytest_load_initial_conftests(config, arguments)
        return arguments

    return options


@pytest.mark.parametrize(
    "line", ["--all", "-x --all", "tests/lib", "-k merge", "tests/test_asgi.py tests/test_house.py", "--cov -m slow"]
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
        "--pdb --all",
        "--trace --all",
        "-s --all",
        "--lf",
        "--collect-only --all",
        "--fixtures -k merge",
        "--help -k merge",
        "-n 0 --all",
        "-n 0 tests/lib",
        "--tx 2*popen --dist load --all",
    ],
)
def test_explicit_options_are_kept(options_for, line):
    assert options_for(line) == line.split()


def test_the_number_of_processes_can_be_chosen(options_for):
    assert options_for("--all -n 3") == ["--dist", "worksteal", "--all", "-n", "3"]
    assert options_for("--all -n 3 --dist loadfile") == ["--all", "-n", "3", "--dist", "loadfile"]


@pytest.mark.parametrize("line", ["", "-x", "--cov", "-p no:randomly"])
def test_slow_tests_are_left_out_if_nothing_is_chosen(options_for, line):
    assert options_for(line) == ["--dist", "worksteal", "-n", "6", "-m", command.QUICK, *line.split()]


def test_one_process_leaves_them_out_too(options_for):
    assert options_for("-n 0") == ["-m", command.QUICK, "-n", "0"]


def test_one_process_runs_everything_without_xdist(options_for):
    assert options_for("--all -p no:xdist", has_xdist=False) == ["--all", "-p", "no:xdist"]
