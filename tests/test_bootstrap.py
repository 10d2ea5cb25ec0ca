"""manage.py creates its environment; serve starts and stops all its processes."""

import ast
import http.client
import importlib.util
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
import tomllib
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest
from django.core.management.base import CommandError

from memoryhub.management import supervisor
from memoryhub.management.commands import serve

linux_only = pytest.mark.skipif(sys.platform != "linux", reason="looks at processes through /proc")

ROOT = Path(__file__).resolve().parent.parent
SERVE_LOCK = ROOT / "requirements" / "serve.txt"
DEV_LOCK = ROOT / "requirements" / "dev.txt"


@pytest.fixture
def manage(tmp_path, monkeypatch):
    """manage.py as a module in an empty clone, with installation steps recorded instead of run."""
    spec = importlib.util.spec_from_file_location("manage_in_clone", ROOT / "manage.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    (tmp_path / "requirements").mkdir()
    for name in ("serve.txt", "dev.txt"):
        (tmp_path / "requirements" / name).write_text(f"# {name}\n")
    monkeypatch.setattr(module, "HERE", tmp_path)
    monkeypatch.setattr(module, "VENV", tmp_path / ".venv")
    monkeypatch.setattr(module, "PYTHON", tmp_path / ".venv" / "bin" / "python")
    monkeypatch.setattr(module, "STAMP", tmp_path / ".venv" / "memoryhub.lock")
    module.steps = []

    def write_down(command):
        module.steps.append(command)
        if "venv" in command:
            module.PYTHON.parent.mkdir(parents=True)
            module.PYTHON.touch()

    monkeypatch.setattr(module, "run", write_down)
    return module


def kinds(manage):
    return ["venv" if "venv" in step else Path(step[-1]).name for step in manage.steps]


def test_a_closed_pipe_ends_a_command_silently():
    reader, writer = os.pipe()
    os.close(reader)
    ended = subprocess.run([sys.executable, ROOT / "manage.py", "help"], stdout=writer, stderr=subprocess.PIPE)
    os.close(writer)

    assert (ended.returncode, ended.stderr) == (141, b"")


def test_an_old_python_gets_one_sentence():
    program = "import sys; sys.version_info = (3, 8, 2); exec(open('manage.py').read())"
    result = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, timeout=30)
    assert result.returncode == 1
    assert re.fullmatch(r"MemoryHub needs Python 3\.11 or newer; this is [\d.]+\.\n", result.stderr)


def test_installation_messages_do_not_mix_with_mcp_messages(manage, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["manage.py", "mcp_server"])
    manage.prepare("serve")
    said = capsys.readouterr()
    assert said.out == ""
    assert "Installing the packages" in said.err


def test_manage_py_parses_on_an_old_python():
    ast.parse((ROOT / "manage.py").read_text(), feature_version=(3, 7))


def test_the_first_start_creates_the_environment_and_the_second_does_nothing(manage):
    manage.prepare("serve")
    manage.prepare("serve")
    assert kinds(manage) == ["venv", "serve.txt"]
    assert "--require-hashes" in manage.steps[1]


def test_each_processor_installs_a_part_of_the_lock(manage, monkeypatch):
    monkeypatch.setattr(manage.os, "cpu_count", lambda: 2)
    manage.VENV.mkdir()
    one, other = (part.read_text() for part in manage.split_lock(SERVE_LOCK))
    assert sorted((one + other).splitlines()) == sorted(SERVE_LOCK.read_text().splitlines())


def test_changed_lock_is_installed_into_the_same_environment(manage):
    manage.prepare("serve")
    (manage.HERE / "requirements" / "serve.txt").write_text("# changed\n")
    manage.prepare("serve")
    assert kinds(manage) == ["venv", "serve.txt", "serve.txt"]


def test_the_test_environment_can_also_serve(manage):
    manage.prepare("dev")
    manage.prepare("serve")
    assert kinds(manage) == ["venv", "dev.txt"]


def test_an_interrupted_installation_is_repeated(manage, monkeypatch):
    write_down = manage.run

    def interrupted(command):
        write_down(command)
        if "install" in command:
            (manage.VENV / "half_a_package.py").touch()
            raise KeyboardInterrupt

    monkeypatch.setattr(manage, "run", interrupted)
    with pytest.raises(KeyboardInterrupt):
        manage.prepare("serve")
    monkeypatch.setattr(manage, "run", write_down)
    manage.prepare("serve")
    assert kinds(manage) == ["venv", "serve.txt", "venv", "serve.txt"]
    assert not (manage.VENV / "half_a_package.py").exists()


def test_concurrent_starts_install_once(manage, monkeypatch):
    write_down, installing, may_finish = manage.run, threading.Event(), threading.Event()

    def slow(command):
        write_down(command)
        installing.set()
        assert may_finish.wait(10)

    monkeypatch.setattr(manage, "run", slow)
    starts = [threading.Thread(target=manage.prepare, args=("serve",)) for _ in range(2)]
    starts[0].start()
    assert installing.wait(10)
    starts[1].start()
    may_finish.set()
    for start in starts:
        start.join(10)
    assert kinds(manage) == ["venv", "serve.txt"]


