from __future__ import annotations

import pytest
from pytest_httpserver import HTTPServer

from tests.embedder import Embedder


@pytest.fixture
def embedder(httpserver: HTTPServer, settings) -> Embedder:
    embedder = Embedder(httpserver)
    settings.MEMORYHUB_EMBEDDING_PROVIDER = "ollama"
    settings.MEMORYHUB_EMBEDDING_MODEL = "tiny"
    settings.MEMORYHUB_EMBEDDING_BASE_URL = embedder.address
    return embedder
