"""The page on which a person lets an OAuth client use a workspace."""

import pytest
from django.test import Client
from django.urls import reverse

from memoryhub.agents.api_tokens import issue_token
from memoryhub.agents.oauth.clients import delete_unused_clients, register_client
from memoryhub.agents.oauth.redirects import form_target, parse_redirect
from memoryhub.models import ApiToken, OAuthClient, OAuthConnection, ReadGrant
from sessions_app.models import AuditRecord, Membership, Workspace
from sessions_app.services.audit import By
from tests.agents.oauth_flow import CALLBACK, HUB, a_client, allow, an_operator, sent_back, signed_in, wish
from tests.hub import NOW, PERSON, raises_code

pytestmark = pytest.mark.django_db


@pytest.fixture
def browser(workspace):
    return signed_in(an_operator(workspace))


@pytest.mark.parametrize(
    "uri",
    [
        "javascript:alert(1)//x.y",
        "javascript://evil.example/%0aalert(1)",
        "data:text/html,hello",
        "data://text/html",
        "vbscript://x",
        "file:///etc/passwd",
        "blob:https://a.example/x",
        "about:blank",
        "http://evil.example/callback",
        "http://localhost.evil.example/",
        "http://127.0.0.1.evil.example/",
        "https://user@evil.example/",
        "https://claude.example@evil.example/",
        "https://a.example/#fragment",
        "https://a.example\\@evil.example/",
        "https://a.example/\r\nX: y",
        "https://a.example/ b",
        "https://аpple.example/ü",
        "//evil.example/x",
        "/relative",
        "com.example.app",
        "https://a.example/" + "x" * 2000,
        "",
    ],
)
def test_dangerous_redirect_uris_cannot_be_registered(uri):
    assert parse_redirect(uri) is None
    with raises_code("invalid_redirect_uri"):
        register_client("x", "X", [CALLBACK, uri], NOW)
    assert not OAuthClient.objects.exists()


@pytest.mark.parametrize(
    "uri",
    [
        CALLBACK,
        "http://127.0.0.1:33418/",
        "http://localhost/callback",
        "http://[::1]:5000/cb",
        "cursor://anysphere.cursor-mcp/oauth/callback",
        "com.example.app://done",
    ],
)
def test_usual_redirect_uris_can_be_registered(uri):
    assert parse_redirect(uri) == uri
    assert " " not in form_target(uri)
    assert ";" not in form_target(uri)


@pytest.mark.parametrize(
    ("registered", "asked", "is_fine"),
    [
        (CALLBACK, CALLBACK, True),
        (CALLBACK, f"{CALLBACK}/", False),
        (CALLBACK, f"{CALLBACK}?next=1", False),
        (CALLBACK, "https://claude.example:8443/callback", False),
        (CALLBACK, "https://claude.example.evil.example/callback", False),
        (CALLBACK, "https://claude.example/callback/../evil", False),
        ("http://127.0.0.1:1000/cb", "http://127.0.0.1:2000/cb", True),
        ("http://127.0.0.1:1000/cb", "http://127.0.0.1/cb", True),
        ("http://127.0.0.1:1000/cb", "http://localhost:1000/cb", False),
        ("http://127.0.0.1:1000/cb", "http://127.0.0.1:2000/other", False),
        ("http://127.0.0.1:1000/cb", "https://127.0.0.1:2000/cb", False),
        ("http://127.0.0.1:1000/cb", "http://127.0.0.1:2000/cb?a=b", False),
    ],
)
def test_the_redirect_uri_must_be_registered_except_for_loopback_ports(registered, asked, is_fine, browser):
    response = browser.get(wish(a_client("Claude", registered), redirect_uri=asked))

    assert response.status_code == (200 if is_fine else 400)
    assert "Location" not in response


def test_a_person_allows_a_client(workspace, browser):
    page = browser.get(wish(a_client()))
    back = sent_back(allow(browser, wish(a_client("Other"))))

    html = page.content.decode()
    assert "Let <bdi>Claude</bdi> use a workspace?" in html
    assert "claude.example" in html
    assert "form-action 'self' https://claude.example;" in page["Content-Security-Policy"]
    assert "frame-ancestors 'none'" in page["Content-Security-Policy"]
    assert page["X-Frame-Options"] == "DENY"
    assert back.keys() == {"code", "state", "iss"}
    assert (back["state"], back["iss"]) == ("s1", HUB)
    connection = OAuthConnection.objects.get()
    assert connection.token.name == "Other"
    assert connection.token.scopes == ["read", "append"]
    assert back["code"] not in str(vars(connection))
    told = AuditRecord.objects.get(action="oauth.allowed")
    assert (told.actor_name, told.workspace) == ("olga", workspace)


def test_a_person_denies_a_client(browser):
    back = sent_back(browser.post(wish(a_client()), {"deny": "1"}))

    assert back == {"error": "access_denied", "state": "s1", "iss": HUB}
    assert not ApiToken.objects.exists()


def test_the_page_needs_a_sign_in_and_a_csrf_token(workspace):
    address = wish(a_client())
    careful = Client(enforce_csrf_checks=True)
    careful.force_login(an_operator(workspace))

    assert Client().get(address)["Location"].startswith("/login/?next=/oauth/authorize/")
    assert Client().post(address, {"workspace": "atlas", "scopes": ["read"]}).status_code == 302
    assert careful.post(address, {"workspace": "atlas", "scopes": ["read"]}).status_code == 403
    assert not OAuthConnection.objects.exists()


