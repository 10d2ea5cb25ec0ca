"""Every page of the URL configuration: accessible in both themes, within the size limit, and never too wide.

A new page is visited as soon as it has an address; one that cannot be filled or answered fails here.
"""

from __future__ import annotations

import gzip
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import pytest
from axe_playwright_python.base import AXE_SCRIPT
from django.contrib.auth.models import User
from django.contrib.staticfiles import finders
from django.test import Client
from playwright.sync_api import BrowserContext, Page

from memoryhub.models import Passkey, SavedSearch, SignIn
from sessions_app.models import Workspace
from tests.hub import client_of
from tests.whole_site.test_authorisation import atlas, filled  # noqa: F401  a fixture
from tests.whole_site.test_login_required import address, routes

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]
TAGS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
REPEATED_RULES = [
    "color-contrast",
    "target-size",
    "scrollable-region-focusable",
]  # depend on theme or width
MOST_BYTES = 150_000  # compressed page with its style sheets, scripts and images
EXPECTED = {200, 204, 286, 301, 302, 405}  # 405: what can only be sent
GONE = {
    "setup": 302,
    "invitation": 410,
    "no-such-api-address": 404,
    "oauth-authorize": 400,
    "metrics": 404,
    "oidc-login": 404,
    "oidc-callback": 404,
}  # instead
AUDIT = """async ({ tags, rules, within }) => {
  const runOnly = rules ? { type: "rule", values: rules } : { type: "tag", values: tags };
  const options = { runOnly, resultTypes: ["violations"], preload: false };  /* no style sheets of other hosts */
  const { violations } = await axe.run(within && document.querySelector(within) || document, options);
  const why = ({ html, any, all, none }) => `${html.slice(0, 160)} (${[...any, ...all, ...none][0]?.message})`;
  const shown = (nodes) => nodes.slice(0, 3).map(why).join(" | ");
  return violations.map(({ id, nodes }) => `${id}: ${shown(nodes)}`);
}"""
PARTS = """() => performance.getEntriesByType("resource").map(({ name }) => new URL(name).pathname)"""


@pytest.fixture
def owner(transactional_db: None) -> Client:
    """The session of a superuser."""
    return client_of(User.objects.create_superuser("olga", password="a calm sea 42"))


@pytest.fixture
def page(visit: BrowserContext, owner: Client, live_server) -> Page:
    visit.add_cookies([{"name": "sessionid", "value": owner.cookies["sessionid"].value, "url": live_server.url}])
    visit.add_init_script(AXE_SCRIPT)
    return visit.new_page()


def is_whole_page(client: Client, name: str, url: str) -> bool:
    """Return whether a URL is a complete page, not a file, fragment or redirect."""
    response = client.get(url)
    assert response.status_code in EXPECTED or GONE.get(name) == response.status_code, (url, response.status_code)
    if response.status_code != 200 or response.streaming or "attachment" in response.get("Content-Disposition", ""):
        return False
    return response.content.lstrip()[:9].lower() == b"<!doctype"


@cache
def packed_size(path: str) -> int:
    """Return the compressed size of a static file in bytes, 0 for other URLs."""
    found = finders.find(path.removeprefix("/static/")) if path.startswith("/static/") else None
    return len(gzip.compress(Path(found).read_bytes())) if found else 0


def faults(page: Page, url: str) -> Iterator[str]:
    """Return the problems of a page: all rules for the wide, light version, otherwise REPEATED_RULES."""
    yield from faults_in_full(page, url)
    yield from faults_seen_anew(page, url)


def faults_in_full(page: Page, url: str) -> Iterator[str]:
    page.emulate_media(color_scheme="light")
    page.set_viewport_size({"width": 1440, "height": 900})
    response = page.goto(url)
    weight = len(response.body() if response else b"") + sum(map(packed_size, page.evaluate(PARTS)))
    if weight > MOST_BYTES:
        yield f"weighs {weight:,} bytes"
    yield from (f"light, wide: {fault}" for fault in page.evaluate(AUDIT, {"tags": TAGS}))


def faults_seen_anew(page: Page, url: str) -> Iterator[str]:
    page.emulate_media(color_scheme="dark")
    page.set_viewport_size({"width": 390, "height": 844})
    page.goto(url)  # reload: hidden elements keep the other theme's colours until shown
    if page.evaluate("document.documentElement.scrollWidth > window.innerWidth"):
        yield "too wide for a phone"
    within = "" if url in ("/", "/login/") else "main"  # the rest is the same on all pages
    rules = {"rules": REPEATED_RULES, "within": within}
    yield from (f"dark, narrow: {fault}" for fault in page.evaluate(AUDIT, rules))


def all_faults(
    page: Page, client: Client, addresses: dict[str, str], looks: Callable[[Page, str], Iterator[str]] = faults
) -> dict[str, list[str]]:
    whole = {name: url for name, url in addresses.items() if is_whole_page(client, name, url)}
    assert len(whole) > len(addresses) / 4  # otherwise most were redirected, for example to the sign-in page
    return {url: found for url in whole.values() if (found := list(looks(page, url)))}


@pytest.mark.parametrize("half", [0, 1])
def test_every_page_is_accessible_and_light(page: Page, owner: Client, atlas: Workspace, half: int):  # noqa: F811
    user = User.objects.get(username="olga")
    SignIn.objects.get_or_create(user=user, session_key="a" * 32)
    Passkey.objects.create(user=user, name="Laptop")
    for place in (atlas, None):
        SavedSearch.objects.create(user=user, workspace=place, name="a")
    addresses = {name: filled(name, pattern, atlas) for name, pattern in list(routes())[half::2]}

    assert all_faults(page, owner, addresses) == {}


def test_every_page_of_an_empty_workspace_is_accessible(page: Page, owner: Client, workspace: Workspace):
    lists = [(name, pattern) for name, pattern in routes() if "pk" not in pattern.pattern.converters]
    addresses = {name: address(name, pattern, workspace.slug) for name, pattern in lists}

    inside = {name: url for name, url in addresses.items() if "/w/" in url}
    assert all_faults(page, owner, inside, faults_in_full) == {}


def test_signing_in_is_accessible(visit: BrowserContext, transactional_db: None):
    visit.add_init_script(AXE_SCRIPT)
    Passkey.objects.create(user=User.objects.create_user("vera"), name="Laptop", host="localhost")

    assert list(faults(visit.new_page(), "/login/")) == []
