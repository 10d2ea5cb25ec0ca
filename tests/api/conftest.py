from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from django.core.signals import request_finished, request_started
from django.db import close_old_connections
from django.http import HttpResponse
from django.test import Client
from django.utils import timezone

from knowledge_app.models import KeyValue, KnowledgeEntry
from knowledge_app.services.rows.undoable_edits import edit_rows
from memoryhub.agents.api_tokens import SCOPES, issue_token
from sessions_app.models import Workspace
from sessions_app.services.audit import Actor, By
from tests.hub import by

OLGA = Actor("person", "olga")
Call = Callable[..., HttpResponse]


def token_for(workspace: Workspace, *scopes: str, name: str = "") -> str:
    """Create a token with some scopes (default: all) and return its text."""
    wanted = scopes or tuple(SCOPES)
    _, text = issue_token(workspace, name or "-".join(wanted), wanted, by=By(OLGA, timezone.now()))
    return text


def caller(token: str) -> Call:
    """Return a function that calls the API with a token; a body is sent as JSON."""
    client = Client()

    def call(method: str, address: str, body: Any = None, **headers: str) -> HttpResponse:
        data = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        sent |= {"Authorization": f"Bearer {token}"} if token else {}
        return client.generic(method, f"/api/v1{address}", data, content_type="application/json", headers=sent)

    return call


def table_of(row: KeyValue | KnowledgeEntry) -> str:
    return "key_values" if isinstance(row, KeyValue) else "knowledge"


def edit(row: KeyValue | KnowledgeEntry, action: str, **values: object) -> None:
    edit_rows(row.workspace, table_of(row), action, [row.pk], values=values, by=by())


@contextmanager
def one_connection() -> Iterator[None]:
    """Keep the test's transaction open at the end of a request, as Django's test client does."""
    request_started.disconnect(close_old_connections)
    request_finished.disconnect(close_old_connections)
    try:
        yield
    finally:
        request_started.connect(close_old_connections)
        request_finished.connect(close_old_connections)


@pytest.fixture
def agent(workspace: Workspace) -> Call:
    """An agent with all scopes."""
    return caller(token_for(workspace))
