"""Start here: `manage.py serve`, `manage.py test`, and every other Django command.

Needs the standard library alone. Where MemoryHub's packages are missing it makes `.venv` beside this file from the
hashed lock file in requirements/ and starts itself again inside. `.venv/memoryhub.lock` is three things at once: the
lock that lets one start install at a time, the sign that the folder is ours to rebuild, and the stamp of what is
installed (empty from the first step of an installation to its last, so that an interrupted one is seen and repaired).
"""

import contextlib
import hashlib
import importlib.util
import os
import shutil
import subprocess
import sys
import time
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import Any

if sys.version_info < (3, 11):  # noqa: UP036 (an older Python must get as far as this sentence: 3.6 syntax in this file)
    sys.exit(f"MemoryHub needs Python 3.11 or newer; this is {sys.version.split()[0]}.")

HERE = Path(__file__).resolve().parent
VENV = HERE / ".venv"
PYTHON = VENV / "bin" / "python"
STAMP = VENV / "memoryhub.lock"
LOCKS = {"serve": ["serve.txt"], "dev": ["serve.txt", "dev.txt"]}  # the last one holds all of those before it
SERVE_MODULES = [
    "a2wsgi",
    "cryptography",
    "detect_secrets",
    "dj_database_url",
    "django",
    "django_htmx",
    "django_tasks",
    "django_tasks_db",
    "filelock",
    "httpx2",
    "markdown_it",
    "mcp",
    "nh3",
    "ninja",
    "numpy",
    "openai",
    "openpyxl",
    "phonenumbers",
    "platformdirs",
    "simple_history",
    "snowballstemmer",
    "stdnum",
    "template_partials",
    "uvicorn",
    "watchfiles",
    "whitenoise",
]
TEST_MODULES = [
    "axe_playwright_python",
    "factory",
    "hypothesis",
    "importlinter",
    "pytest",
    "pytest_cov",
    "pytest_django",
    "pytest_httpserver",
    "pytest_playwright",
    "pytest_randomly",
    "time_machine",
    "xdist",
]
HINTS = {
    "No space left on device": "The disk is full.",
    "NewConnectionError": "The package index could not be reached: is this machine online?",
    "NameResolutionError": "The package index could not be reached: is this machine online?",
    "timed out": "The package index did not answer in time: is this machine online?",
    "ProxyError": "The proxy between this machine and the package index refused.",
    "DO NOT MATCH THE HASHES": "A downloaded file differs from the one in the lock, so it was not installed.",
}


class Stop(Exception):
    """An expected failure, told to the user in plain words instead of a traceback."""


def main() -> int:
    """Run the command of the command line, in this Python if it has the packages, else in `.venv`."""
    wanted = "dev" if sys.argv[1:2] == ["test"] else "serve"
    try:
        if not ready_here(wanted):
            prepare(wanted)
            sys.stdout.flush()
            os.execv(PYTHON, [str(PYTHON), *sys.orig_argv[1:]])
        try:
            return run_tests(sys.argv[2:]) if wanted == "dev" else run_django()
        finally:
            sys.stdout.flush()
    except Stop as problem:
        print(problem, file=sys.stderr)
        return 1
    except BrokenPipeError:  # whoever reads the output has enough, as `head` does: nothing more can be said to them
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141  # what a shell says of a command that SIGPIPE ended
    except KeyboardInterrupt:
        return 130


def run_django() -> int:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "memoryhub.settings")
    from django.core.exceptions import ImproperlyConfigured
    from django.core.management import execute_from_command_line

    try:
        execute_from_command_line(sys.argv)
    except ImproperlyConfigured as problem:
        if "--traceback" in sys.argv:
            raise
        raise Stop(f"MemoryHub's settings cannot be used: {problem}") from None
    return 0


