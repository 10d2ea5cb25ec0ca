"""Slow, repeated, lost and refused requests: what the page shows, and what survives."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from django.conf import settings
from playwright.sync_api import Browser, Page, Route, expect

from knowledge_app.models import HeldChange, KnowledgeEntry
from knowledge_app.services.documents.proposals import propose_text
from knowledge_app.services.documents.revisions import open_document, revise_document
from memoryhub.models import Job
from sessions_app.models import Workspace
from sessions_app.services.audit import By
from tests.browser.test_living import learn
from tests.hub import AGENT, NOW, PERSON, open_at, talk

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]
UNREACHABLE = "Can't reach the hub."


@pytest.fixture
def lossy(page: Page, chromium: Browser, live_server) -> Iterator[Page]:
    """A page whose console isn't watched: the browser reports each lost request as an error."""
    context = chromium.new_context(base_url=live_server.url, storage_state=page.context.storage_state())
    yield context.new_page()
    context.close()


def test_a_second_click_sends_nothing_and_the_first_shows_at_once(page: Page, workspace: Workspace):
    page.goto("/w/atlas/knowledge/new/")
    page.locator("textarea").first.fill("Herons fish at dawn")
    sent: list[str] = []
    page.on("request", lambda request: sent.append(request.url) if request.method == "POST" else None)
    page.evaluate(
        """() => addEventListener("submit", ({ submitter }) => {
             const { waiting } = document.documentElement.dataset;
             sessionStorage.shown = `${waiting === ""} ${submitter.getAttribute("aria-busy")}`;
           })"""
    )

    page.locator("main form.form button.primary").dblclick()

    page.wait_for_url(re.compile(r"/knowledge/\d+/$"))
    assert len(sent) == 1
    assert KnowledgeEntry.objects.count() == 1
    assert page.evaluate("sessionStorage.shown") == "true true"


def test_a_page_restored_by_the_back_button_can_be_sent_again(page: Page, workspace: Workspace):
    page.goto("/w/atlas/")
    page.locator(".sidenav").get_by_role("link", name="Memory").click()
    page.wait_for_url("**/memory/")
    page.go_back()
    expect(page.locator("html")).not_to_have_attribute("data-waiting", "")
    assert page.locator("[data-sent]").count() == 0


def test_a_lost_connection_offers_to_retry(lossy: Page, workspace: Workspace):
    learn(workspace, "Herons fish at dawn")
    learn(workspace, "Otters dive")
    lossy.goto("/w/atlas/knowledge/")
    retry = lossy.get_by_role("button", name="Retry")

    lossy.context.set_offline(True)
    lossy.locator("main [data-search]").or_(lossy.locator("#id_q")).first.fill("otters")
    expect(lossy.locator("#messages")).to_contain_text(UNREACHABLE)
    lossy.context.set_offline(False)
    retry.click()
    expect(lossy.locator("#knowledge-list [data-row]")).to_have_count(1)
    expect(retry).to_have_count(0)

    lossy.goto("/w/atlas/knowledge/new/")
    lossy.locator("textarea").first.fill("Terns travel far")
    lossy.context.set_offline(True)
    lossy.locator("main form.form button.primary").click()
    expect(lossy.locator("#messages")).to_contain_text(UNREACHABLE)
    expect(lossy.locator("textarea").first).to_have_value("Terns travel far")
    lossy.context.set_offline(False)
    retry.click()
    lossy.wait_for_url(re.compile(r"/knowledge/\d+/$"))
    assert KnowledgeEntry.objects.filter(content="Terns travel far").count() == 1


@pytest.mark.parametrize(
    "status", [0, 502, 503], ids=["hub down", "proxy without its hub", "proxy that waits for it"]
)
def test_a_form_keeps_what_was_typed_while_the_hub_is_down(lossy: Page, workspace: Workspace, status: int):
    lossy.goto("/w/atlas/settings/")
    lossy.locator("#id_name").fill("Atlas of the north")
    lossy.route("**/*", lambda route: route.fulfill(status=status) if status else route.abort("connectionrefused"))

    lossy.locator("main form.form button.primary, main form button.primary").first.click()

    expect(lossy.locator("#messages")).to_contain_text(UNREACHABLE)
    expect(lossy.locator("#id_name")).to_have_value("Atlas of the north")
    assert lossy.locator("[data-sent], [aria-busy]").count() == 0
    lossy.unroute("**/*")
    lossy.get_by_role("button", name="Retry").click()
    expect(lossy.locator("#messages [data-level=success]")).to_be_visible()
    workspace.refresh_from_db()
    assert workspace.name == "Atlas of the north"


def test_a_form_is_sent_to_a_hub_that_is_only_slow(page: Page, workspace: Workspace):
    page.add_init_script(
        "const timeout = AbortSignal.timeout; AbortSignal.timeout = () => timeout.call(AbortSignal, 200)"
    )
    page.route("**/health/", lambda route: None)  # no answer
    page.goto("/w/atlas/settings/")
    page.locator("#id_name").fill("Atlas of the north")

    page.locator("main form.form button.primary, main form button.primary").first.click()

    expect(page.locator("#messages [data-level=success]")).to_be_visible()
    workspace.refresh_from_db()
    assert workspace.name == "Atlas of the north"


