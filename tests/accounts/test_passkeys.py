"""Signing in with passkeys, and what is refused."""

import json

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from memoryhub.account_models import Passkey
from memoryhub.accounts import passkeys as flow
from memoryhub.accounts.second_factor import new_secret, turn_on
from sessions_app.services.audit import By
from tests.accounts.passkey_flow import (
    FAILED,
    LATE,
    START,
    TOO_MANY,
    actions,
    added,
    arrive,
    browser,
    options,
    refused,
    signed_in,
    who,
)
from tests.accounts.test_people_pages import PASSWORD
from tests.authenticator import FLAG, Authenticator
from tests.hub import PERSON, raises_code

pytestmark = pytest.mark.django_db


def test_it_counts_as_password_and_second_factor(device, vera):
    turn_on(vera, new_secret(), 0, keep=None, by=By(PERSON, timezone.now()))
    client = browser()
    assert "Sign in with a passkey" in client.get("/login/").content.decode()

    assert arrive(device, client, next="/account/sign-ins/").json() == {"next": "/account/sign-ins/"}

    assert who(client) == "vera"
    assert Passkey.objects.get().used_at == START


def test_a_required_second_factor_is_needed_with_the_password_only(device, vera, settings):
    settings.MEMORYHUB_REQUIRE_SECOND_FACTOR = True
    with_passkey, with_password = browser(), browser()
    arrive(device, with_passkey)
    with_password.post("/login/", {"username": "vera", "password": PASSWORD})

    assert with_passkey.get("/").status_code == 200
    assert with_password.get("/").headers["Location"] == "/account/second-factor/"
    Passkey.objects.all().delete()
    assert with_passkey.get("/").headers["Location"] == "/account/second-factor/"


@pytest.mark.parametrize("next_url", ["", "https://evil.example/", "//evil.example", "javascript:alert(1)"])
def test_another_host_is_no_next_page(next_url, device):
    assert arrive(device, next=next_url).json() == {"next": "/"}


def test_the_session_key_changes_and_the_sign_in_lasts(device):
    client = browser()
    options(client)
    before = client.session.session_key
    assert client.session.get_expiry_age() == 3600
    arrive(device, client)

    assert client.session.session_key != before
    assert client.session.get_expiry_age() == 14 * 86_400
    stale = browser()
    stale.cookies["sessionid"] = before
    assert who(stale) == ""


# False answers

CHEATS = {
    "another origin": {"origin": "http://localhost:81"},
    "a lookalike": {"origin": "http://localhost.evil.example"},
    "a frame": {"is_in_frame": True},
    "another host": {"host": "evil.example"},
    "nobody verified": {"flags": FLAG.UP},
    "nobody present": {"flags": FLAG.UV},
    "another key": {"key": Authenticator().key},
    "an unknown credential": {"credential_id": b"unknown"},
    "another person": {"handle": "b3R0bw"},
}


@pytest.mark.parametrize("name", CHEATS)
def test_a_false_answer_signs_nobody_in(name, device):
    for attribute, value in CHEATS[name].items():
        setattr(device, attribute, value)
    client = browser()

    assert refused(arrive(device, client), FAILED)
    assert who(client) == ""


@pytest.mark.parametrize("name", sorted(CHEATS.keys() - {"another key", "an unknown credential", "another person"}))
def test_a_false_answer_adds_no_passkey(name, vera):
    assert refused(added(signed_in(vera), Authenticator(**CHEATS[name])), "couldn't be added")
    assert not Passkey.objects.exists()


def test_an_answer_counts_once_in_its_own_browser_and_for_minutes(device, clock):
    client, other = browser(), browser()
    answer = {"credential": device.sign(options(client))}
    assert refused(other.post("/login/passkey/", answer), LATE)
    options(other)
    assert refused(other.post("/login/passkey/", answer), FAILED)

    assert client.post("/login/passkey/", answer).status_code == 200
    assert refused(client.post("/login/passkey/", answer), LATE)
    late = browser()
    answer = {"credential": device.sign(options(late))}
    clock.shift(301)
    assert refused(late.post("/login/passkey/", answer), LATE)
    assert who(late) == ""


def test_a_failed_answer_uses_up_its_challenge(device):
    client = browser()
    asked = options(client)
    wrong, right = device.sign(asked, signature="AAAA"), device.sign(asked)

    assert refused(client.post("/login/passkey/", {"credential": wrong}), FAILED)
    assert refused(client.post("/login/passkey/", {"credential": right}), LATE)


def test_an_answer_to_add_a_passkey_does_not_sign_in(device, vera):
    client = signed_in(vera)
    asked = options(client, "/account/passkeys/options/", name="b", password=PASSWORD)

    assert refused(client.post("/login/passkey/", {"credential": device.sign(asked)}), LATE)
    answer = {"credential": Authenticator().create(asked | options(client))}
    assert refused(client.post("/account/passkeys/add/", answer), "couldn't be added")


def test_a_counter_that_goes_back_shows_a_copy(vera):
    device = Authenticator(count=5)
    added(signed_in(vera), device)
    assert arrive(device).status_code == 200
    for count in (5, 4):  # the answer has the next one, at most the known 6
        device.count = count
        assert refused(arrive(device), "A copy of this passkey")
    device.count = 0
    assert refused(arrive(device), "A copy of this passkey")

    device.count = 6
    assert arrive(device).status_code == 200
    assert actions().count("account.passkey_refused") == 3
    assert Passkey.objects.get().sign_count == 7


