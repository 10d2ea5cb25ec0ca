from pathlib import Path

import pytest

from sessions_app.models import Workspace
from tests.sync.followed_folders import TEXT, followed


@pytest.fixture
def _no_waiting(settings) -> None:
    settings.MEMORYHUB_QUIET_SECONDS = 0


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "agent"
    (made / "memory").mkdir(parents=True)
    (made / "memory" / "MEMORY.md").write_text(TEXT)
    return made


@pytest.fixture
def file(folder: Path) -> Path:
    return folder / "memory" / "MEMORY.md"


@pytest.fixture
def atlas(folder: Path) -> Workspace:
    return followed(folder)
