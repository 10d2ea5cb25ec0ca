"""Pages on a phone: nothing overlaps, and what is needed first comes first."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from knowledge_app.services.documents.revisions import open_document, revise_document
from sessions_app.models import ImportReport, Run, Session, Workspace
from sessions_app.services.audit import By
from tests.hub import NOW, PERSON, add, open_at
from tests.inbox.test_inbox import ORDER, TEXT, propose

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]
PHONE = {"width": 390, "height": 844}
OVERLAPS = """() => [...document.querySelectorAll(".table.cards tr")].flatMap((row) => {
  const boxes = [...row.children].flatMap((cell) => [...cell.querySelectorAll("b, strong, .muted, .badge, time")])
    .map((part) => [part.textContent, part.getBoundingClientRect()]);
  return boxes.flatMap(([text, a], i) => boxes.slice(i + 1)
    .filter(([, b]) => a.right - b.left > 1 && b.right - a.left > 1 && a.bottom - b.top > 4 && b.bottom - a.top > 4)
    .map(([other]) => `${text} over ${other}`));
})"""


@pytest.fixture
def phone(page: Page) -> Page:
    page.set_viewport_size(PHONE)
    return page


def test_figures_of_workspaces_do_not_overlap(phone: Page, workspace: Workspace):
    add(open_at(workspace, "telegram:1"), [{"role": "user", "content": "The harbour opens at six. " * 2_000}])

    phone.goto("/")

    expect(phone.locator(".workspace-table .figure").first).to_be_visible()
    assert phone.evaluate(OVERLAPS) == []
    phone.goto("/w/atlas/sessions/")
    assert phone.locator(".table.cards .badge").first.evaluate("badge => badge.getClientRects().length") == 1
    assert phone.locator(".table.cards .badge").first.bounding_box()["height"] < 30
    assert phone.evaluate(OVERLAPS) == []


def test_figures_of_workspaces_are_comparable_and_fit_a_small_screen(page: Page, demo: None):
    for width in (1024, 1440):
        page.set_viewport_size({"width": width, "height": 800})
        page.goto("/")
        table = page.locator(".table-wrap:has(.workspace-table)")
        expect(table).to_be_visible()
        assert table.evaluate("box => box.scrollWidth - box.clientWidth") <= 0
        widths = page.locator(".workspace-table .gauge").evaluate_all(
            "gauges => [...new Set(gauges.map((gauge) => Math.round(gauge.getBoundingClientRect().width)))]"
        )
        assert len(widths) == 1


def test_names_and_what_needs_attention_are_whole_beside_the_navigation(page: Page, workspace: Workspace):
    session = open_at(workspace, "telegram:harbour-and-its-opening-hours")
    Run.objects.create(workspace=workspace, session=session, kind="compression", status="done", created_at=NOW)
    propose(workspace, TEXT.replace("- tea at four\n", "- Bo cooks\n"))
    page.set_viewport_size({"width": 1024, "height": 768})

    page.goto("/w/atlas/runs/")
    assert page.locator("tbody th a").bounding_box()["height"] < 50
    assert page.locator(".table-wrap").evaluate("box => box.scrollWidth - box.clientWidth") <= 0
    page.goto("/w/atlas/")
    assert page.locator(".needs .row-title a").first.evaluate("link => link.scrollWidth - link.clientWidth") <= 0


def test_a_long_error_takes_two_lines_on_the_home_page(phone: Page, workspace: Workspace):
    error = "This folder contains no memory in a known format. Supported are " + "sessions/*.jsonl, " * 40
    ImportReport.objects.create(
        workspace=workspace, path="/a", name="a", status="failed", error=error, created_at=NOW, finished_at=NOW
    )

    for width in (PHONE["width"], 1440):
        phone.set_viewport_size({"width": width, "height": 844})
        phone.goto("/")
        title = phone.locator(".needs .row-title a", has_text="The last import failed")
        assert title.bounding_box()["height"] < 60
        assert phone.locator(".needs .badge").first.bounding_box()["height"] < 30


def test_search_results_begin_on_the_first_screen(phone: Page, workspace: Workspace):
    add(open_at(workspace, "telegram:1"), [{"role": "user", "content": "The harbour opens at six"}])

    phone.goto("/w/atlas/search/?q=harbour")

    expect(phone.locator("#id_match")).to_be_hidden()
    assert phone.locator(".search-rows > li").first.bounding_box()["y"] < PHONE["height"] * 0.75
    phone.locator(".search-options summary", has_text="Options").click()
    phone.locator("#id_sort").select_option("newest")
    expect(phone.locator(".search-reading")).to_contain_text("newest first")


@pytest.mark.parametrize(
    ("path", "first", "least"),
    [
        ("/w/atlas/sessions/", ".table.cards tbody tr", 370),
        ("/w/atlas/memory/", ".memory-row", 640),
        ("/w/atlas/sessions/{}/", ".turn", 440),
    ],
)
def test_what_one_came_for_is_on_the_first_screen(phone: Page, demo: None, path: str, first: str, least: int):
    session = Session.objects.get(key="cron:morning-digest")

    phone.goto(path.format(session.pk))

    assert phone.locator(first).first.bounding_box()["y"] < least
    entry = phone.locator(".sidenav li:has(.badge)").first
    if entry.count():
        icon, badge = entry.locator(".icon"), entry.locator(".badge")
        assert badge.bounding_box()["x"] >= icon.bounding_box()["x"] + icon.bounding_box()["width"]


def test_the_table_of_the_graph_is_closed_from_the_start(phone: Page, demo: None):
    answer = phone.request.get("/w/atlas/graph/")

    assert '<details class="fold" id="graph-list">' in answer.text()


def test_an_open_item_of_the_inbox_fills_the_screen(phone: Page, demo: None):
    phone.goto("/w/atlas/inbox/")
    phone.locator(".inbox-rows a").first.click()

    expect(phone.locator("#item-title")).to_be_visible()
    assert phone.locator("#item-title").bounding_box()["y"] < 200
    expect(phone.locator(".section-tabs")).to_be_hidden()
    phone.locator(".inbox-back a").click()
    expect(phone.locator(".section-tabs")).to_be_visible()


def test_back_leads_from_an_item_that_was_fetched_ahead_to_the_list(phone: Page, workspace: Workspace):
    for name in ("Bo", "Cy"):
        propose(workspace, TEXT.replace("- tea at four\n", f"- {name} cooks\n"))
    phone.goto("/w/atlas/inbox/")
    phone.locator(".inbox-rows [data-ready] > a").first.click()
    expect(phone.locator("#item-title")).to_be_visible()

    phone.go_back()

    expect(phone.locator(".section-tabs")).to_be_visible()
    expect(phone.locator("#item-title")).to_be_hidden()


@pytest.mark.parametrize("width", [320, 360])
def test_the_bar_of_a_review_has_one_row_of_buttons_and_covers_nothing(page: Page, workspace: Workspace, width: int):
    change = propose(workspace, TEXT.replace("- tea at four\n", "").replace("- Bo cooks", f"- {ORDER}"))
    for path in (f"/w/atlas/review/{change.pk}/", f"/inbox/?item=change-{change.pk}"):
        page.set_viewport_size({"width": width, "height": 640})
        page.goto(path)
        bar = page.locator(".review-bar")
        expect(bar).to_be_visible()
        assert len({button.bounding_box()["y"] for button in bar.locator(".button").all()}) <= 1
        assert bar.bounding_box()["height"] < 95
        assert page.evaluate("document.documentElement.scrollWidth - window.innerWidth") <= 0
        page.evaluate("window.scrollTo(0, document.body.scrollHeight)")
        last = page.locator(".part").last.bounding_box()
        assert last["y"] + last["height"] <= bar.bounding_box()["y"]


def test_figures_of_workspaces_are_not_cut_off(phone: Page, workspace: Workspace):
    add(open_at(workspace, "telegram:1"), [{"role": "user", "content": "The harbour opens at six. " * 200}])

    phone.goto("/")

    cut = "cells => cells.filter(cell => cell.scrollWidth > cell.clientWidth + 1).map(cell => cell.textContent)"
    assert phone.locator(".workspace-table td").evaluate_all(cut) == []


def test_many_documents_leave_room_for_the_list(phone: Page, workspace: Workspace):
    for number in range(9):
        document = open_document(workspace, f"memory/part-{number}.md")
        revise_document(document, f"- berth {number} is free\n", base=None, reason="r", by=By(PERSON, NOW))

    phone.goto("/w/atlas/memory/")

    assert phone.locator("main form").first.bounding_box()["y"] < PHONE["height"] * 0.75
    assert not phone.evaluate("document.documentElement.scrollWidth > window.innerWidth")


def test_a_long_workspace_name_does_not_widen_the_page(phone: Page, workspace: Workspace):
    workspace.name = "Personal assistant of the observatory at Cerro Paranal"
    workspace.save()
    report = ImportReport.objects.create(
        workspace=workspace, path="/a", name="a", status="done", created_at=NOW, finished_at=NOW
    )

    phone.goto(f"/imports/{report.pk}/")

    expect(phone.get_by_role("link", name=f"Open {workspace.name}")).to_be_visible()
    assert not phone.evaluate("document.documentElement.scrollWidth > window.innerWidth")


def test_what_was_decided_covers_no_button_of_the_next_item(phone: Page, workspace: Workspace):
    for number in range(3):
        propose(workspace, TEXT.replace("- Bo cooks", f"- {number} {ORDER}"), reason=f"change {number}")
    phone.goto("/w/atlas/inbox/")
    phone.locator(".inbox-rows a").first.click()

    for number in range(2):
        expect(phone.locator("#inbox-detail q").first).to_have_text(f"change {number}")
        phone.get_by_role("button", name="Reject", exact=True).click()
    expect(phone.locator("#inbox-detail q").first).to_have_text("change 2")

    expect(phone.locator("#messages .notice")).to_have_count(1)
    expect(phone.locator("#messages .notice")).to_be_in_viewport(ratio=1)
    covered = phone.locator("#inbox-detail .review-bar :is(button, a)").evaluate_all(
        "parts => parts.filter((part) => { const { x, y, width, height } = part.getBoundingClientRect();"
        " return !part.contains(document.elementFromPoint(x + width / 2, y + height / 2)); }).length"
    )
    assert covered == 0
    phone.evaluate("scrollTo(0, document.body.scrollHeight)")
    expect(phone.locator("#messages .notice")).to_be_in_viewport(ratio=1)


def test_what_needs_attention_in_a_workspace_is_whole(phone: Page, workspace: Workspace):
    propose(workspace, TEXT.replace("- tea at four\n", "- Bo cooks\n"))
    error = "The folder contains no memory in a known format."
    ImportReport.objects.create(
        workspace=workspace, path="/a", name="a", status="failed", error=error, created_at=NOW, finished_at=NOW
    )

    phone.goto("/w/atlas/")

    titles = phone.locator(".needs .row-title a")
    expect(titles).to_have_count(2)
    assert titles.evaluate_all("links => links.filter(link => link.scrollWidth > link.clientWidth).length") == 0
    assert max(title.bounding_box()["height"] for title in titles.all()) < 60
