"""How many steps the main tasks take by mouse, by keyboard alone and on a phone.

A step is a click, a tap, or a key that activates or decides something. Typing a text with the Enter after it isn't
one, and neither is moving the focus with Tab. A click into a field that doesn't have the focus is one.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from knowledge_app.models import HeldChange, KnowledgeEntry, MemoryDocument
from knowledge_app.services.documents.proposals import propose_text
from knowledge_app.services.documents.revisions import open_document, revise_document
from knowledge_app.services.rows.knowledge import add_knowledge
from sessions_app.models import Workspace
from sessions_app.services.audit import By
from tests.browser.hands import Hand, Keyboard, Mouse, Phone
from tests.browser.test_twelve_journeys import FACTS, agent, taken  # noqa: F401  a fixture
from tests.hub import AGENT, NOW, PERSON, run_jobs
from tests.inbox.test_inbox import ORDER, TEXT, propose

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]
BELIEVED = "Ana Lind leads the harbour project"


@pytest.fixture(params=[Mouse, Keyboard, Phone], ids=["mouse", "keyboard", "phone"])
def does(request: pytest.FixtureRequest, page: Page) -> Hand:
    hand: Callable[[Page], Hand] = request.param
    return hand(page)


def believe(folder: Path) -> MemoryDocument:
    """Import the agent's folder with a fact that one of its messages says."""
    memory = folder / "memory" / "MEMORY.md"
    memory.write_text(f"# Harbour\n\n- {BELIEVED}\n- {FACTS[0]}\n")
    workspace = taken(folder)
    return workspace.documents.get(name="MEMORY.md")


def open_first(does: Hand) -> None:
    """Open the first item of the inbox, which a wide window shows from the start."""
    if isinstance(does, Phone):
        does.press(does.page.locator(".inbox-rows a").first)


def test_why_a_fact_is_believed(does: Hand, agent: Path):  # noqa: F811
    believe(agent)
    does.page.goto("/w/atlas/")

    does.section("Memory")
    does.press(does.page.locator("main .memory-row a", has_text=BELIEVED))

    expect(does.page.locator(".origin").first).to_contain_text("Ana Lind leads the harbour project now.")
    assert does.steps <= 2


def test_a_fact_is_corrected_and_reaches_the_agent(does: Hand, agent: Path):  # noqa: F811
    document = believe(agent)
    does.page.goto(f"/w/atlas/memory/facts/{document.facts.get(text=BELIEVED).pk}/")

    does.link("Correct")
    does.write_into("Fact", "Bo Ek leads the harbour project")
    does.button("Save")
    does.button("Send to agent")
    expect(does.page.locator("#delivery")).to_contain_text("Sending to")
    run_jobs()

    expect(does.page.locator("#delivery")).to_contain_text("Delivered to")
    assert "Bo Ek leads" in (agent / "memory" / "MEMORY.md").read_text()
    assert does.steps <= 3


def test_a_held_change_is_decided_by_part(does: Hand, workspace: Workspace):
    change = propose(workspace, TEXT.replace("- tea at four\n", "- tea at six\n").replace("- Bo cooks", f"- {ORDER}"))
    does.page.goto("/w/atlas/inbox/")

    open_first(does)
    does.decide(does.page.locator(".part[data-risky] label", has_text="Reject"), "r")
    if not isinstance(does, Keyboard):  # the key that decides the last part also submits
        does.button("Submit")

    expect(does.page.locator("main")).to_contain_text("Inbox zero")
    change.refresh_from_db()
    assert change.status == "approved"
    assert "evil.example" not in change.document.head.content
    assert does.steps <= 3


def test_twenty_held_changes_are_decided(does: Hand, workspace: Workspace):
    document = open_document(workspace, "MEMORY.md")
    revise_document(document, TEXT, base=None, reason="r", by=By(PERSON, NOW))
    for number in range(20):
        added = f"- {ORDER} {number}\n" if number % 5 == 0 else f"- {number} cups\n"
        propose_text(document, TEXT + added, base_number=None, reason=f"change {number}", by=By(AGENT, NOW))
    does.page.goto("/w/atlas/inbox/")

    if is_phone := isinstance(does, Phone):
        does.link("Accept 16 safe items…")
        does.press(does.page.locator("main form button.primary"))
        expect(does.page.locator(".pills a").first).to_contain_text("4")
    open_first(does)
    for number in range(0, 20, 5 if is_phone else 1):
        expect(does.page.locator(".inbox-detail q").first).to_have_text(f"change {number}")
        place, key = (1, "r") if number % 5 == 0 else (0, "a")
        does.decide(does.page.locator("#inbox-detail .review-bar button").nth(place), key)

    expect(does.page.locator("#inbox")).to_contain_text("Inbox zero")
    assert does.steps <= 20
    assert HeldChange.objects.filter(status="approved").count() == 16


def test_a_person_is_forgotten_in_the_whole_hub(does: Hand, agent: Path):  # noqa: F811
    believe(agent)
    does.page.goto("/")

    does.press(does.page.locator(".topbar summary[aria-label^='Account']"))
    does.link("Data about a person")
    does.write_into("Names", "Ana Lind")
    does.page.keyboard.press("Enter")
    does.tick(does.page.get_by_label("I understand that this can't be undone"))
    does.press(does.page.locator("#erase .button.danger"))

    expect(does.page.locator("h1")).to_contain_text("Erasure")
    run_jobs()
    assert "Ana Lind" not in MemoryDocument.objects.get(name="MEMORY.md").head.content
    assert does.steps <= 4


def test_entries_are_recategorised_in_the_admin(does: Hand, workspace: Workspace):
    for number in range(30):
        add_knowledge(workspace, f"Berth {number} is free", category="learned_fact", by=By(PERSON, NOW))
    does.page.goto("/")

    does.link("Administration")
    does.press(does.page.locator("#content-main").get_by_role("link", name="Knowledge entries").first)
    does.page.wait_for_url("**/knowledgeentry/")  # and until its check boxes have their handlers
    does.tick(does.page.locator("#action-toggle"))
    does.press(does.page.locator("button[name=index]", has_text="Re-categorise"))
    does.press(does.page.locator("button[value=error_pattern]"))

    expect(does.page.locator(".messagelist")).to_contain_text("30 knowledge entries re-categorised")
    assert KnowledgeEntry.objects.filter(category="error_pattern").count() == 30
    assert does.steps <= 5


def test_an_agent_is_connected(does: Hand, workspace: Workspace):
    does.page.goto("/w/atlas/")

    does.link("Connect")
    expect(does.page.locator("#first-call")).to_contain_text("This workspace has no valid token")
    does.link("Create token")
    does.write_into("Agent name", "scout")
    does.button("Create token")

    expect(does.page.locator("#first-call")).to_contain_text("Waiting for the first call")
    assert does.steps <= 3
