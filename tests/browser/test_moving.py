"""Keyboard navigation: the palette, shortcuts and focus."""

from __future__ import annotations

import re
import time
from typing import Any

import pytest
from playwright.sync_api import BrowserContext, Page, expect

from memoryhub.dashboard.views import palette as palette_view
from memoryhub.models import Preferences
from sessions_app.models import Workspace
from tests.browser.test_living import learn
from tests.hub import open_at

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]
BOX = "#palette [role=combobox]"


def test_the_palette_opens_pages_and_returns_the_focus(page: Page, workspace: Workspace):
    open_at(workspace, "cli:herons")
    page.goto("/w/atlas/")
    page.focus(".palette-opener")
    page.keyboard.press("Control+k")
    box, options = page.locator(BOX), page.locator("#palette [role=option]")
    expect(box).to_be_focused()
    page.keyboard.type("heron")
    expect(options.filter(has_text="Search for “heron”")).to_be_visible()  # the full text was used
    expect(options.first).to_contain_text("cli:herons")
    page.keyboard.press("ArrowDown")
    chosen = page.locator("#palette [aria-selected=true]")
    expect(chosen).to_have_count(1)
    expect(box).to_have_attribute("aria-activedescendant", chosen.get_attribute("id") or "")

    page.keyboard.press("Escape")
    expect(page.locator(".palette-opener")).to_be_focused()
    page.keyboard.press("Control+k")
    expect(box).to_have_value("heron")
    page.keyboard.press("Enter")
    page.wait_for_url("**/w/atlas/sessions/*/")

    page.keyboard.press("Control+k")
    page.keyboard.type("theme: dark")
    expect(options.first).to_contain_text("Theme: dark")
    page.keyboard.press("Enter")
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    assert Preferences.objects.get().theme == "dark"


@pytest.mark.parametrize("seconds", [0.0, 0.15, 0.4, 0.8])
def test_enter_opens_the_first_row_of_what_was_typed(
    page: Page, workspace: Workspace, monkeypatch: pytest.MonkeyPatch, seconds: float
):
    matches = palette_view.palette_matches

    def delayed(*arguments: Any, **values: Any) -> palette_view.PaletteMatches:
        time.sleep(seconds)
        return matches(*arguments, **values)

    monkeypatch.setattr(palette_view, "palette_matches", delayed)
    open_at(workspace, "cli:herons")
    page.goto("/w/atlas/activity/")  # the first recent place
    for pause in (0, 100, 300):
        page.goto("/w/atlas/")
        page.keyboard.press("Control+k")
        expect(page.locator("#palette [role=option]").first).to_be_visible()
        page.locator(BOX).press_sequentially("heron", delay=30)
        page.wait_for_timeout(pause)
        page.keyboard.press("Enter")
        page.wait_for_url("**/w/atlas/sessions/*/")


def test_pages_with_the_same_title_are_one_recent_place(page: Page, workspace: Workspace):
    for query in ("", "?kind=changes", "?kind=runs"):
        page.goto(f"/w/atlas/timeline/{query}")
    page.goto("/w/atlas/")

    page.keyboard.press("Control+k")

    recent = page.locator("#palette [aria-label=Recent] [role=option]")
    expect(recent.filter(has_text="Timeline")).to_have_count(1)


def test_the_palette_says_that_the_hub_fails_and_leads_to_the_login(page: Page, workspace: Workspace):
    page.goto("/")
    rows = re.compile(r"/palette/\?")
    page.route(rows, lambda route: route.fulfill(status=302, headers={"Location": "/"}))
    page.keyboard.press("Control+k")
    expect(page.locator("#palette > output")).to_have_text("The hub doesn't respond.")
    assert page.locator("#palette > output").bounding_box()["height"] > 20
    page.unroute(rows)
    page.context.clear_cookies()
    page.keyboard.type("inbox")
    page.wait_for_url("**/login/?next=*&ended=1")


