"""The graph of a memory in a browser: it draws, shows facts, finds nodes and hides kinds."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from knowledge_app.services.rows.knowledge import add_knowledge
from sessions_app.models import Workspace
from sessions_app.services.audit import By
from tests.hub import NOW, PERSON

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]
DRAWN = """() => {
  const canvas = document.querySelector("#graph canvas");
  const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
  let count = 0;  // pixels that aren't of the ground, which is in the corner
  for (let at = 0; at < data.length; at += 4) {
    count += Math.abs(data[at] - data[0]) + Math.abs(data[at + 1] - data[1]) + Math.abs(data[at + 2] - data[2]) > 60;
  }
  return count;
}"""


def test_the_graph_draws_shows_facts_and_filters(page: Page, workspace: Workspace):
    by = By(PERSON, NOW)
    for text in ("Maya wants badgers", "Ask Maya about badgers", "Badgers eat worms"):
        add_knowledge(workspace, text, category="learned_fact", by=by)
    page.goto("/w/atlas/graph/")
    canvas = page.locator("#graph canvas")
    expect(canvas).to_be_visible()
    expect(page.locator("#graph-table")).to_be_hidden()
    page.wait_for_function(f"(least) => ({DRAWN})() > least", arg=500)
    everything = page.evaluate(DRAWN)

    canvas.focus()
    page.keyboard.press("ArrowRight")
    expect(page.locator("#graph-card")).to_contain_text("adgers")
    expect(page.locator("#graph-facts li").first).to_be_visible()
    page.keyboard.press("Enter")
    expect(page.locator("#graph-panel [data-row]").first).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.locator("#graph-panel")).to_be_hidden()

    page.fill("#graph-search", "maya")
    page.keyboard.press("Enter")
    expect(page.locator("#graph-panel")).to_contain_text("Maya wants badgers")
    page.locator(".graph-close").click()
    page.fill("#graph-search", "")

    page.get_by_label("Terms").uncheck(force=True)
    page.wait_for_function(f"(most) => ({DRAWN})() < most", arg=everything)


def test_the_graph_has_the_colours_of_the_theme_with_reduced_motion(page: Page, workspace: Workspace):
    add_knowledge(workspace, "Maya wants badgers", category="learned_fact", by=By(PERSON, NOW))
    page.emulate_media(color_scheme="light", reduced_motion="reduce")

    page.goto("/w/atlas/graph/")

    ground = """() => [...document.querySelector("#graph canvas").getContext("2d").getImageData(0, 0, 1, 1).data]"""
    page.wait_for_function(f"() => ({ground})().some(Boolean)")
    assert min(page.evaluate(ground)) > 200
