"""Bulk edits of over a thousand rows: change, merge, restore."""

from __future__ import annotations

import random

import pytest
from django.utils import timezone
from playwright.sync_api import Page, expect

from knowledge_app.models import KnowledgeEntry
from memoryhub.lib.layouts.grip import content_id
from memoryhub.runs.executing import execute
from sessions_app.models import Run, Workspace

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]
ROWS, PAIRS = 1_020, 260  # more than are changed at once, in several batches


@pytest.fixture
def many(transactional_db: None) -> Workspace:
    """1,020 entries in one category, 260 of them duplicates."""
    workspace = Workspace.objects.create(slug="atlas", name="Atlas")
    dice = random.Random(7)
    syllables = [a + b for a in "bdfgklmnprstvz" for b in ("a", "e", "i", "o", "u", "an", "or", "il")]
    said = [
        " ".join("".join(dice.choices(syllables, k=3)) for _ in range(6)).capitalize() for _ in range(ROWS - PAIRS)
    ]
    said += [f"{text.lower()}!" for text in said[:PAIRS]]
    KnowledgeEntry.objects.bulk_create(
        (
            KnowledgeEntry(
                workspace=workspace,
                content_id=(identity := content_id("learned_fact", text)),
                identity=identity,
                category="learned_fact",
                content=text,
                created_at=timezone.now(),
            )
            for text in said
        ),
        batch_size=500,
    )
    return workspace


def work(page: Page) -> None:
    """Run the worker's jobs while the page is open."""
    page.wait_for_url("**/runs/*/")
    execute(Run.objects.latest("pk").pk, now=timezone.now)
    expect(page.locator(".status").first).to_have_text("Done")


def move(page: Page, category: str) -> None:
    page.click(".choosing summary:has-text('Move to')")
    page.click(f".choosing button[value='move:{category}']")


def counts() -> dict[str, int]:
    living = KnowledgeEntry.objects.filter(withdrawn_at=None)
    return {
        "learned": living.filter(category="learned_fact").count(),
        "preferences": living.filter(category="user_preference").count(),
    }


def undo(page: Page) -> None:
    undone = page.url
    page.click("button[data-dialog=undo]")
    page.click("dialog[open] button[type=submit]")
    page.wait_for_url(lambda url: url != undone)


def test_over_a_thousand_entries_are_recategorised_some_merged_and_both_undone(page: Page, many: Workspace):
    page.goto("/w/atlas/knowledge/?category=learned_fact")
    expect(page.locator(".choosing")).to_be_hidden()
    page.get_by_label("All 1,020 matches").check()
    expect(page.locator(".choosing output")).to_have_text("All 1,020 matches are selected")
    move(page, "user_preference")
    work(page)
    assert counts() == {"learned": 0, "preferences": ROWS}
    expect(page.locator("#run")).to_contain_text("1,020 of 1,020")
    moved = page.url

    page.goto("/w/atlas/knowledge/merge/")
    expect(page.locator(".content")).to_contain_text("260 groups, 260 entries to be withdrawn")
    page.click("button:has-text('Merge all 260')")
    work(page)
    assert counts() == {"learned": 0, "preferences": ROWS - PAIRS}

    undo(page)
    work(page)
    assert counts() == {"learned": 0, "preferences": ROWS}
    page.goto(moved)
    undo(page)
    work(page)
    assert counts() == {"learned": ROWS, "preferences": 0}
    page.goto("/w/atlas/runs/?state=edits")
    expect(page.locator("tbody tr")).to_have_count(4)


def test_entries_are_selected_by_keyboard_and_restored_with_one_click(page: Page, many: Workspace):
    page.goto("/w/atlas/knowledge/?category=learned_fact")
    page.keyboard.press("j")
    page.keyboard.press("x")
    page.keyboard.press("Shift+J")
    expect(page.locator(".choosing output")).to_have_text("2 of 1,020 selected")
    move(page, "error_pattern")

    expect(page.locator("#messages")).to_contain_text("2 knowledge entries changed.")
    assert KnowledgeEntry.objects.filter(category="error_pattern").count() == 2
    page.click("#messages button:has-text('Undo')")
    expect(page.locator("#messages")).to_contain_text("Undone.")
    assert not KnowledgeEntry.objects.filter(category="error_pattern").exists()
    assert "category=learned_fact" in page.url


def test_a_selection_is_kept_across_pages_and_cleared_with_escape(page: Page, many: Workspace):
    page.goto("/w/atlas/knowledge/?category=learned_fact")
    boxes, said = page.locator("input[name=row]"), page.locator(".choosing output")
    boxes.nth(1).click()
    boxes.nth(4).click(modifiers=["Shift"])
    expect(said).to_have_text("4 of 1,020 selected")

    page.click("a[rel=next]")
    expect(page.locator("main a[rel=prev]").first).to_be_visible()
    expect(said).to_have_text("4 of 1,020 selected")
    page.keyboard.press("a")
    expect(said).to_have_text("54 of 1,020 selected")
    page.click(".choosing button[value=verify]")
    expect(page.locator("#messages")).to_contain_text("54 knowledge entries marked as verified.")
    expect(page.locator(".choosing")).to_be_hidden()

    boxes.first.click()
    page.keyboard.press("Escape")
    expect(page.locator(".choosing")).to_be_hidden()
