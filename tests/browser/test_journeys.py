"""Common tasks in a real browser, without script errors, foreign requests or policy violations."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from django.utils import timezone
from playwright.sync_api import Page, expect

from knowledge_app.models import HeldChange, MemoryDocument
from knowledge_app.services.documents.outside_edits import import_document
from memoryhub.lib.layouts.records import DocumentRecord
from memoryhub.runs.executing import execute
from memoryhub.sync.importing import import_workspace
from sessions_app.models import Run, Session, Workspace
from sessions_app.services.audit import Actor, By
from tests.browser.accessibility import accessibility_faults
from tests.hub import open_at, talk
from tests.shared import BADINPUT, FIXTURES, badinput_cases, packlib

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


def jsonl(*records: dict) -> str:
    return "".join(json.dumps(record) + "\n" for record in records)


@pytest.fixture
def agent(tmp_path: Path) -> Path:
    """A small nanobot folder."""
    folder = tmp_path / "atlas"
    (folder / "sessions").mkdir(parents=True)
    (folder / "memory").mkdir()
    (folder / "memory" / "MEMORY.md").write_text("# Team\n- Ana leads\n- Deploys go out on Tuesdays\n")
    (folder / "memory" / "HISTORY.md").write_text("[2026-03-01 09:00] Ana joined.\n\n")
    call = {"id": "c1", "type": "function", "function": {"name": "read_file", "arguments": '{"path": "plan.md"}'}}
    (folder / "sessions" / "cli_main.jsonl").write_text(
        jsonl(
            {"_type": "metadata", "key": "cli:main", "last_consolidated": 2},
            {"role": "user", "content": "Who leads?", "timestamp": "2026-03-01T08:00:00"},
            {"role": "assistant", "content": "Ana.", "timestamp": "2026-03-01T08:00:01"},
            {"role": "user", "content": "And the plan?", "timestamp": "2026-03-01T08:05:00"},
            {"role": "assistant", "content": None, "tool_calls": [call], "timestamp": "2026-03-01T08:05:01"},
            {
                "role": "tool",
                "tool_call_id": "c1",
                "name": "read_file",
                "content": "Ship it.",
                "timestamp": "2026-03-01T08:05:02",
            },
        )
    )
    return folder


def test_imported_sessions_can_be_read(page: Page, agent: Path):
    import_workspace(agent, by=By(Actor("command", "test"), timezone.now()))
    page.goto("/w/atlas/")
    page.click("nav.sidenav >> text=Conversations")
    page.click("text=cli:main")
    expect(page.locator(".transcript")).to_contain_text("Consolidated up to here")
    expect(page.locator(".tool")).to_contain_text("Ship it.")
    page.click("nav.tabs >> text=Context")
    expect(page.locator("#context")).to_contain_text("Deploys go out on Tuesdays")


def test_filtering_updates_the_address_without_a_reload(page: Page, agent: Path):
    import_workspace(agent, by=By(Actor("command", "test"), timezone.now()))
    page.goto("/w/atlas/sessions/")
    page.fill("#id_q", "nothing like it")
    expect(page.locator("#session-list")).to_contain_text("No matching conversations")
    page.wait_for_url("**q=nothing*")
    page.fill("#id_q", "main")
    expect(page.locator("#session-list")).to_contain_text("cli:main")


def test_every_page_is_reachable_by_keyboard(page: Page, agent: Path):
    import_workspace(agent, by=By(Actor("command", "test"), timezone.now()))
    page.goto("/w/atlas/")
    page.keyboard.press("g")
    page.keyboard.press("c")
    page.wait_for_url("**/sessions/")
    page.keyboard.press("j")
    expect(page.locator("[data-row] a").first).to_be_focused()
    page.keyboard.press("?")
    expect(page.locator("dialog[open]")).to_be_visible()


PAGES = ["", "sessions/", "statistics/", "memory/", "history/", "knowledge/", "observations/"]
PAGES += ["key-values/", "terms/", "cached-responses/", "imports/", "imports/files/"]


def addresses_of(slug: str, key: str) -> list[str]:
    """Return the addresses of pages of a workspace, and of its conversation with this key."""
    session = Session.objects.get(key=key, workspace__slug=slug)
    base = f"/w/{slug}/sessions/{session.pk}/"
    return [base, f"{base}context/", f"{base}statistics/", *(f"/w/{slug}/{part}" for part in PAGES)]


def assert_fits(page: Page, address: str) -> None:
    for width in (1440, 390):
        page.set_viewport_size({"width": width, "height": 900})
        overflow = page.evaluate("document.documentElement.scrollWidth - window.innerWidth")
        assert overflow <= 0, f"{address} is too wide at {width}"


@pytest.mark.skipif(not FIXTURES.exists(), reason="the fixtures aren't beside the clone")
def test_full_pages_of_real_agents_fit_every_screen(page: Page):
    for name in ("nanobot-current", "grip", "grid"):
        import_workspace(FIXTURES / name, by=By(Actor("command", "test"), timezone.now()))
    others = [f"/w/{workspace.slug}/{part}" for workspace in Workspace.objects.order_by("id")[1:] for part in PAGES]
    for address in ["/", "/import/", *addresses_of("nanobot-current", "telegram:482913377"), *others]:
        page.goto(address)
        assert_fits(page, address)


def test_full_pages_fit_every_screen_and_are_accessible(page: Page, demo: None):
    """Pages with many rows; test_every_page.py has one row of each kind."""
    page.emulate_media(color_scheme="dark")
    for address in ["/", "/import/", *addresses_of("atlas", "telegram:55120344")]:
        page.set_viewport_size({"width": 1280, "height": 720})
        page.goto(address)
        assert (address, accessibility_faults(page)) == (address, [])
        assert_fits(page, address)


@pytest.mark.skipif(not BADINPUT.exists(), reason="the bad-input pack isn't beside the clone")
@pytest.mark.parametrize("case", badinput_cases("memory_md"), ids=lambda case: case["id"])
def test_hostile_memory_runs_nothing(page: Page, tmp_path: Path, case: dict):
    packlib().layout(case, tmp_path / "ws", 1, BADINPUT)
    import_workspace(tmp_path / "ws", by=By(Actor("command", "test"), timezone.now()))
    workspace = Workspace.objects.get()
    for address in (f"/w/{workspace.slug}/memory/", f"/w/{workspace.slug}/memory/{workspace.documents.get().pk}/"):
        page.goto(address)
        page.wait_for_timeout(100)
        assert page.evaluate("window.__xss") is None


def test_a_conversation_is_compressed_and_restored(page: Page):
    session = open_at(Workspace.objects.create(slug="nova", name="Nova"))
    talk(session, 10)
    page.goto(f"/w/nova/sessions/{session.pk}/")
    page.click("text=Compress…")
    expect(page.locator("#plan")).to_contain_text("#0 to #27")
    page.fill("#id_keep", "30")
    expect(page.locator("#plan")).to_contain_text("#0 to #7")
    page.click("button:has-text('Compress')")
    expect(page.locator("#run")).to_contain_text("Queued")

    execute(Run.objects.get().pk, now=timezone.now)

    expect(page.locator("#run")).to_contain_text("Show summarised messages")
    page.click("text=Undo…")
    page.click("dialog[open] button:text-is('Undo')")
    expect(page.locator("#run")).to_contain_text("back in context")


def test_an_open_session_shows_new_entries(page: Page):
    session = open_at(Workspace.objects.create(slug="nova", name="Nova"))
    talk(session, 2)
    page.goto(f"/w/nova/sessions/{session.pk}/")

    talk(session, 1, first=2)

    expect(page.locator("#live-offers")).to_contain_text("new turns: show")
    expect(page.locator("text=request 2").first).to_be_attached()


FACTS = [f"fact {word} of the team" for word in ("one", "two", "three", "four", "five", "six", "seven", "eight")]


def take_memory(workspace: Workspace, *facts: str) -> None:
    content = "# Team\n\n" + "\n".join(f"- {fact}" for fact in facts) + "\n"
    record = DocumentRecord("MEMORY.md", content)
    import_document(workspace=workspace, record=record, path="MEMORY.md", now=timezone.now(), dry_run=False)


def test_memory_is_edited_merged_and_restored(page: Page):
    workspace = Workspace.objects.create(slug="nova", name="Nova")
    take_memory(workspace, *FACTS)
    document = MemoryDocument.objects.get()
    edit = f"/w/nova/memory/{document.pk}/edit/"
    page.goto(edit)
    text = page.input_value("#id_text")
    page.fill("#id_text", text + "- **tea** is at four\n")
    expect(page.locator("#preview strong")).to_have_text("tea")

    page.goto("/w/nova/")  # leave without saving and return: the text is restored
    page.goto(edit)
    expect(page.locator("#id_text")).to_have_value(text + "- **tea** is at four\n")
    page.keyboard.press("Tab")
    page.click("button:has-text('Save')")
    expect(page.locator("#document")).to_contain_text("tea is at four")

    page.goto(edit)
    expect(page.locator("#id_text")).to_have_value(text + "- **tea** is at four\n")
    page.fill("#id_text", page.input_value("#id_text").replace(FACTS[0], "fact one by me"))
    take_memory(workspace, "fact one by the agent", *FACTS[1:])
    page.click("button:has-text('Save')")
    expect(page.locator("main")).to_contain_text("changed the same lines meanwhile")
    expect(page.locator("#id_text")).to_have_value(re.compile("fact one by me"))
    page.click("button:has-text('Save')")
    expect(page.locator("#document")).to_contain_text("fact one by me")

    page.goto(f"/w/nova/memory/{document.pk}/?revision=1")
    page.focus("button:has-text('Restore this revision')")
    page.keyboard.press("Enter")
    expect(page.locator("#messages")).to_contain_text("Revision 1 restored as revision")
    expect(page.locator("#document")).to_contain_text(FACTS[0])


def test_a_held_change_is_reviewed_by_part_with_the_keyboard(page: Page):
    workspace = Workspace.objects.create(slug="nova", name="Nova")
    take_memory(workspace, *FACTS)
    take_memory(workspace, *FACTS[2:5], FACTS[7])
    page.goto(f"/w/nova/review/{HeldChange.objects.get().pk}/")
    expect(page.locator("h1")).to_have_text("Change to MEMORY.md")

    page.keyboard.press("a")
    page.keyboard.press("r")
    expect(page.locator(".review-count")).to_have_text("1 accepted, 1 rejected, 0 undecided")
    page.keyboard.press("Enter")

    expect(page.locator("#document")).to_contain_text(FACTS[5])
    expect(page.locator("#document .prose").first).not_to_contain_text(FACTS[0])
