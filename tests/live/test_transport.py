"""Opening a stream: who may, and what the page learns."""

from __future__ import annotations

import asyncio
from ipaddress import ip_network
from typing import Any

import pytest
from django.conf import settings as project_settings
from django.test import Client
from django.urls import reverse

from memoryhub import asgi
from memoryhub.lib.http.proxy_header import PEER
from memoryhub.live import streams, transport
from sessions_app.models import Workspace
from tests.hub import open_at

pytestmark = pytest.mark.django_db(transaction=True)


def cookie(client: Client) -> tuple[bytes, bytes]:
    name = project_settings.SESSION_COOKIE_NAME
    return b"cookie", f"{name}={client.cookies[name].value}".encode()


def opening(*headers: tuple[bytes, bytes], **more: Any) -> dict[str, Any]:
    given = {b"host": b"127.0.0.1"} | dict(headers)
    return {"type": "http", "method": "GET", "path": streams.PATH, "headers": [*given.items()], "state": {}} | more


def status(*headers: tuple[bytes, bytes], is_followed: bool = True, **more: Any) -> int:
    """Return the status of a response that ends."""
    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)

    async def ask() -> None:
        async def receive() -> Any:
            return await asyncio.Future()

        async with asyncio.timeout(30):
            await asgi.application(opening(*headers, **more), receive, send)

    async def ask_followed() -> None:
        async with streams.open_streams.followed(transport.read):
            await ask()

    asyncio.run(ask_followed() if is_followed else ask())
    return int(sent[0]["status"])


def test_a_change_is_told_through_the_application(workspace, viewer_client, monkeypatch):
    monkeypatch.setattr(streams, "TICK_SECONDS", 0.01)
    said: list[bytes] = []

    async def listen() -> None:
        closed, heard = asyncio.Event(), asyncio.Event()

        async def receive() -> Any:
            await closed.wait()
            return {"type": "http.disconnect"}

        async def send(message: Any) -> None:
            if message.get("body"):
                said.append(message["body"])
                heard.set()

        async with asyncio.timeout(60), streams.open_streams.followed(transport.read):
            task = asyncio.create_task(asgi.application(opening(cookie(viewer_client)), receive, send))
            await heard.wait()
            heard.clear()
            await asyncio.to_thread(open_in_thread, workspace)
            await heard.wait()
            closed.set()
            await task

    asyncio.run(listen())

    assert said == [b"data: []\n\n", f"data: [{workspace.pk}]\n\n".encode()]


def open_in_thread(workspace: Workspace) -> None:
    from django.db import connection

    open_at(workspace)
    connection.close()


def test_who_is_not_signed_in_gets_no_stream(workspace, viewer_client):
    ended = cookie(viewer_client)
    viewer_client.logout()

    assert [status(), status(ended), status((b"cookie", b"sessionid=made-up"))] == [401, 401, 401]


def test_the_person_whom_a_proxy_names_must_be_the_one_signed_in(workspace, viewer_client, settings):
    settings.MEMORYHUB_PROXY_HEADER = "x-person"
    settings.MEMORYHUB_PROXY_ADDRESSES = [ip_network("127.0.0.1")]

    assert status(cookie(viewer_client), (b"x-person", b"somebody-else"), state={PEER: "127.0.0.1"}) == 401


def test_a_session_that_the_proxy_began_needs_its_name(workspace, viewer, settings, monkeypatch):
    monkeypatch.setattr(streams, "MAX_PER_PERSON", 0)  # who may have a stream gets 429
    settings.MEMORYHUB_PROXY_HEADER = "x-person"
    settings.MEMORYHUB_PROXY_ADDRESSES = [ip_network("127.0.0.1")]
    settings.AUTHENTICATION_BACKENDS = [settings.PASSWORD_BACKEND, settings.PROXY_BACKEND]
    client = Client()
    client.force_login(viewer, backend=settings.PROXY_BACKEND)
    named = (b"x-person", viewer.username.encode())

    assert status(cookie(client), named, state={PEER: "127.0.0.1"}) == 429
    assert status(cookie(client), named, state={PEER: "10.0.0.9"}) == 401
    assert status(cookie(client), state={PEER: "127.0.0.1"}) == 401


def test_a_required_second_factor_must_be_set_up(workspace, viewer, settings, monkeypatch):
    monkeypatch.setattr(streams, "MAX_PER_PERSON", 0)  # who may have a stream gets 429
    settings.MEMORYHUB_REQUIRE_SECOND_FACTOR = True
    client = Client()
    client.force_login(viewer)  # without a password, so they signed in elsewhere
    assert status(cookie(client)) == 429
    viewer.set_password("of the hub itself")
    viewer.save()
    client.force_login(viewer)

    assert status(cookie(client)) == 403


def test_other_origins_hosts_and_methods_are_refused(workspace, viewer_client):
    own = cookie(viewer_client)

    assert status(own, (b"origin", b"https://elsewhere.example")) == 403
    assert status(own, (b"host", b"elsewhere.example")) == 421
    assert status(own, method="POST") == 405


def test_too_many_streams_are_refused(workspace, viewer_client, monkeypatch):
    monkeypatch.setattr(streams, "MAX_PER_PERSON", 0)

    assert status(cookie(viewer_client)) == 429


def test_pages_name_the_stream_while_it_is_served(workspace, viewer_client, monkeypatch):
    url = reverse("knowledge:knowledge", args=["atlas"])
    assert "data-stream" not in viewer_client.get(url).content.decode()
    assert status(cookie(viewer_client), is_followed=False) == 503

    monkeypatch.setattr(streams.open_streams, "is_followed", True)

    html = viewer_client.get(url).content.decode()
    assert f'data-stream="{streams.PATH}" data-workspace="{workspace.pk}"' in html
    assert "js/live-stream.js" in html
