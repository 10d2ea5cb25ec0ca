from __future__ import annotations

import pytest
from django.test import Client

from sessions_app.models import Membership, Workspace
from tests.hub import client_of, member


@pytest.fixture
def operator(workspace: Workspace) -> Client:
    """A person with the role operator."""
    return client_of(member(workspace, "operator-person", Membership.Role.OPERATOR))
