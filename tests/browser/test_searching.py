"""Search in a browser: results while typing, explanations, and bulk actions."""

from __future__ import annotations

import time
from collections.abc import Callable
from threading import Event
from typing import Any

import pytest
from django.http import HttpResponse
from playwright.sync_api import Page, expect

from knowledge_app.models import KnowledgeEntry
from memoryhub.search.views import search as search_views
from sessions_app.models import Workspace
from tests.browser.accessibility import accessibility_faults
from tests.searches import know, say

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


def test_results_update_while_typing_and_the_address_follows(page: Page, demo: None):
    page.goto("/w/pilot/search/")
    expect(page.locator("[data-search]").first).to_be_focused()
    page.keyboard.type("kin")
    expect(page.locator("#search-offers [role=option]", has_text="kind:")).to_be_visible()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    page.keyboard.type("know")
    expect(page.locator("#search-offers [role=option]", has_text="knowledge")).to_be_visible()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    expect(page.locator("[data-search]").first).to_have_value("kind:knowledge ")
    page.keyboard.type("dome")
    expect(page.locator(".search-rows [data-row]").first).to_contain_text("dome")
    expect(page.locator("#search-count strong")).to_be_visible()
    page.wait_for_url("**kind%3Aknowledge*dome*")
    page.wait_for_load_state("networkidle")
    page.reload()
    page.wait_for_load_state("networkidle")
    expect(page.locator(".search-rows mark").first).to_have_text("dome")


@pytest.fixture
def released() -> Event:
    """An event that delayed results wait for. It is set until a test clears it."""
    event = Event()
    event.set()
    return event


@pytest.fixture
def slow_results(monkeypatch: pytest.MonkeyPatch, released: Event) -> Callable[[float], None]:
    """Return a function that delays the results of later searches by a number of seconds."""
    render = search_views.render_page
    delay = 0.0

    def delayed(*arguments: Any, **values: Any) -> HttpResponse:
        time.sleep(delay)
        released.wait(30)
        return render(*arguments, **values)

    def set_delay(seconds: float) -> None:
        nonlocal delay
        delay = seconds

    monkeypatch.setattr(search_views, "render_page", delayed)
    return set_delay


@pytest.mark.parametrize("submit", ["Enter", "button"])
def test_a_submitted_search_always_shows_results(
    page: Page, workspace: Workspace, slow_results, released: Event, submit: str
):
    know(workspace, "the dome rotates")
    for seconds in (0.0, 0.15, 0.4, 0.8, 3.0):
        slow_results(0.0)
        page.goto(f"/w/{workspace.slug}/search/")
        slow_results(seconds)
        if seconds > 0.5:
            released.clear()
        page.locator("#q").press_sequentially("dome", delay=20)
        if submit == "Enter":
            page.keyboard.press("Enter")
        else:
            page.click("#search-form button[type=submit]")
        if seconds > 0.5:
            expect(page.get_by_text("Searching…")).to_be_visible()
            released.set()
        expect(page.locator(".search-rows mark").first).to_have_text("dome")
        page.wait_for_url("**/search/?q=dome*")
        expect(page.get_by_text("Searching…")).to_be_hidden()
        page.wait_for_load_state("networkidle")


def _is_typed(url: str) -> bool:
    """Return whether a request is for what was typed so far, which the next letter replaces."""
    return "/search/complete/" in url or "part=1" in url


@pytest.mark.parametrize("pause", [20, 300])  # ms between keys: less and more than the pause that starts a search
def test_typing_during_a_search_does_not_abort_it(page: Page, workspace: Workspace, slow_results, pause: int):
    know(workspace, "the dome lights up")
    finished, aborted = _searches(page)
    page.goto(f"/w/{workspace.slug}/search/")
    slow_results(0.8)
    page.fill("#q", "dome")
    page.keyboard.press("Enter")
    page.keyboard.type(" lights", delay=pause)
    page.wait_for_url("**/search/?q=dome+lights*")
    expect(page.locator(".search-rows mark", has_text="lights").first).to_be_visible()
    assert ["q=dome&" in url for url in finished if not _is_typed(url)] == [True]
    assert not [url for url in aborted if not _is_typed(url)]


def test_a_second_submit_replaces_the_first_at_once(page: Page, workspace: Workspace, slow_results):
    know(workspace, "the dome lights up")
    finished, aborted = _searches(page)
    page.goto(f"/w/{workspace.slug}/search/")
    slow_results(0.8)
    page.fill("#q", "dome")
    page.keyboard.press("Enter")
    page.keyboard.type(" lights")
    page.keyboard.press("Enter")
    page.wait_for_url("**/search/?q=dome+lights*")
    expect(page.locator(".search-rows mark", has_text="lights").first).to_be_visible()
    assert ["q=dome%20lights&" in url for url in finished] == [True]
    assert ["q=dome&" in url for url in aborted if "/complete/" not in url] == [True]


