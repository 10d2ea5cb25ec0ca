"""serve starts and stops all its processes."""

import http.client
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from django.core.management.base import CommandError

from memoryhub.management import supervisor
from memoryhub.management.commands import serve

ROOT = Path(__file__).resolve().parents[2]
linux_only = pytest.mark.skipif(sys.platform != "linux", reason="looks at processes through /proc")


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
        command,
        cwd=ROOT,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
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
