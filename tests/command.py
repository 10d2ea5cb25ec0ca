"""The pytest plugin of `manage.py test`: runs the tests in several processes and says what runs and what doesn't."""

from __future__ import annotations

import argparse
import os
import shlex
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

MOST_PROCESSES = 16
EXAMPLE = "tests/test_house.py"
HOW_TO_RUN_ONE = f"To run one file or one test: python3 manage.py test {EXAMPLE} (or {EXAMPLE}::test_name)"
QUICK = "not slow and not browser"
HOW_TO_RUN_ALL = "Slow tests and browser tests are left out. To run them too: python3 manage.py test --all"
NO_TESTS_RUN = ("collectonly", "help", "version", "markers", "cacheshow", "showfixtures", "show_fixtures_per_test")
NEEDS_ONE_PROCESS = ("usepdb", "trace", "setuponly", "setupshow", "setupplan", "lf", "stepwise", *NO_TESTS_RUN)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--all", action="store_true", help="run the slow tests and the browser tests too")


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config, args: list[str]) -> None:
    """Leave out slow tests if nothing is chosen, and add the number of processes.

    This is done before other plugins read the options (pytest-cov does).
    """
    options = early_config.known_args_namespace
    if not (options.all or options.file_or_dir or options.keyword or options.markexpr or options.lf):
        options.markexpr = QUICK
        args[:0] = ["-m", QUICK]
    if not early_config.pluginmanager.hasplugin("xdist"):
        return
    if options.numprocesses is None and not options.tx and not _needs_one_process(options):
        options.numprocesses = default_processes()
        args[:0] = ["-n", str(options.numprocesses)]
    if options.numprocesses and options.dist == "no":
        options.dist = "worksteal"  # keeps the tests of a file together, for the fixtures that they share
        args[:0] = ["--dist", options.dist]


def default_processes() -> int:
    """Return one more than there are cores, since tests often wait. On PostgreSQL, the server needs that core.

    Each further process takes ten seconds to collect the tests and to load what they use.
    """
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(cores if os.environ.get("TEST_DATABASE_URL") else cores + 1, MOST_PROCESSES)


def _needs_one_process(options: argparse.Namespace) -> bool:
    """Return whether the options choose one file or single tests, or something that only one process can do."""
    if options.capture == "no" or any(getattr(options, name, None) for name in NEEDS_ONE_PROCESS):
        return True
    return _chooses_little(options.file_or_dir)


def _chooses_little(names: list[str]) -> bool:
    """Return whether the names are of single tests or one file, or of something missing (pytest then says so)."""
    whole = [Path(name) for name in names if "::" not in name]
    if any(not path.exists() for path in whole):
        return True
    return bool(names) and len(whole) <= 1 and not any(path.is_dir() for path in whole)


def chromium_path() -> str | None:
    """Return the browser's path. Chromium's shell without windows needs a third of the CPU time for a page."""
    names = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
    return os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, names)), None)


@pytest.hookimpl(tryfirst=True)
def pytest_cmdline_main(config: pytest.Config) -> None:
    if config.option.help:
        sys.stdout.write(f"{HOW_TO_RUN_ONE}\nTo run the tests in one process, and see their output: add -s\n\n")


@pytest.hookimpl(tryfirst=True)
def pytest_sessionstart(session: pytest.Session) -> None:
    reporter = session.config.pluginmanager.getplugin("terminalreporter")
    if reporter and not any(getattr(session.config.option, name, None) for name in NO_TESTS_RUN):
        for line in _opening(session.config):
            reporter.write_line(line)


def _opening(config: pytest.Config) -> Iterator[str]:
    processes = len(config.option.tx or []) if config.pluginmanager.hasplugin("xdist") else 0
    number = f"{processes} processes" if processes > 1 else "one process"
    yield f"Running tests in {number}, on {_database()}."
    if config.args_source is config.ArgsSource.TESTPATHS and not config.option.keyword:
        yield HOW_TO_RUN_ALL if config.option.markexpr == QUICK else _browser_tests(config.option.markexpr)
        yield HOW_TO_RUN_ONE


def _database() -> str:
    return "PostgreSQL (TEST_DATABASE_URL)" if os.environ.get("TEST_DATABASE_URL") else "SQLite"


def _browser_tests(marks: str) -> str:
    if "not browser" in marks:
        return f'Browser tests are left out: -m "{marks}".'
    if path := chromium_path():
        return f"Browser tests run in {path}."
    if os.environ.get("MEMORYHUB_REQUIRE_BROWSER"):
        return "Browser tests will fail: MEMORYHUB_REQUIRE_BROWSER is set, and Chromium isn't installed."
    return "Browser tests are skipped: Chromium isn't installed (if it is, set CHROMIUM to its path)."


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    config = terminalreporter.config
    if any(getattr(config.option, name, None) for name in NO_TESTS_RUN):
        return
    failed = terminalreporter.getreports("failed") + terminalreporter.getreports("error")
    if failed:
        terminalreporter.write_line(
            f"To run the first failure again: python3 manage.py test {shlex.quote(failed[0].nodeid)}"
        )
    elif config.args_source is config.ArgsSource.TESTPATHS:
        terminalreporter.write_line(HOW_TO_RUN_ONE)
    if config.option.markexpr == QUICK:
        terminalreporter.write_line(HOW_TO_RUN_ALL)
    if not os.environ.get("TEST_DATABASE_URL"):
        terminalreporter.write_line("These tests ran on SQLite. To run them on PostgreSQL, set TEST_DATABASE_URL.")
