from __future__ import annotations

import pytest
from pytest_httpserver import HTTPServer

from sessions_app.models import Session, Workspace
from tests.hub import open_at, talk
from tests.runs.consolidations import BASE, write


@pytest.fixture
def session(workspace, settings, httpserver: HTTPServer) -> Session:
    settings.MEMORYHUB_LLM_BASE_URL = httpserver.url_for("/v1")
    settings.MEMORYHUB_LLM_MODEL = "test-model"
    Workspace.objects.update(memory_window=20)
    write(workspace, BASE)
    session = open_at(Workspace.objects.get())
    talk(session, 10)
    session.refresh_from_db()
    return session
