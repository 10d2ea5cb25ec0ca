"""Three ways to use a page: with a mouse, with the keyboard only, and on a phone."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path

from playwright.sync_api import Locator, Page, expect

MOST_TABS = 200
HAS_FOCUS = "element => element === document.activeElement"
PICTURES = os.environ.get("JOURNEY_PICTURES", "")  # folder for screenshots; empty for none
SIZES = {"wide": (1440, 900), "narrow": (390, 844)}


@dataclass
class Hand:
    """What all can do. ``journey`` is used for screenshots. ``steps``: what was clicked, activated or decided."""

    page: Page
    journey: str = ""
    step: int = 0
    steps: int = 0

    def link(self, name: str) -> None:
        self.press(self.page.get_by_role("link", name=name, exact=True).locator("visible=true").first)

    def section(self, name: str, tab: str = "") -> None:
        """Open a section of the workspace, and one of its tabs; their links may include a count.

        On a phone, sections that have no room are in the menu More. Waits for each new page: the one that is left
        may contain what the test looks for next.
        """
        label = re.compile(rf"^\s*{name}\b")
        if not self.page.locator(".sidenav a").filter(has_text=label, visible=True).count():
            self.press(self.page.locator(".sidenav-more > summary"))
        with self.page.expect_navigation():
            self.press(self.page.locator(".sidenav a").filter(has_text=label, visible=True).first)
        if not tab:
            return
        with self.page.expect_navigation():
            self.press(self.page.locator(".section-tabs a").filter(has_text=re.compile(rf"^\s*{tab}\b")).first)

    def button(self, name: str) -> None:
        self.press(self.page.get_by_role("button", name=name, exact=True).locator("visible=true").first)

    def unfold(self, name: str) -> None:
        self.press(self.page.locator("main summary").filter(has_text=re.compile(rf"^\s*{re.escape(name)}")).first)

    def write_into(self, label: str, text: str) -> None:
        self.write(self.page.get_by_label(label, exact=True).first, text)

    def press(self, target: Locator) -> None:
        raise NotImplementedError

    def write(self, target: Locator, text: str) -> None:
        raise NotImplementedError

    def tick(self, target: Locator) -> None:
        raise NotImplementedError

    def choose(self, target: Locator, label: str) -> None:
        raise NotImplementedError

    def decide(self, target: Locator, key: str) -> None:
        """Decide by the button, or by its key."""
        self.press(target)

    def look(self, name: str) -> None:
        """Take four screenshots of the page if JOURNEY_PICTURES is set."""
        if not PICTURES:
            return
        self.step += 1
        for scheme in ("light", "dark"):
            for width, (across, down) in SIZES.items():
                self.page.emulate_media(color_scheme=scheme)
                self.page.set_viewport_size({"width": across, "height": down})
                file = f"{self.journey}-{self.step:02d}-{name}-{scheme}-{width}.png"
                self.page.screenshot(path=Path(PICTURES) / file)
        self.page.emulate_media(color_scheme="light")
        self.page.set_viewport_size({"width": 1440, "height": 900})


class Mouse(Hand):
    def press(self, target: Locator) -> None:
        self.steps += 1
        target.click()

    def write(self, target: Locator, text: str) -> None:
        expect(target).to_be_visible()
        if not target.evaluate(HAS_FOCUS):
            self.press(target)
        target.fill(text)

    def tick(self, target: Locator) -> None:
        self.press(target)

    def choose(self, target: Locator, label: str) -> None:
        self.steps += 1
        target.select_option(label=label)


class Phone(Mouse):
    def __post_init__(self) -> None:
        self.page.set_viewport_size({"width": 390, "height": 844})


class Keyboard(Hand):
    """Reaches every element with Tab and checks that the focus is visible."""

    def press(self, target: Locator) -> None:
        self._reach(target)
        self._type("Enter")

    def decide(self, target: Locator, key: str) -> None:
        expect(target).to_be_visible()
        self._type(key)

    def write(self, target: Locator, text: str) -> None:
        self._reach(target)
        self.page.keyboard.press("Control+a")
        self.page.keyboard.press("Delete")
        self.page.keyboard.insert_text(text)

    def tick(self, target: Locator) -> None:
        self._reach(target)
        self._type("Space")

    def choose(self, target: Locator, label: str) -> None:
        self._reach(target)
        self.steps += 1
        self.page.keyboard.type(label)
        self.page.keyboard.press("Tab")

    def _type(self, key: str) -> None:
        self.steps += 1
        self.page.keyboard.press(key)

    def _reach(self, target: Locator) -> None:
        expect(target).to_be_visible()
        for _ in range(MOST_TABS):
            if target.evaluate(HAS_FOCUS):
                break
            self.page.keyboard.press("Tab")
        else:
            raise AssertionError(f"{MOST_TABS} Tabs don't lead to {target}")
        shown = target.evaluate(
            "element => { const {outlineStyle, boxShadow} = getComputedStyle(element);"
            " return outlineStyle !== 'none' || boxShadow !== 'none'; }"
        )
        assert shown, f"{target} has the focus and doesn't show it"