def test_a_foreign_environment_is_not_changed(manage):
    (manage.VENV / "bin").mkdir(parents=True)
    with pytest.raises(manage.Stop, match="was not made by MemoryHub"):
        manage.prepare("serve")
    assert [path.name for path in manage.VENV.iterdir()] == ["bin"]


def without(manage, monkeypatch, *modules):
    monkeypatch.setattr(manage.importlib.util, "find_spec", lambda name: None if name in modules else object())


def test_without_ensurepip_the_system_pip_is_used(manage, monkeypatch):
    without(manage, monkeypatch, "ensurepip")
    monkeypatch.setattr(manage, "outer_python_has_pip", lambda: True)
    manage.prepare("serve")
    make, install = manage.steps
    assert "--without-pip" in make
    assert install[:5] == [manage.outer_python(), "-m", "pip", "--python", str(manage.PYTHON)]


@pytest.mark.parametrize(
    ("version", "can"), [("22.0.2", False), ("22.3", True), ("24.1b1", True), ("100.0", True), ("", False)]
)
def test_only_a_pip_with_the_python_option_is_used(manage, monkeypatch, version, can):
    done = subprocess.CompletedProcess([], 0, stdout=f"{version}\n")
    monkeypatch.setattr(manage.subprocess, "run", lambda *_, **__: done)
    assert manage.outer_python_has_pip() is can


def test_without_a_system_pip_the_environment_gets_its_own(manage, monkeypatch):
    monkeypatch.setattr(manage, "outer_python_has_pip", lambda: False)
    manage.prepare("serve")
    assert "--without-pip" not in manage.steps[0]


def test_without_venv_and_pip_the_debian_package_is_named(manage, monkeypatch):
    without(manage, monkeypatch, "ensurepip")
    monkeypatch.setattr(manage, "outer_python_has_pip", lambda: False)
    with pytest.raises(manage.Stop, match="apt install python3-venv"):
        manage.prepare("serve")


def test_an_unwritable_folder_is_reported_in_one_sentence(manage):
    (manage.HERE / ".venv").write_text("a file")
    with pytest.raises(manage.Stop, match="cannot prepare"):
        manage.prepare("serve")


def test_a_failed_step_shows_the_installer_s_last_lines(manage, monkeypatch):
    monkeypatch.undo()
    program = "print('noise\\nERROR: [Errno 28] No space left on device'); raise SystemExit(1)"
    with pytest.raises(manage.Stop) as stopped:
        manage.run([sys.executable, "-c", program])
    assert "The disk is full." in str(stopped.value)
    assert "noise" not in str(stopped.value)


def test_dependencies_are_checked_before_using_this_python(manage):
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    wanted = {plain_name(re.match(r"[\w-]+", text)[0]) for text in project["dependencies"]}
    distributions = packages_distributions()
    looked_for = {plain_name(name) for module in manage.SERVE_MODULES for name in distributions[module]}
    assert wanted <= looked_for


def plain_name(name):
    return name.lower().replace("_", "-")


def pins(lock):
    return dict(re.findall(r"^([\w.-]+(?:\[\w+\])?)==(\S+)", lock.read_text(), re.MULTILINE))


def test_locks_pin_every_dependency_and_agree():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    serve_pins, dev_pins = pins(SERVE_LOCK), pins(DEV_LOCK)
    assert {re.match(r"[\w-]+", text)[0] for text in project["dependencies"]} <= serve_pins.keys()
    assert {re.match(r"[\w-]+", text)[0] for text in project["optional-dependencies"]["dev"]} <= dev_pins.keys()
    assert serve_pins.items() <= dev_pins.items()


@pytest.mark.parametrize("lock", [SERVE_LOCK, DEV_LOCK], ids=lambda lock: lock.name)
def test_lock_is_hashed_and_names_no_host(lock):
    text = lock.read_text()
    assert "://" not in text
    assert "--index-url" not in text
    requirements = re.split(r"\n(?=\S)", text.strip())
    assert [requirement for requirement in requirements if "--hash=sha256:" not in requirement] == []


@pytest.mark.parametrize("host", ["0.0.0.0", "192.0.2.7", "::"])  # noqa: S104
def test_hub_without_tls_listens_on_loopback_only(host, settings):
    settings.MEMORYHUB_URL = "http://192.0.2.7:8765"
    with pytest.raises(CommandError, match="set MEMORYHUB_URL"):
        serve._listen(host, 0)


def test_hub_in_debug_mode_listens_on_loopback_only(settings):
    settings.DEBUG, settings.MEMORYHUB_URL = True, "https://hub.example.org"
    with pytest.raises(CommandError, match="MEMORYHUB_DEBUG"):
        serve._listen("0.0.0.0", 0)  # noqa: S104


def test_a_port_in_use_is_reported():
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        with pytest.raises(CommandError, match=f"Port {port} is in use"):
            serve._listen("127.0.0.1", port)


