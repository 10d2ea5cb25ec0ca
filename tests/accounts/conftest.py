from __future__ import annotations

from collections.abc import Iterator

import pytest
from pytest_httpserver import HTTPServer

from tests.oidc_provider import Provider, provider_of_hub


@pytest.fixture
def provider(httpserver: HTTPServer, settings) -> Iterator[Provider]:
    with provider_of_hub(httpserver, settings) as made:
        yield made
