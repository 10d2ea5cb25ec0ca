"""Sign-in with a real OpenID Connect provider, and what a false one can't do."""

from __future__ import annotations

import json
import re

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from memoryhub.account_models import Identity
from memoryhub.accounts import oidc
from memoryhub.accounts.invitations import invite
from memoryhub.accounts.second_factor import new_secret, turn_on
from sessions_app.models import AuditRecord
from sessions_app.services.audit import Actor, By
from tests.accounts.test_people_pages import PASSWORD
from tests.accounts.test_second_factor import app_code
from tests.hub import PERSON
from tests.oidc_provider import CHEATS, SECRET, VERA, Provider

pytestmark = pytest.mark.django_db


@pytest.fixture
def vera() -> User:
    return User.objects.create_user("vera", email="vera@example.org", password=PASSWORD)


def arrive(provider: Provider, client: Client, next_url: str = ""):
    """Go to the provider, sign in there and come back; return the hub's response."""
    sent = client.get("/login/oidc/", {"next": next_url} if next_url else {})
    return client.get(provider.authorize(sent.headers["Location"]))


def who(client: Client) -> str:
    response = client.get("/account/")
    return response.context["user"].username if response.status_code == 200 else ""


def connected(user: User, provider: Provider, subject: str = "v-1") -> User:
    proved = oidc.Proved(provider.issuer, subject, "", "")
    oidc.connect(user, proved, by=By(PERSON, timezone.now()))
    return user


def test_a_connected_person_signs_in(provider, vera):
    connected(vera, provider)
    client = Client()
    provider.user["email"] = "other@example.org"  # doesn't matter any more

    response = arrive(provider, client, "/account/sign-ins/?a=b")

    assert response.headers["Location"] == "/account/sign-ins/?a=b"
    assert who(client) == "vera"
    assert Identity.objects.count() == 1


def test_the_request_has_pkce_state_and_a_nonce(provider, vera):
    connected(vera, provider)
    for _ in range(2):
        arrive(provider, Client())

    first, second = provider.asked
    assert first["code_challenge_method"] == "S256"
    assert (first["scope"], first["response_type"]) == ("openid profile email", "code")
    for name in ("state", "nonce", "code_challenge"):
        assert len(first[name]) >= 20
        assert first[name] != second[name]
    assert not [name for name in first if "secret" in name or "verifier" in name]


@pytest.mark.parametrize(
    "next_url", ["https://evil.example/", "//evil.example", "/\\evil.example", "javascript:alert(1)"]
)
def test_another_host_is_no_next_page(next_url, provider, vera):
    connected(vera, provider)

    assert arrive(provider, Client(), next_url).headers["Location"] == "/"


def test_the_session_key_changes(provider, vera):
    connected(vera, provider)
    client = Client()
    sent = client.get("/login/oidc/")
    before = client.session.session_key
    client.get(provider.authorize(sent.headers["Location"]))

    assert client.session.session_key != before
    stale = Client()
    stale.cookies["sessionid"] = before
    assert who(stale) == ""


# False answers


@pytest.mark.slow
@pytest.mark.parametrize("lists_all", [False, True])
@pytest.mark.parametrize("name", CHEATS)
def test_a_false_token_signs_nobody_in(name, lists_all, provider, vera):
    connected(vera, provider)
    provider.cheat = CHEATS[name]
    if lists_all:
        provider.described = {"id_token_signing_alg_values_supported": ["none", "HS256", "RS256"]}
    client = Client()

    response = arrive(provider, client)

    assert response.status_code == 403
    assert "Signing in failed" in response.content.decode()
    assert who(client) == ""


def test_a_state_works_once_and_in_its_own_browser(provider, vera):
    connected(vera, provider)
    client, other = Client(), Client()
    back = provider.authorize(client.get("/login/oidc/").headers["Location"])
    mixed = provider.authorize(other.get("/login/oidc/").headers["Location"])

    assert other.get(back).status_code == 403  # login CSRF
    code = back.partition("code=")[2].partition("&")[0]
    assert client.get(mixed.replace(mixed.partition("code=")[2].partition("&")[0], code)).status_code == 403
    assert client.get(back.replace("state=", "state=x")).status_code == 403
    assert client.get(back.partition("&state")[0]).status_code == 403
    assert client.get(back).status_code == 302
    assert Client().get(back).status_code == 403
    assert client.get("/login/oidc/callback/?error=access_denied").status_code == 403
    assert who(other) == ""


def test_a_code_of_another_request_is_refused_by_pkce(provider, vera):
    connected(vera, provider)
    victim, thief = Client(), Client()
    stolen = provider.authorize(victim.get("/login/oidc/").headers["Location"])
    own = provider.authorize(thief.get("/login/oidc/").headers["Location"])
    code, own_code = (address.partition("code=")[2].partition("&")[0] for address in (stolen, own))

    assert thief.get(own.replace(own_code, code)).status_code == 403
    assert who(thief) == ""


