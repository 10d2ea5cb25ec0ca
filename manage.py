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
from collections.abc import Iterator, Mapping
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
UV_VARIABLES = {  # by the setting of pip
    "index-url": "UV_DEFAULT_INDEX",
    "extra-index-url": "UV_INDEX",
    "find-links": "UV_FIND_LINKS",
    "trusted-host": "UV_INSECURE_HOST",
    "cert": "SSL_CERT_FILE",
    "proxy": "ALL_PROXY",
}
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
    if not (was_complete and PYTHON.exists()):
        create_empty_environment()
    lock = HERE / "requirements" / LOCKS[wanted][-1]
    say(f"Installing the packages in requirements/{lock.name} (the first time takes a while).")
    try:
        install_with_uv(lock)
    except (Stop, OSError):  # no uv for this platform, or only pip reaches the index. pip says what is wrong
        install_with_pip(lock)
    STAMP.write_text("\n".join(lines) + "\n")
    say(f"Installed in {time.monotonic() - started:.0f} s.")


def install_with_uv(lock: Path) -> None:
    """Install a lock file with uv, which takes a few seconds where pip takes half a minute. Raises Stop."""
    uv = PYTHON.with_name("uv")
    if not uv.exists():
        install_with_pip(HERE / "requirements" / "installer.txt", "--only-binary=:all:")
    options = ["--python", str(PYTHON), "--require-hashes", "--no-deps"]
    run([str(uv), "pip", "install", *options, "-r", str(lock)], uv_settings())


def install_with_pip(lock: Path, *more: str) -> None:
    # --no-compile: Python compiles what it imports, a fifth of the modules; compiling all takes 10 s on two cores.
    options = ["--require-hashes", "--no-deps", "--no-compile", "--no-input", "--no-warn-script-location"]
    options += ["--disable-pip-version-check", "--progress-bar=off", "--retries=2", *more]
    run([*pip_command(), "install", *options, "-r", str(lock)])


def uv_settings() -> dict[str, str]:
    """Return the variables that make uv use what pip is configured with, such as a company's index.

    Every file has a known hash, so that it doesn't matter from which index it is.
    """
    command = [*pip_command(), "config", "list"]
    listed = subprocess.run(command, capture_output=True, text=True, check=False).stdout
    settings = {"UV_INDEX_STRATEGY": "unsafe-best-match", "UV_SYSTEM_CERTS": "true"}
    for place in ("global", "install", ":env:"):  # in pip's order of precedence
        for name, value in re.findall(rf"^{place}\.([a-z-]+)='(.*)'$", listed, re.MULTILINE):
            if name in UV_VARIABLES:
                settings[UV_VARIABLES[name]] = value.replace("\\n", " ").strip()
    return {name: value for name, value in settings.items() if name not in os.environ}


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
    options = ["--without-pip"] if without_pip else []
    run([outer_python(), "-m", "venv", *options, str(VENV)])


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


def run(command: list[str], variables: "Mapping[str, str] | None" = None) -> None:
    """Run an installation step. Raises Stop if it fails."""
    done = subprocess.run(
        command,
        env={**os.environ, "PIP_USER": "0", **(variables or {})},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        close_fds=False,
        check=False,
    )
    if done.returncode:
        raise Stop(explain(done.stdout.splitlines()[-60:]))


def explain(output: list[str]) -> str:
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
