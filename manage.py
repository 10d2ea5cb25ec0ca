"""Run a MemoryHub command: `manage.py serve`, `manage.py test`, or any other Django command.

This file uses only the standard library. If MemoryHub's packages are missing, it creates `.venv` next to itself from
a hashed lock file in requirements/, and restarts inside it. `.venv/memoryhub.lock` has three purposes: it is the lock
that prevents two installations at once, it marks the folder as ours to rebuild, and it records what is installed (it
is empty while an installation runs, so that an interrupted one is detected and repaired).
"""

import contextlib
import gc
import hashlib
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import time
from collections import deque
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

if sys.version_info < (3, 11):  # noqa: UP036 (an older Python must be able to print this: 3.6 syntax only)
    sys.exit(f"MemoryHub needs Python 3.11 or newer; this is {sys.version.split()[0]}.")

HERE = Path(__file__).resolve().parent
VENV = HERE / ".venv"
PYTHON = VENV / "bin" / "python"
STAMP = VENV / "memoryhub.lock"
LOCKS = {"serve": ["serve.txt"], "dev": ["serve.txt", "dev.txt"]}  # each file includes those before it
OLDEST_PIP = (22, 3)  # the first with --python
SERVE_MODULES = [
    "a2wsgi",
    "cryptography",
    "detect_secrets",
    "dj_database_url",
    "django",
    "django_htmx",
    "django_stubs_ext",
    "filelock",
    "httpcore2",
    "httpx2",
    "markdown_it",
    "mcp",
    "networkx",
    "nh3",
    "ninja",
    "numpy",
    "openai",
    "openpyxl",
    "phonenumbers",
    "platformdirs",
    "segno",
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
    "NewConnectionError": "The package index can't be reached. Is this machine online?",
    "NameResolutionError": "The package index can't be reached. Is this machine online?",
    "timed out": "The package index didn't answer in time. Is this machine online?",
    "ProxyError": "The proxy in front of the package index refused the connection.",
    "DO NOT MATCH THE HASHES": "A downloaded file doesn't match its hash in the lock file, so it wasn't installed.",
}


class Stop(Exception):
    """An expected failure, shown as a message instead of a traceback."""


def main() -> int:
    """Run the command in this Python if it has the packages, otherwise in `.venv`; return the exit status."""
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
    except BrokenPipeError:  # the reader closed the pipe, as `head` does
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141  # a shell's exit status for SIGPIPE
    except KeyboardInterrupt:
        return 130


def run_django() -> int:
    gc.set_threshold(50_000)  # a start creates a million objects, and hardly any garbage
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "memoryhub.settings")
    if sys.argv[1:2] == ["mcp_server"]:
        from memoryhub.mcp.handshake import answer_early

        answer_early(sys.argv[2:], has_token=bool(os.environ.get("MEMORYHUB_TOKEN")))
        from memoryhub.mcp.forwarding import serve_from_hub

        if serve_from_hub(sys.argv[2:], os.environ):
            return 0
    from django.core.exceptions import ImproperlyConfigured

    from memoryhub.management.command_line import execute

    try:
        execute(sys.argv)
    except ImproperlyConfigured as problem:
        if "--traceback" in sys.argv:
            raise
        raise Stop(f"MemoryHub's settings are invalid: {problem}") from None
    return 0


def run_tests(arguments: list[str]) -> int:
    os.chdir(HERE)
    import pytest

    return pytest.main(["-p", "tests.command", "-rs", *arguments])


def ready_here(wanted: str) -> bool:
    """Return whether this Python has the packages that the command needs."""
    if not STAMP.exists() or Path(sys.prefix).resolve() != VENV.resolve():
        return has_modules(wanted)
    if not (VENV / "lib" / f"python{sys.version_info[0]}.{sys.version_info[1]}").is_dir():
        STAMP.write_text("")  # the system's Python was upgraded: rebuild the environment
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
    """Return whether `.venv` was completely installed from the current lock files."""
    if not (PYTHON.exists() and STAMP.exists()):
        return False
    return set(stamp_lines(wanted)) <= set(STAMP.read_text(errors="replace").splitlines())


def prepare(wanted: str) -> None:
    """Create or update `.venv`. Raises Stop if that fails."""
    try:
        if not is_current(wanted):
            with only_one_at_a_time():
                if not is_current(wanted):  # another process may have installed it meanwhile
                    install(wanted)
    except OSError as problem:
        raise Stop(f"MemoryHub cannot prepare {VENV}: {problem.strerror or problem}.") from None


