"""Allowing a program in a real browser, whose policy for forms also covers where a form redirects."""

from __future__ import annotations

import pytest
from playwright.sync_api import Browser, expect
from pytest_httpserver import HTTPServer

from sessions_app.models import Workspace
from tests.agents.oauth_flow import a_client, an_operator, signed_in, wish

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


@pytest.mark.parametrize(("button", "answer"), [("Allow", "code="), ("Deny", "error=access_denied")])
def test_the_person_is_sent_back_to_the_program(
    chromium: Browser, live_server, httpserver: HTTPServer, settings, workspace: Workspace, button: str, answer: str
):
    settings.ALLOWED_HOSTS = ["*"]
    httpserver.expect_request("/callback").respond_with_data("Back in the program.")
    client = a_client("Claude", httpserver.url_for("/callback"))
    cookie = signed_in(an_operator(workspace)).cookies[settings.SESSION_COOKIE_NAME].value
    context = chromium.new_context(base_url=live_server.url)
    context.add_cookies([{"name": settings.SESSION_COOKIE_NAME, "value": cookie, "url": live_server.url}])
    page = context.new_page()

    page.goto(wish(client, resource=f"{live_server.url}/mcp"))
    page.get_by_role("button", name=button).click()

    expect(page.get_by_text("Back in the program.")).to_be_visible()
    assert answer in page.url
    assert "state=s1" in page.url
    context.close()
