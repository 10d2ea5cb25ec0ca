"""The client as a distribution of its own: see packaging/client and ``make client``."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
CLIENT = ROOT / "memoryhub" / "client"
SHARED = ("items", "memory_directory")  # used by several adapters


def project(path: str) -> dict:
    return tomllib.loads((ROOT / path / "pyproject.toml").read_text())


def test_the_wheel_has_all_packages_and_the_hubs_version():
    wheel, hub = project("packaging/client"), project(".")
    packages = {str(file.parent.relative_to(ROOT)).replace("/", ".") for file in CLIENT.rglob("*.py")}

    assert set(wheel["tool"]["setuptools"]["packages"]) == packages
    assert wheel["project"]["version"] == hub["project"]["version"]
    assert set(wheel["project"]["dependencies"]) <= set(hub["project"]["dependencies"])


def test_the_client_imports_nothing_of_the_hub_and_no_adapter():
    program = "import sys, memoryhub.client; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)

    ours = {name for name in loaded.stdout.split() if name.startswith("memoryhub.")}
    assert not {name for name in ours if not name.startswith("memoryhub.client")}
    assert not {name for name in ours if "adapters" in name}
    assert "django" not in loaded.stdout.split()


@pytest.mark.parametrize("path", sorted((CLIENT / "adapters").glob("*.py")), ids=lambda path: path.stem)
def test_adapters_are_small(path):
    assert path.stem in SHARED or len(path.read_text().splitlines()) < 80
