"""Live updates of open pages, without moving what is being read."""

from __future__ import annotations

import pytest
from django.utils import timezone
from playwright.sync_api import Page, expect

from knowledge_app.models import KnowledgeEntry
from knowledge_app.services.rows.knowledge import add_knowledge
from memoryhub.conversations.appending import record_entries
from sessions_app.models import Workspace
from sessions_app.services.audit import By
from sessions_app.services.parsing import read_batch
from tests.hub import AGENT, open_at, talk

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


def say(workspace: Workspace, text: str) -> None:
    now = timezone.now()
    rows = read_batch([{"role": "user", "content": text}], now=now)
    record_entries(workspace, "cli:main", rows, by=By(AGENT, now))


def learn(workspace: Workspace, text: str) -> None:
    category = KnowledgeEntry.Category.LEARNED_FACT
    add_knowledge(workspace, category=category, content=text, by=By(AGENT, timezone.now()))


def test_new_entries_appear_without_moving_the_reader(page: Page, workspace: Workspace):
    session = open_at(workspace)
    talk(session, 12)
    page.goto(f"/w/atlas/sessions/{session.pk}/")
    page.evaluate("scrollTo(0, document.body.scrollHeight)")
    say(workspace, "The heron is back.")
    expect(page.get_by_text("The heron is back.")).to_be_in_viewport()
    expect(page.locator("#session-numbers")).to_contain_text("49 messages")

    page.evaluate("scrollTo(0, 400)")
    place = page.evaluate("scrollY")
    say(workspace, "It caught a fish.")

    button = page.locator("#live-offers button")
    expect(button).to_have_text("1 new turn: show")
    expect(page.get_by_text("It caught a fish.")).not_to_be_in_viewport()
    assert page.evaluate("scrollY") == place
    button.click()
    expect(page.get_by_text("It caught a fish.")).to_be_in_viewport()
    expect(button).to_have_count(0)


def test_a_list_updates_unless_rows_are_selected(page: Page, workspace: Workspace):
    learn(workspace, "Herons fish at dawn")
    page.goto("/w/atlas/knowledge/")
    learn(workspace, "Herons nest in trees")
    rows = page.locator("#knowledge-list li[data-row]")
    expect(rows).to_have_count(2)

    page.locator("input[name=row]").first.check()
    learn(workspace, "Herons are patient")

    button = page.locator("#live-offers button")
    expect(button).to_have_text("1 new: show")
    expect(rows).to_have_count(2)
    expect(page.locator("input[name=row]").first).to_be_checked()
    button.click()
    expect(rows).to_have_count(3)
    expect(page.locator("#knowledge-list")).to_be_focused()
