from __future__ import annotations

import pytest

from sessions_app.models import Session, Workspace
from tests.hub import open_at


@pytest.fixture
def sessions(workspace: Workspace) -> list[Session]:
    return [open_at(workspace, key) for key in ("cli:one", "cli:two", "telegram:three")]
