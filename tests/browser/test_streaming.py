"""Open pages of a hub that says when something changed, instead of being asked."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator

import pytest
import uvicorn
from django.conf import settings as project_settings
from django.contrib.auth.models import User
from django.contrib.sessions.models import Session as LoginSession
from django.contrib.staticfiles.handlers import StaticFilesHandler
from django.core.wsgi import get_wsgi_application
from playwright.sync_api import Browser, BrowserContext, Page, Request, expect

from memoryhub import asgi
from memoryhub.lib.http.threaded_wsgi import ThreadedWSGI
from memoryhub.live import streams
from memoryhub.live.streams import open_streams
from memoryhub.management.http_server import server_config
from sessions_app.models import Workspace
from tests.browser.test_living import learn
from tests.hub import client_of

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]
ROWS = "#knowledge-list li[data-row]"


@pytest.fixture
def address(transactional_db: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The address of the hub's ASGI application on a server in this process."""
    monkeypatch.setattr(streams, "TICK_SECONDS", 0.1)
    monkeypatch.setattr(streams, "HEARTBEAT_SECONDS", 0.2)  # so that the page's clock may run faster
    django = ThreadedWSGI(StaticFilesHandler(get_wsgi_application()), threads=10)
    monkeypatch.setattr(asgi, "_django", django)
    listener = socket.create_server(("127.0.0.1", 0), backlog=512)
    server = uvicorn.Server(server_config(asgi.application, lifespan="on"))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
    thread.start()
    yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    server.should_exit = True
    thread.join()
    listener.close()
    django.threads.shutdown()


@pytest.fixture
def own_browser(chromium: Browser, address: str) -> Iterator[BrowserContext]:
    """A browser with an operator signed in."""
    client = client_of(User.objects.create_superuser("olga"))
    context = chromium.new_context(base_url=address)
    name = project_settings.SESSION_COOKIE_NAME
    context.add_cookies([{"name": name, "value": client.cookies[name].value, "url": address}])
    yield context
    context.close()


class Asking:
    """Counts what a page asks, and moves its clock."""

    def __init__(self, page: Page) -> None:
        self.page, self.begun, self.ended = page, 0, 0
        page.on("request", self._begin)
        page.on("requestfinished", self._end)
        page.clock.install()

    def _begin(self, request: Request) -> None:
        self.begun += "/changes/?" in request.url

    def _end(self, request: Request) -> None:
        self.ended += "/changes/?" in request.url

    def is_quiet(self) -> bool:
        """Return whether a page asks nothing in ten seconds of its time, in which it would poll."""
        before = self.begun
        self.page.clock.run_for(10_000)
        self.page.wait_for_timeout(300)
        return self.begun == before == self.ended

    def wait_until(self, *, quiet: bool) -> None:
        rounds = 0
        for _ in range(200):
            rounds = rounds + 1 if self.is_quiet() is quiet else 0
            if rounds == 3:
                return
        raise AssertionError(f"the page goes on {'asking' if quiet else 'without asking'}")


def open_page(browser: BrowserContext) -> Asking:
    asking = Asking(browser.new_page())
    asking.page.goto("/w/atlas/knowledge/")
    return asking


def test_a_page_asks_only_when_something_changed(own_browser: BrowserContext, workspace: Workspace):
    learn(workspace, "Herons fish at dawn")
    asking = open_page(own_browser)
    asking.wait_until(quiet=True)

    learn(workspace, "Herons nest in trees")

    expect(asking.page.locator(ROWS)).to_have_count(2)
    asking.wait_until(quiet=True)
    learn(Workspace.objects.create(slug="other", name="Other"), "Terns dive")
    assert asking.is_quiet()


def test_the_pages_of_a_browser_share_a_stream(own_browser: BrowserContext, workspace: Workspace):
    learn(workspace, "Herons fish at dawn")
    first = open_page(own_browser)
    first.wait_until(quiet=True)
    second = open_page(own_browser)
    second.wait_until(quiet=True)
    assert len(open_streams.open) == 1

    learn(workspace, "Herons nest in trees")
    for asking in (first, second):
        expect(asking.page.locator(ROWS)).to_have_count(2)

    first.page.close()
    second.wait_until(quiet=True)
    learn(workspace, "Herons are patient")
    expect(second.page.locator(ROWS)).to_have_count(3)


def test_pages_poll_while_they_have_no_stream(own_browser: BrowserContext, workspace: Workspace, monkeypatch):
    learn(workspace, "Herons fish at dawn")
    asking = open_page(own_browser)
    asking.wait_until(quiet=True)

    with monkeypatch.context() as full:
        full.setattr(streams, "MAX_PER_PERSON", 0)
        [stream] = open_streams.open
        stream.end()
        asking.wait_until(quiet=False)
        learn(workspace, "Herons nest in trees")
        expect(asking.page.locator(ROWS)).to_have_count(2)

    asking.wait_until(quiet=True)
    learn(workspace, "Herons are patient")
    expect(asking.page.locator(ROWS)).to_have_count(3)


def test_a_page_says_so_when_its_person_is_signed_out(own_browser: BrowserContext, workspace: Workspace):
    asking = open_page(own_browser)
    asking.wait_until(quiet=True)

    LoginSession.objects.all().delete()

    expect(asking.page.locator("#live-note")).to_contain_text("have been signed out")
    assert open_streams.open == set()
