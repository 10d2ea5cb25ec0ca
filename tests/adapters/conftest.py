"""The adapters against the real frameworks and a running hub: see ``make adapters``."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from django.utils import timezone

from memoryhub.agents.api_tokens import issue_token
from memoryhub.client import MemoryHub
from sessions_app.models import Workspace
from sessions_app.services.audit import By
from tests.hub import PERSON


@pytest.fixture
def hub(live_server) -> Iterator[MemoryHub]:
    """A client with a token of all scopes for a workspace of the running hub."""
    workspace = Workspace.objects.create(slug="atlas", name="Atlas")
    scopes = ("read", "append", "edit", "consolidate")
    token = issue_token(workspace, "frameworks", scopes, by=By(PERSON, timezone.now()), per_minute=60_000)[1]
    with MemoryHub(live_server.url, token, retries=0) as client:
        yield client
