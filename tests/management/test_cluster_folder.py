"""The folder of deploy/cluster/cluster.py, whose files say which programs are run."""

from __future__ import annotations

import os
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

import pytest
from django.conf import settings


@pytest.fixture
def script() -> ModuleType:
    spec = spec_from_file_location("cluster", Path(settings.BASE_DIR) / "deploy" / "cluster" / "cluster.py")
    assert spec
    assert spec.loader
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_a_new_folder_can_be_listed_by_its_owner_only(script, tmp_path):
    folder = script.own_folder(tmp_path / "new")

    assert folder.stat().st_mode & 0o066 == 0
    assert script.own_folder(folder) == folder  # a second start


def test_a_folder_prepared_by_somebody_else_is_refused(script, tmp_path, monkeypatch):
    (tmp_path / "theirs").mkdir()
    own = os.getuid()
    monkeypatch.setattr(script.os, "getuid", lambda: own + 1)

    with pytest.raises(SystemExit, match="isn't a folder of your own"):
        script.own_folder(tmp_path / "theirs")


def test_a_folder_that_others_can_write_to_and_a_link_are_refused(script, tmp_path):
    (tmp_path / "open").mkdir()
    (tmp_path / "open").chmod(0o777)
    (tmp_path / "own").mkdir(mode=0o700)
    (tmp_path / "link").symlink_to(tmp_path / "own")

    for name in ("open", "link"):
        with pytest.raises(SystemExit, match="isn't a folder of your own"):
            script.own_folder(tmp_path / name)