def test_a_form_is_sent_though_its_button_was_replaced_meanwhile(page: Page, workspace: Workspace):
    session = open_at(workspace)
    talk(session, 10)
    held: list[Route] = []
    page.route("**/health/", lambda route: held.append(route))
    page.goto(f"/w/atlas/sessions/{session.pk}/compress/")
    page.fill("#id_keep", "30")
    page.get_by_role("button", name="Compress", exact=True).click()
    expect(page.locator("#plan")).to_contain_text("#0 to #7")  # with a new button

    held[0].continue_()

    expect(page.locator("#run")).to_contain_text("Queued")


def test_a_form_is_sent_though_it_was_replaced_meanwhile(page: Page, workspace: Workspace):
    held: list[Route] = []
    page.route("**/health/", lambda route: held.append(route))
    page.goto("/w/atlas/settings/")
    page.locator("#id_name").fill("Atlas of the north")
    page.locator("main form.form button.primary, main form button.primary").first.click()
    expect(page.locator("form[data-sent]")).to_have_count(1)
    page.evaluate("for (const form of document.querySelectorAll('main form')) form.replaceWith(form.cloneNode(true))")

    held[0].continue_()

    expect(page.locator("#messages [data-level=success]")).to_be_visible()
    workspace.refresh_from_db()
    assert workspace.name == "Atlas of the north"


def test_unsaved_words_come_back_and_control_enter_saves_them(page: Page, workspace: Workspace):
    document = open_document(workspace, "MEMORY.md")
    revise_document(document, "- tea at four\n", base=None, reason="r", by=By(PERSON, NOW))
    edit = f"/w/atlas/memory/{document.pk}/edit/"
    page.goto(edit)
    page.fill("#id_text", "- tea at five\n")
    page.goto("/w/atlas/")
    page.goto(edit)
    expect(page.locator("#messages")).to_contain_text("Your unsaved text was restored.")
    expect(page.locator("#id_text")).to_have_value("- tea at five\n")

    page.locator("#id_text").press("Control+Enter")

    expect(page.locator("#document")).to_contain_text("tea at five")
    page.goto(edit)
    expect(page.locator("#messages")).not_to_contain_text("restored")


def test_a_message_that_was_typed_is_still_there_after_signing_in_again(page: Page, workspace: Workspace):
    session = f"/w/atlas/sessions/{open_at(workspace, 'cli:main').pk}/"
    page.goto(session)
    page.get_by_text("Add a message").click()
    page.fill("#id_content", "The harbour opens at six")
    cookies = page.context.cookies()
    page.context.clear_cookies(name=settings.SESSION_COOKIE_NAME)
    page.get_by_role("button", name="Add", exact=True).click()
    page.wait_for_url("**/login/?next=*")

    page.context.add_cookies(cookies)
    page.goto(session)

    expect(page.locator("#id_content")).to_have_value("The harbour opens at six")
    page.get_by_role("button", name="Add", exact=True).click()
    expect(page.locator("#messages")).to_contain_text("Message added.")
    page.reload()
    expect(page.locator("#messages")).not_to_contain_text("restored")


def test_filters_are_folded_on_a_phone_and_work(page: Page, workspace: Workspace):
    learn(workspace, "Herons fish at dawn")
    page.set_viewport_size({"width": 390, "height": 844})
    for path in ("knowledge", "observations", "key-values", "history", "access", "sessions", "activity"):
        page.goto(f"/w/atlas/{path}/")
        expect(page.locator("main .filters .field").first).to_be_hidden()
    page.goto("/w/atlas/knowledge/")
    page.locator("main .filters > summary").click()
    page.locator("#id_state").select_option(label="Withdrawn")
    expect(page.locator("#knowledge-list")).not_to_contain_text("Herons")


def test_the_inbox_says_that_a_change_was_decided_elsewhere(page: Page, workspace: Workspace):
    document = open_document(workspace, "MEMORY.md")
    revise_document(document, "- tea at four\n", base=None, reason="r", by=By(PERSON, NOW))
    propose_text(document, "- tea at four\n- 2 cups\n", base_number=None, reason="cups", by=By(AGENT, NOW))
    page.goto("/w/atlas/inbox/?kind=change")
    HeldChange.objects.update(status="rejected")

    page.keyboard.press("a")

    expect(page.locator("#messages [data-level=problem], #messages [data-level=error]")).to_be_visible()
    document.refresh_from_db()
    assert "cups" not in document.head.content


def test_a_person_is_forgotten_from_the_account_menu_in_four_clicks(page: Page, workspace: Workspace):
    learn(workspace, "Ana Lind leads the harbour")
    page.goto("/")
    page.locator("summary[aria-label^='Account of']").click()
    page.get_by_role("link", name="Data about a person").click()
    expect(page.get_by_label("Names")).to_be_focused()  # on the next page: typing doesn't wait for it
    page.keyboard.insert_text("Ana Lind")
    page.keyboard.press("Enter")
    expect(page.locator("#erase")).to_contain_text("this can't be undone")
    with page.expect_navigation():
        page.get_by_label("Reason").press("Enter")
    assert not Job.objects.exists()
    page.get_by_label("I understand that this can't be undone").check()
    page.get_by_role("button", name="Erase in").click()
    page.wait_for_url("**/work/*/")


def test_a_person_is_forgotten_from_a_search_in_three_clicks(page: Page, workspace: Workspace):
    learn(workspace, "Ana Lind leads the harbour")
    page.goto("/")
    page.locator(".topbar [data-search]").fill("Ana Lind")
    page.keyboard.press("Enter")
    page.get_by_role("button", name="Forget…").click()
    page.get_by_label("I understand that this can't be undone").check()
    page.get_by_role("button", name="Erase in").click()
    page.wait_for_url("**/work/*/")
    expect(page.locator("#job")).to_be_visible()