@pytest.mark.parametrize(
    "described",
    [
        {"issuer": "https://other.example"},
        {"issuer": ""},
        {"issuer": None},
        {"token_endpoint": None},
        {"jwks_uri": 7},
    ],
)
def test_a_false_description_is_refused(described, provider):
    provider.described = described

    response = Client().get("/login/oidc/")

    assert response.status_code == 403
    assert "Location" not in response.headers


def test_a_provider_that_is_down_is_reported(provider, httpserver):
    httpserver.clear()

    assert "Signing in failed" in Client().get("/login/oidc/").content.decode()


def test_a_made_up_reason_is_not_shown(provider):
    page = Client().get("/login/oidc/callback/?state=x&error=Call+0900+123").content.decode()

    assert "Signing in failed (OAuthError)" in page
    assert "0900" not in page


def test_an_unfinished_sign_in_ends_within_an_hour_and_a_finished_one_lasts(provider, vera, settings):
    connected(vera, provider)
    client, waits = Client(), Client()
    waits.get("/login/oidc/")
    arrive(provider, client)

    assert waits.session.get_expiry_age() <= 3600
    assert client.session.get_expiry_age() == settings.SESSION_COOKIE_AGE
    waits.post("/login/", {"username": "vera", "password": PASSWORD})
    assert waits.session.get_expiry_age() == settings.SESSION_COOKIE_AGE
    turn_on(vera, new_secret(), 0, keep=None, by=By(PERSON, timezone.now()))
    arrive(provider, waits)
    assert waits.session.get_expiry_age() <= 600


def test_the_client_secret_appears_nowhere(provider, vera, caplog):
    connected(vera, provider)
    provider.cheat = CHEATS["nonce"]
    client = Client()
    page = arrive(provider, client).content.decode()

    assert SECRET not in page + caplog.text + json.dumps(dict(client.session))


# Who is who


def test_a_verified_address_connects_once(provider, vera):
    client = Client()
    arrive(provider, client)

    assert who(client) == "vera"
    assert Identity.objects.get().email == "vera@example.org"
    assert list(AuditRecord.objects.values_list("action", flat=True)) == ["account.identity_connected"]
    provider.user = VERA | {"sub": "v-2"}  # the address was given to somebody else
    assert arrive(provider, Client()).status_code == 403


@pytest.mark.parametrize("verified", [False, None, "true", 1])
def test_an_address_that_is_not_verified_connects_nobody(verified, provider, vera, settings):
    settings.MEMORYHUB_OIDC_DOMAINS = ["example.org"]
    provider.user["email_verified"] = verified
    client = Client()

    assert arrive(provider, client).status_code == 403
    assert (who(client), Identity.objects.count(), User.objects.count()) == ("", 0, 1)


@pytest.mark.parametrize(
    ("stored", "proved"),
    [
        ("mike@example.org", "mi\u212ae@example.org"),  # the Kelvin sign, whose lower case is k
        ("mike@example.org", "m\u0131ke@example.org"),  # a dotless i, whose upper case is I
        ("m\u0131ke@example.org", "mike@example.org"),
    ],
)
def test_an_address_with_a_letter_that_looks_alike_connects_nobody(stored, proved, provider, vera):
    User.objects.update(email=stored)
    provider.user["email"] = proved

    assert arrive(provider, Client()).status_code == 403
    assert not Identity.objects.exists()


def test_neither_a_name_nor_an_ambiguous_address_connects(provider, vera):
    User.objects.create_user("vera.v")
    User.objects.create_user("v-1")
    User.objects.create_user("other", email="VERA@example.org")

    assert arrive(provider, Client()).status_code == 403
    assert not Identity.objects.exists()


def test_a_deactivated_person_stays_out(provider, vera, settings):
    settings.MEMORYHUB_OIDC_DOMAINS = ["example.org"]
    User.objects.update(is_active=False)
    assert arrive(provider, Client()).status_code == 403
    connected(vera, provider)

    assert arrive(provider, Client()).status_code == 403
    assert User.objects.count() == 1


def test_the_second_factor_is_still_asked_for(provider, vera):
    connected(vera, provider)
    turn_on(vera, new_secret(), 0, keep=None, by=By(PERSON, timezone.now()))
    client = Client()

    assert arrive(provider, client).headers["Location"] == "/login/code/"
    assert who(client) == ""