@pytest.mark.parametrize(
    ("url", "address"),
    [("https://hub.example.org", "https://hub.example.org"), ("http://127.0.0.1:8765", "http://127.0.0.1:{port}")],
)
def test_the_printed_address_is_the_public_or_actual_one(url, address, settings):
    settings.MEMORYHUB_URL = url
    with serve._listen("127.0.0.1", 0) as listener:
        assert serve._address(listener) == address.format(port=listener.getsockname()[1])


WAITING_CHILD = "import os, sys; open(sys.argv[1], 'a').write(f'{os.getpid()}\\n'); sys.stdin.read()"
FAILING_CHILD = "import sys; open(sys.argv[1], 'a').write('x\\n')"


def wait_until(condition, seconds=20.0):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if found := condition():
            return found
        time.sleep(0.05)
    pytest.fail(f"nothing after {seconds} s")


def lines(path):
    return path.read_text().splitlines() if path.exists() else []


def parent_of(pid):
    """Return the parent's id of a running process, or None if it has ended, zombies included."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return None
    state, parent = text.rpartition(")")[2].split()[:2]
    return None if state in "ZX" else int(parent)


def is_gone(pid):
    return parent_of(pid) is None


@linux_only
def test_child_ends_with_the_block(tmp_path):
    started = tmp_path / "started"
    with supervisor.keep_running([sys.executable, "-c", WAITING_CHILD, str(started)], folder=tmp_path):
        (pid,) = wait_until(lambda: lines(started))
    assert is_gone(pid)


def test_a_child_that_ends_is_restarted(tmp_path, monkeypatch, caplog):
    monkeypatch.setattr(supervisor, "FIRST_PAUSE", 0.05)
    started = tmp_path / "started"
    with supervisor.keep_running([sys.executable, "-c", FAILING_CHILD, str(started)], folder=tmp_path):
        wait_until(lambda: len(lines(started)) >= 2)
    assert "The worker ended (status 0)" in caplog.text


def test_a_child_that_cannot_start_is_reported_and_retried(tmp_path, monkeypatch, caplog):
    monkeypatch.setattr(supervisor, "FIRST_PAUSE", 0.05)
    with supervisor.keep_running([str(tmp_path / "nothing")], folder=tmp_path):
        wait_until(lambda: caplog.text.count("The worker ended") >= 2)
    assert "No such file" in caplog.text


@pytest.fixture
def hub_home(request, tmp_path):
    """A home folder, empty or (for a test that asks for it) with a database."""
    home = tmp_path / "home"
    home.mkdir()
    if "new_database" in request.fixturenames:
        request.getfixturevalue("new_database")(home / "memoryhub.sqlite3")
    return home


@pytest.fixture
def hub(hub_home):
    """Start a hub on a free port; yield its process and its first lines of output."""
    left_out = ("DJANGO_SETTINGS_MODULE", "DATABASE_URL", "TEST_DATABASE_URL", "MEMORYHUB_URL")
    environment = {name: value for name, value in os.environ.items() if name not in left_out}
    environment |= {"MEMORYHUB_HOME": str(hub_home), "PYTHONUNBUFFERED": "1"}
    command = [sys.executable, "manage.py", "serve", "--port", "0"]
    with subprocess.Popen(
        command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        watchdog = threading.Timer(180, process.kill)
        watchdog.start()
        try:
            greeting = read_greeting(process)
            assert "Press Ctrl-C to stop." in greeting
            yield process, greeting
        finally:
            watchdog.cancel()
            process.kill()


def read_greeting(process):
    greeting = []
    for line in process.stdout:
        greeting.append(line)
        if line.startswith("Press Ctrl-C"):
            break
    return "".join(greeting)


def children_of(process):
    pids = [int(folder.name) for folder in Path("/proc").iterdir() if folder.name.isdigit()]
    return [pid for pid in pids if parent_of(pid) == process.pid]


@linux_only
@pytest.mark.slow
@pytest.mark.usefixtures("new_database")
def test_serve_prints_the_setup_link_responds_and_stops_cleanly(hub, hub_home):
    process, greeting = hub
    address, port = re.search(r"MemoryHub is running at (http://127\.0\.0\.1:(\d+))", greeting).groups()
    assert re.search(rf"setup link +{re.escape(address)}/setup/[\w-]{{20,}}/\n", greeting)
    assert (hub_home / "address").read_text().partition("\n")[0] == address
    connection = http.client.HTTPConnection("127.0.0.1", int(port), timeout=90)  # the first request loads the site
    connection.request("GET", "/static/css/main.css")
    assert connection.getresponse().status == 200
    connection.close()
    (worker,) = wait_until(lambda: children_of(process))
    process.send_signal(signal.SIGTERM)
    assert process.wait(30) == 0
    assert process.stdout.read() == "MemoryHub has stopped.\n"
    assert not (hub_home / "address").exists()
    assert is_gone(worker)


@linux_only
@pytest.mark.slow
@pytest.mark.usefixtures("new_database")
def test_the_worker_ends_when_the_hub_is_killed(hub):
    process, _ = hub
    (worker,) = wait_until(lambda: children_of(process))
    process.kill()
    process.wait(10)
    wait_until(lambda: is_gone(worker), seconds=120)  # it watches its standard input once it has loaded
