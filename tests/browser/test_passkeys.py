"""Passkeys in a real browser, with a virtual device: adding one, signing in with it, and removing it."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import User
from playwright.sync_api import BrowserContext, CDPSession, Page, expect

from memoryhub.account_models import Passkey
from tests.browser.conftest import PASSWORD

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]
DEVICE = {
    "protocol": "ctap2",
    "ctap2Version": "ctap2_1",
    "transport": "internal",
    "hasResidentKey": True,
    "hasUserVerification": True,
    "isUserVerified": True,
    "automaticPresenceSimulation": True,
}


@pytest.fixture
def page(visit: BrowserContext) -> Page:
    User.objects.create_user("vera", password=PASSWORD)
    return visit.new_page()


@pytest.fixture
def device(page: Page) -> tuple[CDPSession, str]:
    """A virtual device of the browser: its connection and id."""
    connection = page.context.new_cdp_session(page)
    connection.send("WebAuthn.enable")
    made = connection.send("WebAuthn.addVirtualAuthenticator", {"options": DEVICE})
    return connection, made["authenticatorId"]


def sign_in(page: Page) -> None:
    page.goto("/account/sign-ins/")
    page.get_by_label("Username").fill("vera")
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Sign in", exact=True).click()
    expect(page.get_by_role("heading", name="Sign-ins")).to_be_visible()


def add_passkey(page: Page, name: str) -> None:
    page.goto("/account/passkeys/add/")
    page.get_by_label("Name").fill(name)
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Add passkey").click()


def test_a_person_adds_a_passkey_signs_in_with_it_and_removes_it(page: Page, device):
    connection, authenticator = device
    sign_in(page)
    page.get_by_role("link", name="Add a passkey").click()
    expect(page.get_by_label("Name")).to_have_value("Chrome on Linux")
    page.get_by_label("Password").fill("guess")
    page.get_by_role("button", name="Add passkey").click()
    expect(page.get_by_text("This password is wrong.")).to_be_visible()
    add_passkey(page, "Laptop")
    expect(page.get_by_text("Passkey added.")).to_be_visible()
    stored = connection.send("WebAuthn.getCredentials", {"authenticatorId": authenticator})["credentials"]
    assert [one["rpId"] for one in stored] == ["localhost"]
    add_passkey(page, "Again")
    expect(page.get_by_text("This device already has a passkey for your account.")).to_be_visible()

    page.context.clear_cookies()
    page.goto("/account/sign-ins/")
    page.get_by_role("button", name="Sign in with a passkey").click()
    expect(page.get_by_role("heading", name="Sign-ins")).to_be_visible()
    assert Passkey.objects.get().used_at

    page.get_by_role("link", name="Rename or remove Laptop").click()
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Remove").click()
    expect(page.get_by_text("Passkey removed.")).to_be_visible()
    assert not Passkey.objects.exists()


def test_a_device_that_does_not_recognise_the_person_signs_nobody_in(page: Page, device):
    connection, authenticator = device
    sign_in(page)
    add_passkey(page, "Laptop")
    expect(page.get_by_text("Passkey added.")).to_be_visible()
    page.context.clear_cookies()
    connection.send("WebAuthn.setUserVerified", {"authenticatorId": authenticator, "isUserVerified": False})

    page.goto("/login/")
    page.get_by_role("button", name="Sign in with a passkey").click()
    expect(page.get_by_text("No passkey was used.")).to_be_visible()
    Passkey.objects.all().delete()
    connection.send("WebAuthn.setUserVerified", {"authenticatorId": authenticator, "isUserVerified": True})
    page.get_by_role("button", name="Sign in with a passkey").click()
    expect(page.get_by_text("Signing in with this passkey failed.")).to_be_visible()


def test_browsers_without_passkeys_are_told(page: Page):
    page.add_init_script("delete window.PublicKeyCredential")
    sign_in(page)
    page.goto("/account/passkeys/add/")

    expect(page.get_by_text("Passkeys need a current browser")).to_be_visible()
    expect(page.get_by_role("button", name="Add passkey")).to_be_hidden()
    Passkey.objects.create(user=User.objects.get(), name="Laptop", host="localhost")
    page.context.clear_cookies()
    page.goto("/login/")
    expect(page.get_by_role("button", name="Sign in with a passkey")).to_be_hidden()
