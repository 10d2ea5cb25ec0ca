"""The steps of OAuth, as a client and a browser take them."""

from __future__ import annotations

import base64
import hashlib
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

from django.contrib.auth.models import User
from django.http import HttpResponse
from django.test import Client

from memoryhub.agents.oauth.clients import register_client
from memoryhub.models import OAuthClient
from sessions_app.models import Membership, Workspace
from tests.hub import NOW

CALLBACK = "https://claude.example/callback"
VERIFIER = "v" * 64
CHALLENGE = base64.urlsafe_b64encode(hashlib.sha256(VERIFIER.encode()).digest()).decode().rstrip("=")
HUB = "http://127.0.0.1:8765"


def a_client(name: str = "Claude", *redirect_uris: str) -> OAuthClient:
    return register_client(f"id-of-{name}", name, redirect_uris or [CALLBACK], NOW)


def an_operator(*workspaces: Workspace, name: str = "olga") -> User:
    user = User.objects.create_user(name)
    for workspace in workspaces:
        Membership.objects.create(workspace=workspace, user=user, role="operator")
    return user


def signed_in(user: User) -> Client:
    client = Client(headers={"host": "127.0.0.1:8765"})
    client.force_login(user)
    return client


def wish(client: OAuthClient, **changes: str | None) -> str:
    """Return the address that a client opens in the browser. None leaves a parameter out."""
    sent = {
        "response_type": "code",
        "client_id": client.client_id,
        "redirect_uri": client.redirect_uris[0],
        "state": "s1",
        "code_challenge": CHALLENGE,
        "code_challenge_method": "S256",
        "resource": f"{HUB}/mcp",
        "scope": "read append",
    }
    values = {name: value for name, value in (sent | changes).items() if value is not None}
    return f"/oauth/authorize/?{urlencode(values)}"


def allow(browser: Client, address: str, **answers: Any) -> HttpResponse:
    return browser.post(address, {"workspace": "atlas", "scopes": ["read", "append"]} | answers)


def sent_back(response: HttpResponse) -> dict[str, str]:
    """Return the parameters with which the person is sent back to the client."""
    assert response.status_code == 303, response.content.decode()
    return {name: values[0] for name, values in parse_qs(urlsplit(response["Location"]).query).items()}