@pytest.mark.parametrize(
    "changes",
    [
        {"client_id": "unknown"},
        {"client_id": None},
        {"client_id": "x" * 5000},
        {"redirect_uri": "javascript://x/%0aalert(1)"},
        {"redirect_uri": "https://evil.example/"},
        {"code_challenge_method": "plain"},
        {"code_challenge_method": None},
        {"code_challenge": None},
        {"code_challenge": "short"},
        {"response_type": "token"},
        {"resource": "https://other.example/mcp"},
        {"resource": f"{HUB}/api/v1"},
        {"state": "x" * 5000},
    ],
)
def test_bad_requests_are_explained_to_the_person_and_never_redirected(changes, browser):
    client = a_client()
    responses = [browser.get(wish(client, **changes)), allow(browser, wish(client, **changes))]
    responses.append(browser.post(wish(client, **changes), {"deny": "1"}))

    assert [response.status_code for response in responses] == [400] * 3
    assert not any("Location" in response for response in responses)
    assert not ApiToken.objects.exists()


def test_repeated_parameters_are_refused(browser):
    assert browser.get(wish(a_client()) + "&redirect_uri=https://evil.example/").status_code == 400


def test_only_workspaces_that_the_person_operates_can_be_chosen(workspace, browser):
    hidden = Workspace.objects.create(slug="hidden", name="Hidden")
    seen = Workspace.objects.create(slug="seen", name="Seen")
    Membership.objects.create(workspace=seen, user_id=browser.session["_auth_user_id"], role="editor")
    address = wish(a_client())

    html = browser.get(address).content.decode().partition('<form class="form"')[2]
    assert "Atlas" in html
    assert "Hidden" not in html
    assert "Seen" not in html
    for slug in (hidden.slug, seen.slug):
        assert allow(browser, address, workspace=slug).status_code == 422
    assert allow(browser, address, reads=["seen"]).status_code in (303, 422)
    assert not ReadGrant.objects.exists()


def test_only_scopes_that_the_client_asked_for_can_be_allowed(browser):
    address = wish(a_client(), scope="read openid")

    assert "append" not in browser.get(address).content.decode().partition('<form class="form"')[2]
    assert allow(browser, address, scopes=["read", "edit"]).status_code == 422
    assert allow(browser, address, scopes=[]).status_code == 422
    assert allow(browser, address, scopes=["read"]).status_code == 303
    assert ApiToken.objects.get().scopes == ["read"]


def test_other_workspaces_can_be_shared_for_reading(workspace):
    team = Workspace.objects.create(slug="team", name="Team")
    browser, address = signed_in(an_operator(workspace, team)), wish(a_client())

    assert allow(browser, address, reads=["team", "atlas"]).status_code == 422
    assert allow(browser, address, reads=["team"]).status_code == 303
    assert ReadGrant.objects.get().workspace == team


def test_a_name_is_shown_as_text_and_without_what_would_hide_it(browser):
    client = register_client("x", "<b>Claude</b>\u202e\x00 \n by\u200b Anthropic" + "x" * 500, [CALLBACK], NOW)
    html = browser.get(wish(client)).content.decode()

    assert client.name.startswith("<b>Claude</b> by Anthropicxx")
    assert len(client.name) <= 80
    assert "<b>Claude" not in html
    assert "&lt;b&gt;Claude&lt;/b&gt;" in html
    assert register_client("y", "\u202e\u200b", [CALLBACK], NOW).name == "claude.example"


def test_a_client_never_gets_the_name_of_another_agent(workspace, browser):
    issue_token(workspace, "Claude", ["read"], by=By(PERSON, NOW))

    for name in ("Claude", "Claude"):
        client = OAuthClient.objects.filter(name=name).first() or a_client(name)
        allow(browser, wish(client))

    names = ApiToken.objects.order_by("pk").values_list("name", flat=True)
    assert list(names) == ["Claude", "Claude 2", "Claude 2"]
    assert ApiToken.objects.filter(revoked_at=None).count() == 2  # allowing it again replaces the earlier permission


def test_connections_are_listed_and_revoked_with_the_tokens(workspace, browser):
    allow(browser, wish(a_client()))
    token = ApiToken.objects.get()

    assert "claude.example" in browser.get(reverse("agents", args=["atlas"]) + "?state=all").content.decode()
    assert "claude.example" in browser.get(reverse("revoke-token", args=["atlas", token.pk])).content.decode()
    browser.post(reverse("revoke-token", args=["atlas", token.pk]))
    token.refresh_from_db()
    assert token.revoked_at is not None


def test_unused_registrations_expire_and_are_limited_in_number(browser, monkeypatch):
    used, unused = a_client(), a_client("Unused")
    allow(browser, wish(used))

    delete_unused_clients(NOW)
    assert OAuthClient.objects.count() == 2
    delete_unused_clients(NOW.replace(day=3))
    assert list(OAuthClient.objects.all()) == [used]
    assert not OAuthClient.objects.filter(pk=unused.pk).exists()

    monkeypatch.setattr("memoryhub.agents.oauth.clients.MAX_UNUSED", 2)
    for number in range(4):
        a_client(f"c{number}")
    assert list(OAuthClient.objects.order_by("pk").values_list("name", flat=True)) == ["Claude", "c2", "c3"]