@pytest.mark.parametrize("is_sent", [True, False])
def test_back_leads_to_the_search_before(page: Page, workspace: Workspace, is_sent: bool):
    know(workspace, "the dome lights up")
    page.goto(f"/w/{workspace.slug}/search/")
    page.locator("#q").press_sequentially("dome", delay=20)
    page.keyboard.press("Enter")
    page.wait_for_url("**/search/?q=dome*")
    expect(page.locator(".search-rows mark", has_text="dome").first).to_be_visible()
    page.locator("#q").press("Control+a")
    page.locator("#q").press_sequentially("light", delay=20)
    page.wait_for_url("**/search/?q=light*")
    page.keyboard.type("s")
    page.wait_for_url("**/search/?q=lights*")
    if is_sent:
        page.keyboard.press("Enter")
    expect(page.locator(".search-rows mark", has_text="lights").first).to_be_visible()
    page.wait_for_load_state("networkidle")

    page.go_back()

    page.wait_for_url("**/search/?q=dome*")
    expect(page.locator("#q")).to_have_value("dome")
    expect(page.locator(".search-rows mark", has_text="dome").first).to_be_visible()


def _searches(page: Page) -> tuple[list[str], list[str]]:
    """Return the addresses of htmx's searches, as they finish, and of all searches that are aborted."""
    finished: list[str] = []
    aborted: list[str] = []
    searches = ("/search/?q=", "/search/complete/")
    page.on("requestfinished", lambda request: finished.append(request.url) if searches[0] in request.url else None)
    page.on(
        "requestfailed",
        lambda request: aborted.append(request.url) if any(path in request.url for path in searches) else None,
    )
    return finished, aborted


def test_a_result_explains_itself_and_shows_its_context(page: Page, demo: None):
    page.goto("/w/atlas/search/?q=scheduler+p95&kind=entry")
    row = page.locator(".search-rows [data-row]").first
    row.locator("summary", has_text="Why this result").click()
    expect(row.locator("table").first).to_contain_text("scheduler")
    rows_before = row.locator("[dir=auto]").count()
    row.get_by_text("Show context").click()
    expect(row.locator("[dir=auto]")).not_to_have_count(rows_before)
    assert accessibility_faults(page) == []


def test_actions_follow_the_selection_and_a_refusal_keeps_it(page: Page, workspace: Workspace):
    know(workspace, "the dome rotates")
    say(workspace, "the dome is open")
    page.goto(f"/w/{workspace.slug}/search/?q=dome")
    page.wait_for_load_state("networkidle")
    message, entry = (page.locator(f"input[name=row][value^='{kind}:']") for kind in ("entry", "knowledge"))
    verify = page.locator(".choosing button[value=verify]")
    tag = page.locator(".choosing summary", has_text="Add tags")

    message.check()
    expect(verify).to_be_disabled()
    expect(verify).to_have_attribute("title", "Only for memory lines, knowledge entries and observations")
    expect(tag).to_have_attribute("aria-disabled", "true")
    entry.check()
    expect(verify).to_have_text("Mark as verified 1 of 2")
    assert accessibility_faults(page) == []
    tag.click()
    page.click(".choosing button[value=tag]")
    expect(page.locator("#messages")).to_contain_text("Name at least one tag.")
    expect(message).to_be_checked()
    expect(page.locator(".choosing output")).to_contain_text("2")
    message.uncheck()
    expect(verify).to_have_text("Mark as verified")


def test_all_matches_are_withdrawn_and_restored(page: Page, demo: None):
    page.goto("/w/pilot/search/?q=kind:knowledge+dome")
    fitting = page.locator(".search-rows [data-row]").count()
    page.get_by_label(f"Select all {fitting}").check()
    page.click(".choosing summary:has-text('Withdraw')")
    page.fill("#ask-withdraw", "out of date")
    page.click(".choosing button[value=withdraw]")
    expect(page.locator("#messages")).to_contain_text(f"{fitting} knowledge entries")
    assert KnowledgeEntry.objects.filter(withdrawn_reason="out of date").count() == fitting
    page.click("#messages button:has-text('Undo')")
    expect(page.locator("#messages")).to_contain_text("Undone.")
    assert not KnowledgeEntry.objects.exclude(withdrawn_at=None).exists()
