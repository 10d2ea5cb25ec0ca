"""manage.py creates its environment."""

import ast
import importlib.util
import os
import re
import subprocess
import sys
import threading
import tomllib
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
SERVE_LOCK = ROOT / "requirements" / "serve.txt"
DEV_LOCK = ROOT / "requirements" / "dev.txt"
INSTALLER_LOCK = ROOT / "requirements" / "installer.txt"


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

    def write_down(command, variables=None):
        module.steps.append(command)
        if "venv" in command:
            module.PYTHON.parent.mkdir(parents=True)
            module.PYTHON.touch()
        elif "installer.txt" in kinds(module):
            module.PYTHON.with_name("uv").touch()

    monkeypatch.setattr(module, "run", write_down)
    monkeypatch.setattr(module, "uv_settings", dict)
    return module


def kinds(manage):
    return ["venv" if "venv" in step else Path(step[step.index("-r") + 1]).name for step in manage.steps]


@pytest.mark.slow
@pytest.mark.postgres
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
    assert kinds(manage) == ["venv", "installer.txt", "serve.txt"]
    assert all("--require-hashes" in step for step in manage.steps[1:])


@pytest.mark.parametrize("failing", ["installer.txt", "uv"])
def test_pip_installs_the_packages_where_uv_cannot(manage, monkeypatch, failing):
    write_down = manage.run

    def without_uv(command, variables=None):
        write_down(command)
        if failing in (kinds(manage)[-1], Path(command[0]).name):
            raise manage.Stop("not on this platform")

    monkeypatch.setattr(manage, "run", without_uv)
    manage.prepare("serve")
    assert kinds(manage)[-1] == "serve.txt"
    assert Path(manage.steps[-1][0]).name != "uv"
    assert manage.is_current("serve")


def test_uv_uses_the_index_that_pip_is_configured_with(manage, monkeypatch):
    monkeypatch.undo()
    monkeypatch.setenv("SSL_CERT_FILE", "/own.pem")
    listed = """:env:.index-url='https://env.example/simple'
global.cert='/pip.pem'
global.extra-index-url='\\nhttps://a.example/simple\\nhttps://b.example/simple'
global.index-url='https://global.example/simple'
global.timeout='60'
"""
    done = subprocess.CompletedProcess([], 0, stdout=listed)
    monkeypatch.setattr(manage.subprocess, "run", lambda *_, **__: done)
    assert manage.uv_settings() == {
        "UV_INDEX_STRATEGY": "unsafe-best-match",
        "UV_SYSTEM_CERTS": "true",
        "UV_DEFAULT_INDEX": "https://env.example/simple",
        "UV_INDEX": "https://a.example/simple https://b.example/simple",
    }


def test_changed_lock_is_installed_into_the_same_environment(manage):
    manage.prepare("serve")
    (manage.HERE / "requirements" / "serve.txt").write_text("# changed\n")
    manage.prepare("serve")
    assert kinds(manage) == ["venv", "installer.txt", "serve.txt", "serve.txt"]


def test_the_test_environment_can_also_serve(manage):
    manage.prepare("dev")
    manage.prepare("serve")
    assert kinds(manage) == ["venv", "installer.txt", "dev.txt"]


def test_an_interrupted_installation_is_repeated(manage, monkeypatch):
    write_down = manage.run

    def interrupted(command, variables=None):
        write_down(command)
        if kinds(manage)[-1] == "serve.txt":
            (manage.VENV / "half_a_package.py").touch()
            raise KeyboardInterrupt

    monkeypatch.setattr(manage, "run", interrupted)
    with pytest.raises(KeyboardInterrupt):
        manage.prepare("serve")
    monkeypatch.setattr(manage, "run", write_down)
    manage.prepare("serve")
    assert kinds(manage) == ["venv", "installer.txt", "serve.txt"] * 2
    assert not (manage.VENV / "half_a_package.py").exists()


def test_concurrent_starts_install_once(manage, monkeypatch):
    write_down, installing, may_finish = manage.run, threading.Event(), threading.Event()

    def slow(command, variables=None):
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
    assert kinds(manage) == ["venv", "installer.txt", "serve.txt"]


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
    make, install, _ = manage.steps
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


@pytest.mark.parametrize("lock", [SERVE_LOCK, DEV_LOCK, INSTALLER_LOCK], ids=lambda lock: lock.name)
def test_lock_is_hashed_and_names_no_host(lock):
    text = lock.read_text()
    assert "://" not in text
    assert "--index-url" not in text
    requirements = re.split(r"\n(?=\S)", text.strip())
    assert [requirement for requirement in requirements if "--hash=sha256:" not in requirement] == []