def run_tests(arguments: list[str]) -> int:
    os.chdir(HERE)
    import pytest

    return pytest.main(["-rs", *arguments], plugins=[sys.modules[__name__]])


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Say which database was left out; what was skipped one by one is listed below it by `-rs`."""
    if not os.environ.get("TEST_DATABASE_URL"):
        terminalreporter.write_line("Ran on SQLite. Not run on PostgreSQL: TEST_DATABASE_URL names no server.")


def ready_here(wanted: str) -> bool:
    """Tell whether this very Python can run the command."""
    if not STAMP.exists() or Path(sys.prefix).resolve() != VENV.resolve():
        return has_modules(wanted)
    if not (VENV / "lib" / f"python{sys.version_info[0]}.{sys.version_info[1]}").is_dir():
        STAMP.write_text("")  # the system's Python moved on under the environment: build it anew
    return is_current(wanted)


def has_modules(wanted: str) -> bool:
    modules = SERVE_MODULES + (TEST_MODULES if wanted == "dev" else [])
    addresses = [os.environ.get(name, "") for name in ("DATABASE_URL", "TEST_DATABASE_URL")]
    if any(address.startswith("postgres") for address in addresses):
        modules = [*modules, "psycopg"]
    if any(importlib.util.find_spec(module) is None for module in modules):
        return False
    import django

    return django.VERSION[:2] == (5, 2)


def stamp_lines(wanted: str) -> list[str]:
    locks = [HERE / "requirements" / name for name in LOCKS[wanted]]
    return [f"{lock.name} {hashlib.sha256(lock.read_bytes()).hexdigest()}" for lock in locks]


def is_current(wanted: str) -> bool:
    """Tell whether `.venv` was completely installed from the lock file as it is now."""
    if not (PYTHON.exists() and STAMP.exists()):
        return False
    return set(stamp_lines(wanted)) <= set(STAMP.read_text(errors="replace").splitlines())


def prepare(wanted: str) -> None:
    """Make or bring up to date `.venv`; raises Stop where that cannot be done."""
    try:
        if not is_current(wanted):
            with only_one_at_a_time():
                if not is_current(wanted):  # another start may have done it while this one waited
                    install(wanted)
    except OSError as problem:
        raise Stop(f"MemoryHub cannot prepare {VENV}: {problem.strerror or problem}.") from None


@contextlib.contextmanager
def only_one_at_a_time() -> Iterator[None]:
    import fcntl

    if VENV.exists() and any(VENV.iterdir()) and not STAMP.exists():
        raise Stop(
            f"{VENV} was not made by MemoryHub and lacks some of its packages. Install them into it with\n"
            f'  {PYTHON} -m pip install -e ".[dev,postgres]"\nor remove the folder and start again.'
        )
    VENV.mkdir(exist_ok=True)
    with STAMP.open("a") as handle:
        os.set_inheritable(handle.fileno(), True)  # noqa: FBT003 (a pip that outlives its starter still holds the lock)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say("Another start of MemoryHub is preparing .venv; waiting for it.")
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def install(wanted: str) -> None:
    began = time.monotonic()
    complete = bool(STAMP.read_text(errors="replace").strip())
    lines = stamp_lines(wanted)
    STAMP.write_text("")
    if not (complete and PYTHON.exists()):
        make_empty_environment()
    lock = HERE / "requirements" / LOCKS[wanted][-1]
    say(f"Installing the packages of requirements/{lock.name} (this takes a while the first time).")
    options = ["--require-hashes", "--no-input", "--no-warn-script-location", "--disable-pip-version-check"]
    run([*pip_command(), "install", *options, "--progress-bar=off", "--retries=2", "-r", str(lock)])
    STAMP.write_text("\n".join(lines) + "\n")
    say(f"Ready after {time.monotonic() - began:.0f} s.")


def make_empty_environment() -> None:
    if importlib.util.find_spec("venv") is None or not (has_ensurepip() or outer_python_has_pip()):
        raise Stop(
            "MemoryHub installs its packages with Python's venv module and pip, and this Python lacks them.\n"
            "On Debian and Ubuntu: apt install python3-venv"
        )
    say(f"Making .venv with Python {sys.version.split()[0]}.")
    for leftover in VENV.iterdir():
        if leftover.is_dir() and not leftover.is_symlink():
            shutil.rmtree(leftover)
        elif leftover != STAMP:
            leftover.unlink()
    run([outer_python(), "-m", "venv", *([] if has_ensurepip() else ["--without-pip"]), str(VENV)])


def pip_command() -> list[str]:
    """Return the pip inside `.venv`, or the system's one told to work on `.venv`."""
    if any(VENV.glob("lib/python*/site-packages/pip")):
        return [str(PYTHON), "-m", "pip"]
    return [outer_python(), "-m", "pip", "--python", str(PYTHON)]


def has_ensurepip() -> bool:
    return importlib.util.find_spec("ensurepip") is not None


def outer_python() -> str:
    """Return the Python that a new environment is made from: never the one inside `.venv`, which may be removed."""
    return getattr(sys, "_base_executable", None) or sys.executable


def outer_python_has_pip() -> bool:
    command = [outer_python(), "-m", "pip", "--version"]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


def run(command: list[str]) -> None:
    """Run a step of the installation, showing on a terminal which package it is at; raises Stop if it fails."""
    output: deque[str] = deque(maxlen=60)
    environment = {**os.environ, "PIP_USER": "0", "PYTHONUNBUFFERED": "1"}
    with subprocess.Popen(
        command,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        close_fds=False,
    ) as process:
        for number, line in enumerate(process.stdout or (), start=1):
            output.append(line.rstrip())
            if sys.stdout.isatty() and line.startswith(("Collecting", "Installing")):
                print(f"\r\033[K  {number:4} {line.split(' (')[0].rstrip():.60}", end="", flush=True)
    if sys.stdout.isatty():
        print("\r\033[K", end="", flush=True)
    if process.returncode:
        raise Stop(explain(output))


def explain(output: deque[str]) -> str:
    """Turn the last output of a failed step into a few plain lines."""
    everything = "\n".join(output)
    hint = next((hint for sign, hint in HINTS.items() if sign in everything), "")
    errors = [line for line in output if line.startswith("ERROR")] or [line for line in output if line]
    last = "\n".join(f"  {line:.300}" for line in errors[-3:])
    sentence = f"MemoryHub could not install its packages; the next start tries again. {hint}".rstrip()
    return f"{sentence}\nThe installer's last words:\n{last}"


def say(text: str) -> None:
    """Tell how it goes, where nobody reads standard output as messages of a protocol."""
    print(text, file=sys.stderr if sys.argv[1:2] == ["mcp_server"] else sys.stdout, flush=True)


if __name__ == "__main__":
    sys.exit(main())
