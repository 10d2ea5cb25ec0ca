"""Typed text that isn't saved yet: it survives a login, and goes away when it is saved or discarded."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.conf import settings
from django.contrib.auth.models import User
from playwright.sync_api import Page, expect

from knowledge_app.models import KeyValue, KnowledgeEntry, MemoryDocument
from knowledge_app.services.rows.key_values import write_value
from knowledge_app.services.rows.observations import NewObservation, store
from sessions_app.models import Workspace
from sessions_app.services.audit import By
from tests.browser.test_living import learn
from tests.browser.test_waiting import lossy  # noqa: F401  a fixture
from tests.hub import NOW, PERSON
from tests.inbox.test_inbox import TEXT, propose

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]
RESTORED = "Your unsaved text was restored."
LOST = "Your text was restored. It was sent, but the hub didn't answer: check whether it was saved."


def new(name: str) -> Callable[[Workspace], str]:
    return lambda workspace: f"/w/{workspace.slug}/{name}/new/"


def entry(workspace: Workspace) -> str:
    learn(workspace, "Herons fish at dusk")
    return f"/w/atlas/knowledge/{KnowledgeEntry.objects.get().pk}/"


def observation(workspace: Workspace) -> str:
    [row] = store(workspace, [NewObservation("finding", "Herons fish at dusk")], by=By(PERSON, NOW)).added
    return f"/w/atlas/observations/{row.pk}/"


def value(workspace: Workspace) -> str:
    return f"/w/atlas/key-values/{write_value(workspace, 'heron', 'grey', by=By(PERSON, NOW)).pk}/"


def change(workspace: Workspace) -> str:
    return f"/w/atlas/review/{propose(workspace, TEXT.replace('- tea at four', '- tea at six')).pk}/#edit"


FORMS = {
    "new entry": (new("knowledge"), "#id_content"),
    "entry": (entry, "#id_content"),
    "new observation": (new("observations"), "#id_content"),
    "observation": (observation, "#id_content"),
    "new value": (new("key-values"), "#id_value"),
    "value": (value, "#new-value"),
    "held change": (change, "#text"),
}


def send_without_answer(page: Page, path: str) -> None:
    """Send the form of a new entry, whose request fails with a page that isn't the hub's."""
    page.route(f"**{path}", lambda route: route.fulfill(status=500, body="<p>Something went wrong</p>"))
    page.locator("form:has(#id_content) button.primary").click()
    expect(page.locator("body")).to_have_text("Something went wrong")
    page.unroute(f"**{path}")


@pytest.mark.parametrize(("prepare", "field"), FORMS.values(), ids=FORMS)
def test_typed_text_survives_a_login_and_goes_away_when_it_is_saved(
    page: Page, workspace: Workspace, prepare: Callable[[Workspace], str], field: str
):
    path = prepare(workspace)
    page.goto(path)
    if page.locator("#id_key").count():
        page.fill("#id_key", "heron")
    unfold_edit(page)
    page.fill(field, "Herons fish at dawn")
    save = page.locator(f"form:has({field}) button.primary")
    cookies = page.context.cookies()
    page.context.clear_cookies(name=settings.SESSION_COOKIE_NAME)
    save.click()
    page.wait_for_url("**/login/?next=*")
    page.context.add_cookies(cookies)

    page.goto(path)

    expect(page.locator("#messages")).to_contain_text(RESTORED)
    expect(page.locator(field)).to_have_value("Herons fish at dawn")
    save.click()
    expect(page.locator("#messages [data-level=success]").first).to_be_visible()
    page.goto(path)
    expect(page.locator("h1")).to_be_visible()
    expect(page.locator("#messages")).not_to_contain_text(RESTORED)


def unfold_edit(page: Page) -> None:
    fold = page.locator("details#edit:not([open]) > summary")
    if fold.count():
        fold.click()


def test_restored_text_can_be_discarded(page: Page, workspace: Workspace):
    path = entry(workspace)
    page.goto(path)
    page.fill("#id_content", "Herons fish at dawn")
    page.goto("/w/atlas/")
    page.goto(path)

    page.get_by_role("button", name="Discard", exact=True).click()

    expect(page.locator("#id_content")).to_have_value("Herons fish at dusk")
    page.reload()
    expect(page.locator("#id_content")).to_have_value("Herons fish at dusk")
    expect(page.locator("#messages")).not_to_contain_text(RESTORED)


def test_an_observation_that_waits_for_a_decision_leaves_no_draft(page: Page, workspace: Workspace):
    observation(workspace)
    page.goto("/w/atlas/observations/new/")
    page.fill("#id_content", "Herons fish at dusk")

    page.locator("form:has(#id_content) button.primary").click()

    expect(page.locator("#messages")).to_contain_text("A similar observation exists")
    page.goto("/w/atlas/observations/new/")
    expect(page.locator("#id_content")).to_have_value("")


def test_new_text_whose_answer_was_lost_says_that_it_may_have_been_saved(lossy: Page, workspace: Workspace):  # noqa: F811
    path = "/w/atlas/knowledge/new/"
    lossy.goto(path)
    lossy.fill("#id_content", "Herons fish at dawn")
    send_without_answer(lossy, path)

    lossy.goto(path)

    expect(lossy.locator("#messages")).to_contain_text(LOST)
    expect(lossy.locator("#id_content")).to_have_value("Herons fish at dawn")


@pytest.mark.parametrize(("prepare", "field"), [FORMS["entry"], FORMS["value"]], ids=["entry", "value"])
def test_restored_text_does_not_replace_what_somebody_saved_meanwhile(
    page: Page, workspace: Workspace, prepare: Callable[[Workspace], str], field: str
):
    path = prepare(workspace)
    page.goto(path)
    page.fill(field, "Herons fish at dawn")
    page.goto("/w/atlas/")
    other = page.context.new_page()
    other.goto(path)
    other.fill(field, "Herons fish at noon")
    other.locator(f"form:has({field}) button.primary").click()
    expect(other.locator("#messages [data-level=success]").first).to_be_visible()

    page.goto(path)
    expect(page.locator(field)).to_have_value("Herons fish at dawn")
    page.locator(f"form:has({field}) button.primary").click()

    expect(page.locator("main")).to_contain_text("changed")
    stored = KnowledgeEntry.objects.values_list("content", flat=True)
    values = KeyValue.objects.values_list("value", flat=True)
    assert [*stored, *values] == ["Herons fish at noon"]


def test_the_next_person_in_a_tab_does_not_get_typed_text(page: Page, workspace: Workspace):
    page.goto("/w/atlas/key-values/new/")
    page.fill("#id_value", "a secret of the first person")
    User.objects.create_superuser("zoe", password="correct horse battery")
    page.context.clear_cookies(name=settings.SESSION_COOKIE_NAME)
    page.goto("/login/?next=/w/atlas/key-values/new/")
    page.fill("[name=username]", "zoe")
    page.fill("[name=password]", "correct horse battery")
    page.get_by_role("button", name="Sign in", exact=True).click()
    page.wait_for_url("**/key-values/new/")

    expect(page.locator("#id_value")).to_have_value("")
    expect(page.locator("#messages")).not_to_contain_text(RESTORED)


def test_signing_out_removes_typed_text(page: Page, workspace: Workspace):
    page.goto("/w/atlas/key-values/new/")
    page.fill("#id_value", "a secret")
    page.context.clear_cookies(name=settings.SESSION_COOKIE_NAME)

    page.goto("/login/?signed-out=1")

    assert page.evaluate("Object.values(sessionStorage).filter((text) => text.includes('a secret')).length") == 0


def test_text_restored_on_another_page_leaves_the_form_that_was_sent(lossy: Page, workspace: Workspace):  # noqa: F811
    propose(workspace, TEXT.replace("- tea at four", "- tea at six"))
    edit, path = f"/w/atlas/memory/{MemoryDocument.objects.get().pk}/edit/", "/w/atlas/knowledge/new/"
    lossy.goto(edit)
    lossy.fill("[data-draft]", "a new text")
    lossy.goto(path)
    lossy.fill("#id_content", "Herons fish at dawn")
    send_without_answer(lossy, path)

    lossy.goto(edit)
    expect(lossy.locator("#messages")).to_contain_text(RESTORED)
    lossy.goto(path)

    expect(lossy.locator("#id_content")).to_have_value("Herons fish at dawn")
