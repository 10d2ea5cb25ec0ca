"""Accessibility of the page that a browser shows, checked with axe."""

from __future__ import annotations

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page

# axe measures contrast with the colours of the moment: those in the middle of a transition are neither theme's.
FINISH_TRANSITIONS = """() => {
  for (const moving of document.getAnimations()) {
    if (moving.effect.getComputedTiming().endTime !== Infinity) moving.finish();
  }
}"""


def accessibility_faults(page: Page) -> list[str]:
    """Return each violated rule with the elements that violate it."""
    page.evaluate(FINISH_TRANSITIONS)
    violations = Axe().run(page).response["violations"]
    return [f"{row['id']}: {', '.join(str(node['target']) for node in row['nodes'])}" for row in violations]