def test_deactivated_people_stay_out(device):
    User.objects.update(is_active=False)
    client = browser()

    assert refused(arrive(device, client), FAILED)
    assert who(client) == ""


@pytest.mark.slow
@pytest.mark.postgres
def test_failed_attempts_are_limited(device, clock):
    device.origin = "http://evil.example"
    answers = [arrive(device) for _ in range(11)]

    assert [refused(answer, FAILED) for answer in answers] == [True] * 10 + [False]
    assert refused(answers[10], TOO_MANY)
    assert (
        browser().post("/login/", {"username": "vera", "password": PASSWORD}).status_code == 200
    )  # counted together
    device.origin = "http://localhost"
    assert refused(arrive(device), TOO_MANY)
    clock.shift(61)
    for _ in range(12):
        assert arrive(device).status_code == 200


def test_a_known_browser_has_its_own_limit(device, clock):
    known = browser()
    arrive(device, known)
    known.get("/")
    known.post("/logout/")
    for _ in range(10):
        arrive(Authenticator(handle="x"))

    assert refused(arrive(device), TOO_MANY)
    assert arrive(device, known).status_code == 200


NUMBER = 10**13  # the package would allocate as many bytes


@pytest.mark.parametrize(
    "text",
    [
        "",
        "x",
        "[]",
        "{}",
        "[" * 15_000,
        "x" * 30_000,
        json.dumps({"id": NUMBER, "rawId": NUMBER, "response": {}}),
        json.dumps({"id": "a", "rawId": "a", "response": []}),
    ],
)
def test_what_no_browser_sends_is_refused(text, device, vera):
    client, own = browser(), signed_in(vera)
    options(client)
    options(own, "/account/passkeys/options/", name="b", password=PASSWORD)

    assert refused(client.post("/login/passkey/", {"credential": text}), FAILED)
    assert refused(own.post("/account/passkeys/add/", {"credential": text}), "couldn't be added")


def test_wrong_values_in_an_answer_are_refused(device):
    site = flow.Site("localhost", "http://localhost")
    challenge = options(browser())["challenge"]
    right = json.loads(device.sign({"challenge": challenge}))
    passkey = Passkey.objects.get()
    values = [None, True, NUMBER, [], {}, "", "é", "a", "AAAA", "_" * 60, "gYGBgYGB" * 1500]
    values += ["eyJjaGFsbGVuZ2UiOjEwMDAwMDAwMDAwMDAwfQ"]  # {"challenge":10000000000000}

    for name in right["response"]:
        for value in values:
            answer = json.dumps(right | {"response": right["response"] | {name: value}})
            with raises_code("passkey_refused"):
                flow.check_sign_in(site, passkey, challenge, answer, now=START)
    assert flow.check_sign_in(site, passkey, challenge, json.dumps(right), now=START) == passkey


# Where passkeys work


@pytest.mark.parametrize(
    ("address", "host", "site"),
    [
        ("http://127.0.0.1:8765", "localhost:8765", ("localhost", "http://localhost:8765")),
        ("http://localhost:8765", "localhost:9000", ("localhost", "http://localhost:9000")),
        ("http://127.0.0.1:8765", "127.0.0.1:8765", None),
        ("http://127.0.0.1:8765", "hub.example.org", None),
        ("https://Hub.example.org", "10.0.0.2", ("hub.example.org", "https://hub.example.org")),
        ("https://hub.example.org:443/", "x", ("hub.example.org", "https://hub.example.org")),
        ("https://hub.example.org:8443", "x", ("hub.example.org", "https://hub.example.org:8443")),
        ("http://hub.example.org", "hub.example.org", None),
        ("https://10.0.0.2", "10.0.0.2", None),
        ("https://[fd00::2]", "[fd00::2]", None),
    ],
)
def test_the_site_is_the_address_of_the_hub(address, host, site, rf, settings):
    settings.MEMORYHUB_URL, settings.ALLOWED_HOSTS = address, ["*"]

    found = flow.find_site(rf.get("/", headers={"host": host}))

    assert found == (flow.Site(*site) if site else None)


def test_passkeys_of_another_address_do_not_count(device, settings):
    settings.MEMORYHUB_URL = "https://hub.example.org"
    moved = Authenticator(**vars(device) | {"origin": "https://hub.example.org", "host": "hub.example.org"})

    assert "Sign in with a passkey" not in browser().get("/login/").content.decode()
    assert refused(arrive(moved), FAILED)


def test_without_the_package_or_an_address_nothing_is_offered(device, vera, monkeypatch):
    elsewhere = Client(headers={"host": "127.0.0.1"})
    assert "passkey" not in elsewhere.get("/login/").content.decode()
    monkeypatch.setattr(flow.importlib.util, "find_spec", lambda name: None)
    client = browser()

    assert "passkey" not in client.get("/login/").content.decode()
    for path in ("/login/passkey/", "/login/passkey/options/"):
        assert refused(client.post(path), "can't be used")
    own = signed_in(vera)
    for path in ("/account/passkeys/add/", "/account/passkeys/options/"):
        assert refused(own.post(path), "can't be used")
    assert "can't be used at this address" in own.get("/account/passkeys/add/").content.decode()
    page = own.get("/account/sign-ins/").content.decode()
    assert ("Laptop" in page, "Add a passkey" in page) == (True, False)


def test_nothing_is_offered_before_somebody_has_a_passkey(vera):
    assert "passkey" not in browser().get("/login/").content.decode()