def test_closing_the_palette_or_typing_on_takes_enter_back(
    page: Page, workspace: Workspace, monkeypatch: pytest.MonkeyPatch
):
    matches = palette_view.palette_matches

    def delayed(*arguments: Any, **values: Any) -> palette_view.PaletteMatches:
        time.sleep(3)
        return matches(*arguments, **values)

    monkeypatch.setattr(palette_view, "palette_matches", delayed)
    open_at(workspace, "cli:herons")
    page.goto("/w/atlas/")
    for text, key in (("hero", "Escape"), ("heron", "s")):  # of the same text, the rows would be there already
        page.keyboard.press("Control+k")
        page.locator(BOX).fill(text)
        page.keyboard.press("Enter")
        page.keyboard.press(key)
        page.wait_for_timeout(4_500)
        assert page.url.endswith("/w/atlas/")
    expect(page.locator("#palette [role=option]").first).to_contain_text("cli:herons")
    expect(page.locator("#palette-list[aria-busy]")).to_have_count(0)


def test_shortcuts_are_ignored_while_typing_and_can_be_turned_off(
    page: Page, visit: BrowserContext, workspace: Workspace
):
    learn(workspace, "Herons fish at dawn")
    page.goto("/w/atlas/knowledge/")
    page.keyboard.press("/")
    page.keyboard.type("jun?")
    expect(page.locator("main [data-search]")).to_have_value("jun?")
    page.keyboard.press("Escape")
    page.goto("/w/atlas/knowledge/")
    page.keyboard.press("j")
    expect(page.locator("main [data-row] a").first).to_be_focused()
    page.keyboard.press("o")
    page.wait_for_url("**/knowledge/*/")
    page.keyboard.press("u")
    page.wait_for_url(re.compile(r"/knowledge/\?category="))
    page.keyboard.press("?")
    expect(page.locator("#shortcuts")).to_contain_text("Open the row")
    expect(page.locator("#shortcuts [data-when*=prev]")).to_be_hidden()
    page.keyboard.press("Escape")

    visit.add_cookies([{"name": "keys", "value": "off", "url": page.url}])
    page.reload()
    page.keyboard.press("?")
    page.keyboard.press("j")
    expect(page.locator("#shortcuts")).to_be_hidden()
    expect(page.locator("body")).to_be_focused()
    page.keyboard.press("Control+k")
    expect(page.locator(BOX)).to_be_focused()


def test_go_shortcuts_work_with_any_keyboard_layout(page: Page, workspace: Workspace):
    page.goto("/w/atlas/")
    page.keyboard.press("?")
    expect(page.locator("#shortcuts")).to_contain_text("Go to: Insights")
    page.keyboard.press("Escape")
    page.keyboard.press("g")
    page.keyboard.press("n")
    page.wait_for_url("**/w/atlas/statistics/")

    for key, code in (("ע", "KeyG"), ("ב", "KeyC")):
        event = {"key": key, "code": code, "bubbles": True}
        page.evaluate("event => document.body.dispatchEvent(new KeyboardEvent('keydown', event))", event)
    page.wait_for_url("**/w/atlas/sessions/")


def test_the_focus_survives_a_swap(page: Page, workspace: Workspace):
    for text in ("Herons fish at dawn", "Herons nest in trees", "Herons are patient"):
        learn(workspace, text)
    page.goto("/w/atlas/knowledge/")
    page.evaluate("""() => { /* a part that renews itself while a link in it has the focus */
      document.querySelector("#knowledge-list").dataset.old = "";
      document.querySelectorAll("#knowledge-list [data-row] a")[1].focus();
      htmx.ajax("GET", location.href, { target: "#knowledge-list", swap: "outerHTML" });
    }""")
    expect(page.locator("#knowledge-list:not([data-old])")).to_be_visible()
    expect(page.locator("#knowledge-list [data-row] a").nth(1)).to_be_focused()

    page.fill("#id_q", "patient")
    expect(page.locator("#knowledge-list [data-row]")).to_have_count(1)
    expect(page.locator("#id_q")).to_be_focused()

    page.click("[aria-label=Help]")
    page.click("button[data-dialog=shortcuts]")
    page.keyboard.press("Escape")
    expect(page.locator("[aria-label=Help]")).to_be_focused()
