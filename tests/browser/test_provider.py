"""Signing in with a provider in a real browser: its policy for forms and cookies lets the person come back."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import User
from playwright.sync_api import Browser, expect
from pytest_httpserver import HTTPServer

from memoryhub.account_models import Identity
from tests.browser.conftest import PASSWORD
from tests.oidc_provider import CALLBACK, provider_of_hub

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


def test_a_person_connects_a_provider_and_signs_in_with_it(
    chromium: Browser, live_server, httpserver: HTTPServer, settings
):
    settings.ALLOWED_HOSTS = ["*"]
    User.objects.create_user("vera", password=PASSWORD)
    with provider_of_hub(httpserver, settings) as provider:
        provider.callback = live_server.url + CALLBACK
        context = chromium.new_context(base_url=live_server.url)
        page = context.new_page()
        page.goto("/account/sign-ins/")
        page.get_by_label("Username").fill("vera")
        page.get_by_label("Password").fill(PASSWORD)
        page.get_by_role("button", name="Sign in", exact=True).click()

        page.get_by_role("link", name="Connect with").click()
        page.get_by_label("Password").fill(PASSWORD)
        page.get_by_role("button", name="Connect").click()
        expect(page.get_by_text("Connected as vera@example.org")).to_be_visible()
        context.close()

        context = chromium.new_context(base_url=live_server.url)
        page = context.new_page()
        page.goto("/account/sign-ins/")
        page.get_by_role("link", name="Sign in with").click()
        expect(page.get_by_role("button", name="Disconnect")).to_be_visible()
        assert page.url == f"{live_server.url}/account/sign-ins/"
        context.close()
    assert Identity.objects.get().user.username == "vera"
