"""The SDK's client signs in to a hub in processes of its own, with a scripted browser."""

from __future__ import annotations

import asyncio
import re
from html import unescape
from urllib.parse import parse_qs, urljoin, urlsplit

import httpx2
import pytest
from mcp import Client
from mcp.client.auth import AuthorizationCodeResult, OAuthClientProvider
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.auth import OAuthClientMetadata

from tests.browser.real_hub import RealHub
from tests.other_hub import manage

PASSWORD = "a calm sea 42"
CALLBACK = "http://127.0.0.1:39999/callback"
PATIENCE = 60.0  # seconds for one answer; the machine may be busy


class Storage:
    """The client's memory."""

    tokens = client = None

    async def get_tokens(self):
        return self.tokens

    async def set_tokens(self, tokens):
        self.tokens = tokens

    async def get_client_info(self):
        return self.client

    async def set_client_info(self, client_info):
        self.client = client_info


class Browser:
    """A person who signs in, and allows whatever asks."""

    def __init__(self, address: str) -> None:
        self.http, self.landed = httpx2.AsyncClient(base_url=address, timeout=PATIENCE), ""

    async def post(self, page: str, address: str, **answers) -> httpx2.Response:
        shown = (await self.http.get(page)).text
        token = re.search(r'name="csrfmiddlewaretoken" value="([^"]+)"', shown)
        assert token is not None, shown
        own = {"csrfmiddlewaretoken": unescape(token[1])}
        headers = {"Referer": urljoin(str(self.http.base_url), page)}
        return await self.http.post(address, data=own | answers, headers=headers)

    async def open(self, address: str) -> None:
        asked = await self.http.get(address)
        assert asked.headers["Location"].startswith("/login/"), "the page is for people who are signed in"
        login = asked.headers["Location"]
        signed_in = await self.post(login, login, username="olga", password=PASSWORD)
        consent = signed_in.headers["Location"]
        allowed = await self.post(consent, consent, workspace="atlas", scopes=["read", "append"])
        self.landed = allowed.headers["Location"]

    async def arrive(self) -> AuthorizationCodeResult:
        assert self.landed.startswith(CALLBACK)
        values = {name: one[0] for name, one in parse_qs(urlsplit(self.landed).query).items()}
        return AuthorizationCodeResult(code=values["code"], state=values["state"], iss=values["iss"])


@pytest.fixture
def hub(tmp_path, new_database):
    hub = RealHub(tmp_path, "--no-worker")
    new_database(tmp_path / "memoryhub.sqlite3")
    hub.start()
    yield hub
    hub.stop()


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_the_sdk_client_signs_in_remembers_and_renews(hub):
    storage, browser = Storage(), Browser(hub.address)
    metadata = OAuthClientMetadata(client_name="Scripted client", redirect_uris=[CALLBACK])

    address = f"{hub.address}/mcp"
    auth = OAuthClientProvider(address, metadata, storage, browser.open, browser.arrive)

    async def prepare():
        await browser.post(hub.setup, hub.setup, username="olga", password1=PASSWORD, password2=PASSWORD)
        made = await browser.post("/new/", "/new/", name="Atlas")
        assert made.headers["Location"].startswith("/w/atlas/")
        browser.http.cookies.clear()

    async def use(tool, **arguments):
        async with (
            httpx2.AsyncClient(auth=auth, follow_redirects=True, timeout=PATIENCE) as http,
            Client(streamable_http_client(address, http_client=http)) as client,
        ):
            return await client.call_tool(tool, arguments)

    async def run():
        await prepare()
        kept = await use("memory_remember", content="The harbour opens at dawn")
        first = storage.tokens
        auth.context.token_expiry_time = 1.0
        browser.landed = ""  # nobody is asked again
        found = await use("memory_recall", query="harbour")
        await browser.http.aclose()
        return kept, found, first

    kept, found, first = asyncio.run(run())

    assert not kept.is_error, kept
    assert "opens at dawn" in found.content[0].text
    assert storage.client.token_endpoint_auth_method == "none"
    assert "Scripted client" in manage(hub.home, str(hub.home / "memoryhub.sqlite3"), "token", "list", "atlas")
    assert storage.tokens.scope == first.scope == "read append"
    assert storage.tokens.access_token != first.access_token
    assert browser.landed == ""
