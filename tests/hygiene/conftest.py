from __future__ import annotations

import pytest
from django.urls import reverse


@pytest.fixture
def url(workspace) -> str:
    return reverse("hygiene", args=[workspace.slug])
