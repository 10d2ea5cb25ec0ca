"""Charts in a browser: tooltip and zoom by keyboard and mouse, and the way to the messages of a day."""

from __future__ import annotations

from datetime import timedelta
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import Page, expect

from sessions_app.models import Session, Workspace
from tests.browser.accessibility import accessibility_faults
from tests.hub import NOW, add, open_at

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


@pytest.fixture
def days(page: Page) -> Session:
    """A session with a message on each of ten days."""
    session = open_at(Workspace.objects.create(slug="atlas", name="Atlas"))
    for number in range(10):
        add(session, [{"role": "user", "content": f"day {number} " * 9}], now=NOW + timedelta(days=number))
    return session


def test_a_chart_is_read_zoomed_and_opened(page: Page, days: Session):
    page.goto("/w/atlas/statistics/")
    plot = page.get_by_role("slider", name="Tokens by day")
    tip = plot.locator(".chart-tip")

    plot.focus()
    page.keyboard.press("Home")
    page.keyboard.press("ArrowRight")
    expect(tip).to_contain_text("Thu 2 Apr 2026")
    expect(tip).to_contain_text("In the context:")
    expect(plot).to_have_attribute("aria-valuetext", tip.inner_text().replace("\n", ", "))
    assert accessibility_faults(page) == []

    page.keyboard.press("Shift+ArrowRight")
    page.keyboard.press("Shift+ArrowRight")
    page.keyboard.press("Enter")
    page.wait_for_url("**/statistics/?from=2026-04-02&to=2026-04-04")
    expect(page.locator("#tokens tbody tr")).to_have_count(3)

    page.goto("/w/atlas/statistics/")
    box = page.locator("#tokens .chart-plot > svg").bounding_box()
    assert box is not None
    across, middle = box["width"] / 10, box["y"] + box["height"] / 2
    page.mouse.move(box["x"] + across * 0.5, middle)
    expect(tip).to_contain_text("Wed 1 Apr 2026")
    page.mouse.down()
    page.mouse.move(box["x"] + across * 4.5, middle, steps=4)
    page.mouse.up()
    page.wait_for_url("**/statistics/?from=2026-04-01&to=2026-04-05")

    page.locator("#tokens .chart-plot").click(position={"x": 60, "y": 60})
    page.wait_for_url("**/search/**")
    [query] = parse_qs(urlsplit(page.url).query)["q"]
    assert query == "kind:entry after:2026-04-01 before:2026-04-02"
    expect(page.get_by_text("day 0").first).to_be_visible()


def test_sliders_change_the_context_at_once_and_open_a_moment(page: Page, days: Session):
    page.goto(f"/w/atlas/sessions/{days.pk}/context/")
    page.locator("[data-slider=max-messages]").fill("4")
    expect(page.locator("#context output")).to_contain_text("4 of 10 messages; 6 left out")
    assert "max_messages=4" in page.url

    page.goto("/w/atlas/timeline/")
    latest = page.locator("#moment").input_value()
    page.locator("[data-slider=moment]").press("Home")
    expect(page.locator("#moment")).not_to_have_value(latest)
    page.locator("#moment").fill(latest)
    assert page.locator("[data-slider=moment]").evaluate("slider => slider.value === slider.max")
    page.locator("[data-slider=moment]").press("ArrowLeft")
    assert page.locator("[data-slider=moment]").evaluate("slider => slider.max - slider.value") > 3600
    page.get_by_role("button", name="View snapshot").first.click()
    page.wait_for_url("**/past/?at=20*")
