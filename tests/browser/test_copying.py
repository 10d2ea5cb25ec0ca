"""Copying pages as Markdown, and printing."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from sessions_app.models import Workspace
from tests.hub import open_at, talk

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]
SHUT = "Object.defineProperty(navigator, 'clipboard', {value: {writeText: () => Promise.reject(new Error('shut'))}})"


def test_the_button_to_copy_is_inside_the_box(page: Page, workspace: Workspace):
    page.set_viewport_size({"width": 1440, "height": 900})
    page.goto("/w/atlas/connect/")
    boxes = page.locator(".copyable:visible").evaluate_all(
        "boxes => boxes.map((box) => [box.querySelector('pre'), box.querySelector('.button')]"
        ".map((part) => part.getBoundingClientRect().right))"
    )

    assert boxes
    assert [button for pre, button in boxes if button > pre] == []


def test_a_conversation_is_copied_as_markdown_and_printed_without_controls(page: Page, workspace: Workspace):
    session = open_at(workspace)
    talk(session, 1)
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.goto(f"/w/atlas/sessions/{session.pk}/")

    page.get_by_role("link", name="Copy as Markdown").click()
    expect(page.get_by_role("status").filter(has_text="Copied")).to_be_visible()
    assert page.evaluate("navigator.clipboard.readText()").startswith("# cli:main\n\n")

    page.emulate_media(media="print")
    expect(page.get_by_text("answer 0").first).to_be_visible()
    expect(
        page.locator(".topbar, .sidenav, .tabs, .page-head .actions, .button").locator("visible=true")
    ).to_have_count(0)
    page.emulate_media(media="screen")

    page.add_init_script(SHUT)
    page.reload()
    page.get_by_role("link", name="Copy as Markdown").click()
    page.wait_for_url("**/markdown/?epoch=0&copy=1")
    expect(page.locator("body")).to_contain_text("# cli:main")
