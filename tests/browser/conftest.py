from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.conf import settings as project_settings
from django.contrib.auth.models import User
from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page, expect, sync_playwright

from tests.browser.demo import demo  # noqa: F401  a fixture
from tests.command import chromium_path
from tests.hub import client_of

os.environ.setdefault("DJANGO_ALLOW_ASYNC_UNSAFE", "true")  # Playwright runs a loop in this thread
PASSWORD = "a calm sea 42"
expect.set_options(timeout=30_000)  # as long as actions wait: a busy machine may take longer than the default 5 s
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update"]


@pytest.fixture(scope="package")
def chromium() -> Iterator[Browser]:
    """One browser for all tests of this folder, which run one after another (see tests/conftest.py).

    Not for the whole session, because Playwright's event loop occupies the thread while it runs.
    """
    path = chromium_path()
    if path is None:
        if os.environ.get("MEMORYHUB_REQUIRE_BROWSER"):
            pytest.fail("no Chromium on this machine, and MEMORYHUB_REQUIRE_BROWSER is set")
        pytest.skip("no Chromium on this machine")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=FLAGS)
        yield browser
        browser.close()


def _is_complaint(message: ConsoleMessage) -> bool:
    """Return whether a console message is an error, other than Chromium's note about a 422 response."""
    return message.type == "error" and "status of 422" not in message.text


@pytest.fixture
def visit(chromium: Browser, live_server, settings, tmp_path: Path) -> Iterator[BrowserContext]:
    """A browser for the live server. Console errors and requests to other hosts fail the test."""
    settings.MEMORYHUB_ROOTS = [tmp_path]
    settings.ALLOWED_HOSTS = ["*"]
    complaints: list[str] = []
    context = chromium.new_context(base_url=live_server.url)
    context.on("console", lambda message: complaints.append(message.text) if _is_complaint(message) else None)
    context.on("weberror", lambda error: complaints.append(str(error.error)))
    context.on(
        "request",
        lambda request: None if request.url.startswith(live_server.url) else complaints.append(request.url),
    )
    yield context
    context.close()
    assert complaints == []


@pytest.fixture
def page(visit: BrowserContext, transactional_db: None, live_server) -> Page:
    """An empty page with an operator signed in, without filling in the form each time."""
    client = client_of(User.objects.create_superuser("olga", password=PASSWORD))
    name = project_settings.SESSION_COOKIE_NAME
    visit.add_cookies([{"name": name, "value": client.cookies[name].value, "url": live_server.url}])
    return visit.new_page()
