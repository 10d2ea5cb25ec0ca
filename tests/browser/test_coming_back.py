"""Coming back to a page: the place in a list, and what was sent to preview something."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from knowledge_app.models import KnowledgeEntry
from memoryhub.models import Job
from sessions_app.models import Workspace
from tests.browser.test_living import learn
from tests.hub import add, open_at
from tests.inbox.test_inbox import TEXT, propose

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]
PHONE = {"width": 390, "height": 844}


@pytest.fixture
def phone(page: Page) -> Page:
    page.set_viewport_size(PHONE)
    return page


@pytest.fixture
def many(workspace: Workspace) -> Workspace:
    """A workspace with lists that are longer than a phone's screen."""
    for number in range(25):
        propose(workspace, TEXT + f"- {number} cups\n", reason=f"change {number}")
        learn(workspace, f"Herons fish at berth {number}")
        add(open_at(workspace, f"telegram:{number}"), [{"role": "user", "content": f"A heron is at berth {number}."}])
    return workspace


def open_a_late_row(phone: Page, rows: str) -> int:
    """Open one of the last rows. Return where the page was."""
    row = phone.locator(rows).locator("visible=true").nth(-3)
    row.evaluate("row => scrollTo(0, row.getBoundingClientRect().y + scrollY - 400)")
    place = phone.evaluate("scrollY")
    assert place > PHONE["height"]
    row.click()
    return place


def expect_at(phone: Page, place: int) -> None:
    for _ in range(100):
        if abs(phone.evaluate("scrollY") - place) < 40:
            return
        phone.wait_for_timeout(50)
    raise AssertionError(f"{phone.evaluate('scrollY')}, not {place}")


@pytest.mark.parametrize(
    ("path", "rows"),
    [
        ("/w/atlas/memory/", ".memory-row a"),
        ("/w/atlas/sessions/", "main tbody th a"),
        ("/w/atlas/search/?q=heron", ".search-rows .search-title"),
    ],
)
def test_back_leads_to_the_same_place_in_a_list(phone: Page, many: Workspace, path: str, rows: str):
    phone.goto(path)
    with phone.expect_navigation():
        place = open_a_late_row(phone, rows)

    phone.go_back()

    expect_at(phone, place)


@pytest.mark.parametrize("back", ["browser", "link"])
@pytest.mark.parametrize("is_ahead", [True, False], ids=["fetched ahead", "fetched when opened"])
def test_back_leads_to_the_same_place_in_the_inbox(phone: Page, many: Workspace, back: str, is_ahead: bool):
    if not is_ahead:
        phone.route("**/*ahead=*", lambda route: route.fulfill(status=204))
    phone.goto("/inbox/")
    if is_ahead:
        expect(phone.locator(".inbox-rows [data-ready]")).to_have_count(24)
    place = open_a_late_row(phone, ".inbox-rows a")
    expect(phone.locator("#item-title")).to_be_visible()

    if back == "browser":
        phone.go_back()
    else:
        phone.locator(".inbox-back a").click()

    expect(phone.locator(".inbox-rows a").first).to_be_visible()
    expect_at(phone, place)


def find_heron(page: Page, path: str) -> None:
    page.goto(path)
    if page.locator("#id_kind").count():
        page.locator("#id_kind").select_option("phrase")
    page.fill("#id_words", "Grey Heron")
    page.locator("form:has(#id_words) button").first.click()
    expect(page.locator("#found, #preview")).to_be_visible()


@pytest.mark.parametrize("path", ["/person-data/", "/w/atlas/forget/"])
def test_back_and_reload_show_the_preview_of_an_erasure_again(page: Page, workspace: Workspace, path: str):
    learn(workspace, "Grey Heron leads the harbour")
    page.goto("/")
    find_heron(page, path)
    preview = page.locator("#found, #preview")

    page.locator(".brand").click()
    page.wait_for_url("**/")
    page.go_back()
    expect(preview).to_be_visible()
    page.reload()
    expect(preview).to_be_visible()

    expect(page.locator("#id_words")).to_have_value("Grey Heron")
    assert page.url.endswith(path)
    page.go_back()
    expect(preview).to_have_count(0)
    page.go_back()
    assert not page.url.endswith(path)
    assert KnowledgeEntry.objects.count() == 1


def test_an_erasure_that_is_not_confirmed_stays_on_an_address_that_can_be_loaded(page: Page, workspace: Workspace):
    learn(workspace, "Grey Heron leads the harbour")
    find_heron(page, "/person-data/")

    page.locator("#erase .button.danger").click()
    expect(page.locator("#erase")).to_contain_text("Tick the box to erase.")

    assert page.url.endswith("/person-data/")
    page.reload()
    expect(page.locator("#found")).to_be_visible()
    expect(page.locator("main")).not_to_contain_text("Tick the box to erase.")
    assert not Job.objects.exists()
