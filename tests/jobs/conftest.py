from __future__ import annotations

import pytest
from django.db import connection

from memoryhub.jobs import progress
from sessions_app.models import Workspace
from tests.hub import open_at, talk


@pytest.fixture
def home(settings, tmp_path, monkeypatch):
    settings.MEMORYHUB_HOME = tmp_path
    monkeypatch.setattr(progress, "STEP_SECONDS", 0.0)  # save every step
    return tmp_path


@pytest.fixture
def due(workspace) -> Workspace:
    """Return a workspace with two sessions over their limits."""
    Workspace.objects.update(max_entries=10)
    workspace.refresh_from_db()
    for key in ("cli:one", "cli:two"):
        talk(open_at(workspace, key), 6)
    connection.check_constraints()  # PostgreSQL can't alter tables with pending trigger events
    return workspace