@contextlib.contextmanager
def only_one_at_a_time() -> Iterator[None]:
    import fcntl

    if VENV.exists() and any(VENV.iterdir()) and not STAMP.exists():
        raise Stop(
            f"{VENV} was not made by MemoryHub and some packages are missing from it. Install them with\n"
            f'  {PYTHON} -m pip install -e ".[dev,postgres]"\nor delete the folder and try again.'
        )
    VENV.mkdir(exist_ok=True)
    with STAMP.open("a") as handle:
        os.set_inheritable(handle.fileno(), True)  # noqa: FBT003 (a pip that outlives this process keeps the lock)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say("Another MemoryHub process is installing .venv. Waiting for it...")
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def install(wanted: str) -> None:
    started = time.monotonic()
    was_complete = bool(STAMP.read_text(errors="replace").strip())
    lines = stamp_lines(wanted)
    STAMP.write_text("")
    is_new = not (was_complete and PYTHON.exists())
    if is_new:
        create_empty_environment()
    lock = HERE / "requirements" / LOCKS[wanted][-1]
    say(f"Installing the packages in requirements/{lock.name} (the first time takes a while).")
    # --no-compile: Python compiles what it imports, a fifth of the modules; compiling all takes 10 s on two cores.
    options = ["--require-hashes", "--no-deps", "--no-compile", "--no-input", "--no-warn-script-location"]
    options += ["--disable-pip-version-check", "--progress-bar=off", "--retries=2"]
    parts = split_lock(lock) if is_new else [lock]
    with ThreadPoolExecutor(len(parts)) as pool:
        list(pool.map(run, [[*pip_command(), "install", *options, "-r", str(part)] for part in parts]))
    STAMP.write_text("\n".join(lines) + "\n")
    say(f"Installed in {time.monotonic() - started:.0f} s.")


def split_lock(lock: Path) -> list[Path]:
    """Split a lock file into one for each processor; return their paths.

    A pip uses one processor, mostly to choose among all files of a package in the index, even if it is cached.
    Several can fill a new environment at once, since they don't resolve dependencies.
    """
    requirements = re.findall(r"^\w.*(?:\n\s.*)*", lock.read_text(), re.MULTILINE)
    count = min(os.cpu_count() or 1, len(requirements) // 10, 4)
    if count < 2:
        return [lock]
    requirements.sort(key=len)  # deal out those with many files, which take longer, one by one
    parts = [VENV / f"{number}-of-{count}-{lock.name}" for number in range(1, count + 1)]
    for number, part in enumerate(parts):
        part.write_text("\n".join(requirements[number::count]) + "\n")
    return parts


def create_empty_environment() -> None:
    """Create `.venv`, without a pip of its own where the system's can fill it: that saves seconds."""
    without_pip = outer_python_has_pip()
    if importlib.util.find_spec("venv") is None or not (without_pip or has_ensurepip()):
        raise Stop(
            "MemoryHub needs Python's venv module and pip to install its packages, and at least\n"
            "one of them is missing. On Debian and Ubuntu: apt install python3-venv"
        )
    say(f"Creating .venv with Python {sys.version.split()[0]}.")
    for leftover in VENV.iterdir():
        if leftover.is_dir() and not leftover.is_symlink():
            shutil.rmtree(leftover)
        elif leftover != STAMP:
            leftover.unlink()
    run([outer_python(), "-m", "venv", *(["--without-pip"] if without_pip else []), str(VENV)])


def pip_command() -> list[str]:
    """Return the command of the pip in `.venv`, or of the system's pip working on `.venv`."""
    if any(VENV.glob("lib/python*/site-packages/pip")):
        return [str(PYTHON), "-m", "pip"]
    return [outer_python(), "-m", "pip", "--python", str(PYTHON)]


def has_ensurepip() -> bool:
    return importlib.util.find_spec("ensurepip") is not None


def outer_python() -> str:
    """Return the Python to create `.venv` with: never the one inside it, which may be deleted."""
    return getattr(sys, "_base_executable", None) or sys.executable


def outer_python_has_pip() -> bool:
    """Return whether the system's Python has a pip that can install into another environment."""
    command = [outer_python(), "-c", "import pip; print(pip.__version__)"]
    version = subprocess.run(command, capture_output=True, text=True, check=False).stdout
    return tuple(int(number) for number in re.findall(r"\d+", version)[:2]) >= OLDEST_PIP


def run(command: list[str]) -> None:
    """Run an installation step; on a terminal, show the package it is working on. Raises Stop if it fails."""
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
        for line in process.stdout or ():
            output.append(line.rstrip())
            if sys.stdout.isatty() and line.startswith(("Collecting", "Installing")):
                print(f"\r\033[K  {line.split(' (')[0].rstrip():.60}", end="", flush=True)
    if sys.stdout.isatty():
        print("\r\033[K", end="", flush=True)
    if process.returncode:
        raise Stop(explain(output))


def explain(output: deque[str]) -> str:
    """Return a short explanation of why a step failed, from its last lines of output."""
    everything = "\n".join(output)
    hint = next((hint for sign, hint in HINTS.items() if sign in everything), "")
    errors = [line for line in output if line.startswith("ERROR")] or [line for line in output if line]
    last = "\n".join(f"  {line:.300}" for line in errors[-3:])
    sentence = f"MemoryHub couldn't install its packages. {hint}".rstrip()
    return f"{sentence} Run the command again to retry.\nThe installer's last lines:\n{last}"


def say(text: str) -> None:
    """Print progress to standard output, or to standard error if that carries the messages of MCP."""
    print(text, file=sys.stderr if sys.argv[1:2] == ["mcp_server"] else sys.stdout, flush=True)


if __name__ == "__main__":
    sys.exit(main())
