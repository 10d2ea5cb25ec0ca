from __future__ import annotations

from pathlib import Path

import pytest

from memoryhub.sync.views import export


@pytest.fixture
def home(settings, monkeypatch, tmp_path: Path) -> Path:
    settings.MEMORYHUB_HOME = tmp_path / "home"
    settings.MEMORYHUB_HOME.mkdir()
    settings.MEMORYHUB_ROOTS = [tmp_path / "agents"]
    monkeypatch.setattr(export, "LARGE_ENTRIES", 0)  # an export is a job
    return settings.MEMORYHUB_HOME
