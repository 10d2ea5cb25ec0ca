"""A hub with another secret key than the database's doesn't start."""

from __future__ import annotations

import asyncio
import importlib

import pytest
from django.core.management import CommandError, call_command
from django.core.management.base import SystemCheckError

from memoryhub import asgi
from memoryhub.management.commands import serve
from memoryhub.management.database_ready import prepare_database
from memoryhub.models import StoredSetting
from sessions_app.models import AuditRecord
from sessions_app.services.secret_key import NAME, DifferentKey, has_known_key, require_known_key

pytestmark = pytest.mark.django_db


@pytest.fixture
def another_key(settings) -> None:
    require_known_key()
    settings.SECRET_KEY = "that of another machine"


def test_a_database_without_a_check_gets_that_of_the_key():
    assert has_known_key()

    prepare_database()

    assert StoredSetting.objects.filter(name=NAME).count() == 1
    assert has_known_key()
    prepare_database()


@pytest.mark.parametrize(
    ("start", "error"),
    [
        (serve._migrate, CommandError),
        (prepare_database, DifferentKey),
        (lambda: call_command("check", databases=["default"]), SystemCheckError),
        (lambda: importlib.import_module("memoryhub.wsgi"), DifferentKey),
    ],
    ids=["serve", "worker", "check", "wsgi"],
)
def test_a_hub_with_another_key_does_not_start(another_key, start, error):
    with pytest.raises(error) as refused:
        start()

    message = str(refused.value)
    assert "MEMORYHUB_SECRET_KEY" in message
    assert "secret_key --accept" in message
    assert error is SystemCheckError or "\n" not in message


def test_an_asgi_server_with_another_key_does_not_start(monkeypatch):
    monkeypatch.setattr(asgi, "_check_key", _refuse)
    sent = []

    async def receive():
        return {"type": "lifespan.startup"}

    async def send(message):
        sent.append(message)

    asyncio.run(asgi.application({"type": "lifespan", "state": {}}, receive, send))

    assert [message["type"] for message in sent] == ["lifespan.startup.failed"]
    assert "MEMORYHUB_SECRET_KEY" in sent[0]["message"]


def _refuse() -> None:
    raise DifferentKey


def test_the_key_can_be_changed_on_purpose(another_key, command):
    assert command("secret_key", status=1)["error"]["code"] == "different_secret_key"
    assert command("secret_key", "--accept") == {"changed": True}
    assert command("secret_key", "--accept") == {"changed": False}
    assert command("secret_key") == {"changed": False}
    assert AuditRecord.objects.filter(action="hub.key_changed").count() == 1
    prepare_database()