@pytest.mark.parametrize(
    ("email", "is_allowed"),
    [
        ("nina@example.org", True),
        ("nina@sub.example.org", False),
        ("nina@example.org.evil.example", False),
        ("nina@evil.example@example.org", False),
        ("nina@notexample.org", False),
        ("nina@ban\u212a.example", False),  # the Kelvin sign
    ],
)
def test_people_of_an_allowed_domain_get_an_account_without_rights(email, is_allowed, provider, settings):
    settings.MEMORYHUB_OIDC_DOMAINS = ["example.org", "bank.example"]
    provider.user = {"sub": "n-1", "email": email, "email_verified": True, "preferred_username": "admin"}
    client = Client()

    arrive(provider, client)

    assert who(client) == (email if is_allowed else "")
    assert list(User.objects.values_list("is_superuser", "is_staff")) == ([(False, False)] if is_allowed else [])
    if is_allowed:
        assert not User.objects.get().has_usable_password()
        arrive(provider, Client())
        assert User.objects.count() == 1


def test_an_account_whose_name_is_the_address_is_not_taken_over(provider, settings):
    settings.MEMORYHUB_OIDC_DOMAINS = ["example.org"]
    User.objects.create_superuser("Vera@example.org", password=PASSWORD)

    assert arrive(provider, Client()).status_code == 403
    assert not Identity.objects.exists()


def test_unknown_people_need_an_invitation(provider, admin_user):
    by = By(Actor("person", admin_user.username), timezone.now())
    _, token = invite(name="Vera", roles={}, is_operator=True, days=1, by=by)
    assert arrive(provider, Client()).status_code == 403
    client, path = Client(), f"/invitation/{token}/"

    assert "/login/oidc/?next=" in client.get(path).content.decode()
    assert arrive(provider, client, path).headers["Location"] == path
    page = client.get(path).content.decode()
    assert 'value="vera.v"' in page
    assert "password" not in page
    client.post(path, {"username": "vera"})

    assert who(client) == "vera"
    assert not User.objects.get(username="vera").has_usable_password()
    again = Client()
    arrive(provider, again)
    assert who(again) == "vera"


def test_a_page_that_looks_like_an_invitation_gives_nothing(provider):
    client = Client()

    assert arrive(provider, client, "/invitation/guess/").headers["Location"] == "/invitation/guess/"
    assert client.get("/invitation/guess/").status_code == 410
    assert client.post("/invitation/guess/", {"username": "vera"}).status_code == 410
    assert not User.objects.exists()


def test_people_without_a_password_may_set_up_a_second_factor_but_need_none(provider, settings):
    settings.MEMORYHUB_OIDC_DOMAINS = ["example.org"]
    settings.MEMORYHUB_REQUIRE_SECOND_FACTOR = True
    client = Client()
    arrive(provider, client)

    assert who(client) == "vera@example.org"
    page = client.get("/account/second-factor/").content.decode()
    secret = re.search(r"\b[A-Z2-7]{32}\b", page)[0]
    assert 'name="password"' not in page
    client.post("/account/second-factor/", {"code": app_code(secret)})
    assert arrive(provider, Client()).headers["Location"] == "/login/code/"


def test_people_connect_their_own_account_with_their_password(provider, vera):
    User.objects.update(email="")
    client = Client()
    client.post("/login/", {"username": "vera", "password": PASSWORD})

    assert arrive(provider, client).headers["Location"] == "/account/sign-ins/"
    assert not Identity.objects.exists()
    client.post("/account/sign-ins/connect/", {"password": "guess"})
    assert not Identity.objects.exists()
    client.post("/account/sign-ins/connect/", {"password": PASSWORD})
    assert Identity.objects.get().user == vera
    client.post("/account/sign-ins/connect/", {"password": PASSWORD})
    assert Identity.objects.count() == 1

    other = Client()
    arrive(provider, other)
    assert who(other) == "vera"
    other.post("/account/sign-ins/disconnect/")
    assert not Identity.objects.filter(ended_at=None).exists()
    assert arrive(provider, Client()).status_code == 403


def test_an_identity_of_an_earlier_provider_does_not_count(provider, vera):
    earlier = oidc.Proved("https://earlier.example", "v-1", "vera@earlier.example", "")
    oidc.connect(vera, earlier, by=By(PERSON, timezone.now()))
    client = Client()
    client.post("/login/", {"username": "vera", "password": PASSWORD})
    page = client.get("/account/sign-ins/").content.decode()
    assert ("vera@earlier.example" in page, "Connect with" in page) == (False, True)

    arrive(provider, client)
    client.post("/account/sign-ins/connect/", {"password": PASSWORD})

    assert "Disconnect" in client.get("/account/sign-ins/").content.decode()


def test_an_identity_of_somebody_else_cannot_be_connected(provider, vera):
    connected(User.objects.create_user("otto"), provider)
    client = Client()
    client.post("/login/", {"username": "vera", "password": PASSWORD})
    arrive(provider, client)

    client.post("/account/sign-ins/connect/", {"password": PASSWORD})

    assert Identity.objects.get().user.username == "otto"


def test_without_a_provider_there_is_nothing(client, vera):
    assert client.get("/login/oidc/").status_code == 404
    assert client.get("/login/oidc/callback/?code=x&state=y").status_code == 404
    assert "oidc" not in client.get("/login/").content.decode()
