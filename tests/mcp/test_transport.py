import asyncio
from datetime import timedelta

import httpx2
import pytest
from django.contrib.auth.models import User
from django.utils import timezone

from memoryhub import asgi
from memoryhub.agents.api_tokens import issue_token, revoke_token
from memoryhub.models import ApiToken
from sessions_app.services.audit import By
from tests.api.conftest import token_for
from tests.hub import PERSON, client_of
from tests.mcp.conftest import HUB, web
from tests.whole_site.roles import TOOLS

shared = pytest.mark.usefixtures("one_connection")
LIST = b'{"jsonrpc": "2.0", "id": 1, "method": "tools/list"}'
FORM = {"Content-Type": "application/json", "Accept": "application/json"}
UNKNOWN = f"mh_{'0' * 10}_{'x' * 43}"


def send(method="POST", path="/mcp", content=LIST, **headers):
    """Send a request. Header names are written with underscores."""

    async def run():
        async with web() as client:
            sent = FORM | {name.replace("_", "-"): value for name, value in headers.items()}
            return await client.request(method, path, content=content, headers=sent)

    return asyncio.run(run())


def problem(response):
    assert response.headers["Content-Type"] == "application/problem+json"
    return response.status_code, response.json()["code"]


@pytest.mark.parametrize(
    "host", ["evil.example", "127.0.0.1.evil.example:8765", "evil.example:8765", "127.0.0.1@evil.example", "", "a b"]
)
def test_unknown_host_names_are_refused(host):
    assert problem(send(Host=host)) == (421, "unknown_host")


@pytest.mark.parametrize(
    "origin",
    [
        "https://evil.example",
        "http://127.0.0.1.evil.example:8765",
        "http://localhost:3000",
        "null",
        "",
        "http://127.0.0.1",
    ],
)
def test_foreign_origins_are_refused(origin):
    assert problem(send(Origin=origin)) == (403, "foreign_origin")


@pytest.mark.parametrize("origin", [HUB, "http://localhost:8765", "http://[::1]:8765"])
def test_own_origins_still_need_a_token(origin):
    assert problem(send(Origin=origin)) == (401, "not_authenticated")


def test_a_public_hub_requires_its_host_name_and_https(settings):
    settings.MEMORYHUB_URL = "https://hub.example.org"
    settings.ALLOWED_HOSTS = ["hub.example.org"]
    settings.SECURE_SSL_REDIRECT = True
    public = {"Host": "hub.example.org", "Origin": "https://hub.example.org"}

    assert problem(send(**public, X_Forwarded_Proto="https")) == (401, "not_authenticated")
    assert problem(send(**public)) == (403, "https_needed")
    assert problem(send()) == (421, "unknown_host")


@pytest.mark.parametrize("shown", ["", "Bearer", "Bearer nonsense", f"Basic {UNKNOWN}"])
def test_a_missing_or_unknown_token_gets_401(shown):
    response = send(Authorization=shown)

    assert problem(response) == (401, "not_authenticated")
    assert response.headers["WWW-Authenticate"].startswith('Bearer realm="MemoryHub"')


@shared
def test_a_revoked_token_is_refused(workspace):
    now = timezone.now()
    token, revoked = issue_token(workspace, "revoked", ["read"], by=By(PERSON, now))
    revoke_token(token, by=By(PERSON, now))
    before = now - timedelta(days=2)
    ends = before + timedelta(days=1)
    _, expired = issue_token(workspace, "expired", ["read"], by=By(PERSON, before), expires_at=ends)
    good = token_for(workspace)

    for text in (revoked, expired, UNKNOWN):
        assert problem(send(Authorization=f"Bearer {text}")) == (401, "not_authenticated")
    for path in ("/mcp", "/mcp/"):
        assert len(send(path=path, Authorization=f"bearer {good}").json()["result"]["tools"]) == len(TOOLS)


@shared
def test_a_login_session_does_not_authenticate():
    client = client_of(User.objects.create_superuser("olga"))

    response = send(Cookie=f"sessionid={client.cookies['sessionid'].value}")

    assert problem(response) == (401, "not_authenticated")


@shared
def test_other_methods_encodings_and_sizes_are_refused(workspace, settings):
    settings.DATA_UPLOAD_MAX_MEMORY_SIZE = 2**20
    token = {"Authorization": f"Bearer {token_for(workspace)}"}
    too_much = b" " * (2**20 + 1)

    async def drip():
        yield too_much

    assert problem(send("GET", content=b"", **token)) == (405, "method_not_allowed")
    assert problem(send("DELETE", content=b"", **token)) == (405, "method_not_allowed")
    assert problem(send(Content_Encoding="gzip", **token)) == (415, "body_compressed")
    assert problem(send(content=too_much, **token)) == (413, "body_too_large")
    assert send(content=drip(), **token).status_code == 413
    assert send(content=b"nonsense", **token).status_code == 400


def test_repeated_security_headers_are_refused():
    async def run():
        async with web() as client:
            twice = [*FORM.items(), ("Origin", HUB), ("Origin", "https://evil.example")]
            return await client.post("/mcp", content=LIST, headers=twice)

    assert problem(asyncio.run(run())) == (400, "header_repeated")


@shared
def test_calls_are_rate_limited(workspace, within_a_minute):
    token = {"Authorization": f"Bearer {token_for(workspace)}"}
    ApiToken.objects.update(per_minute=1)

    first, second = send(**token), send(**token)

    assert first.status_code == 200
    assert problem(second) == (429, "too_many_calls")
    assert 0 < int(second.headers["Retry-After"]) <= 60


@shared
def test_a_server_without_lifespan_support_gets_503(workspace):
    async def run():
        async with httpx2.AsyncClient(transport=httpx2.ASGITransport(app=asgi.application), base_url=HUB) as client:
            return await client.post("/mcp", content=LIST, headers=FORM | {"Authorization": f"Bearer {token}"})

    token = token_for(workspace)

    assert problem(asyncio.run(run())) == (503, "not_running")


def test_the_lifespan_provides_the_handler(monkeypatch):
    monkeypatch.setattr(asgi, "_check_key", lambda: None)
    state, sent = {}, []

    async def receive():
        return {"type": "lifespan"}

    async def take(message):
        sent.append(message["type"])

    asyncio.run(asgi.application({"type": "lifespan", "state": state}, receive, take))

    assert sent == ["lifespan.startup.complete", "lifespan.shutdown.complete"]
    assert len(state) == 1
