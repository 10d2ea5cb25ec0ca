from __future__ import annotations

import pytest
from django.contrib.auth.models import User
from django.test import Client

from sessions_app.models import Membership, Workspace


@pytest.fixture
def operator(workspace: Workspace) -> Client:
    """A person with the role operator."""
    user = User.objects.create_user("operator-person")
    Membership.objects.create(workspace=workspace, user=user, role=Membership.Role.OPERATOR)
    client = Client()
    client.force_login(user)
    return client
