"""An operator's main tasks from end to end, by mouse and by keyboard only."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from django.utils import timezone
from playwright.sync_api import Browser, BrowserContext, Page, expect
from pytest_httpserver import HTTPServer

from knowledge_app.models import HeldChange, KnowledgeEntry, MemoryDocument
from knowledge_app.services.documents.editing import save_text
from knowledge_app.services.rows.knowledge import add_knowledge
from memoryhub.accounts.setup import issue_setup_token
from memoryhub.client import MemoryHub
from memoryhub.runs.executing import execute
from memoryhub.sync.importing import import_workspace
from memoryhub.sync.syncing import sync_workspace
from sessions_app.models import Entry, Run, Workspace
from sessions_app.services.audit import Actor, By
from sessions_app.services.syncing import switch_sync
from tests.browser.conftest import PASSWORD
from tests.browser.hands import Hand, Keyboard, Mouse
from tests.browser.real_hub import RealHub
from tests.hub import PERSON, run_jobs
from tests.other_hub import manage

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]
COMMAND = Actor("command", "test")
SAID = [
    "Ana Lind leads the harbour project now.",
    "Noted: Ana Lind leads it.",
    "When do deploys go out?",
    "Tuesdays.",
]
FACTS = [f"Berth {number} is kept for the pilot boat" for number in range(1, 13)]


def memory(*facts: str) -> str:
    return "# Harbour\n\n" + "".join(f"- {fact}\n" for fact in facts)


def jsonl(*records: dict) -> str:
    return "".join(json.dumps(record) + "\n" for record in records)


@pytest.fixture
def agent(tmp_path: Path) -> Path:
    """A small nanobot folder with one conversation."""
    folder = tmp_path / "atlas"
    (folder / "sessions").mkdir(parents=True)
    (folder / "memory").mkdir()
    (folder / "memory" / "MEMORY.md").write_text(memory(*FACTS))
    (folder / "memory" / "HISTORY.md").write_text("[2026-03-01 09:00] Ana Lind took over the harbour project.\n\n")
    (folder / "sessions" / "cli_main.jsonl").write_text(
        jsonl(
            {"_type": "metadata", "key": "cli:main", "last_consolidated": 0},
            {
                "role": "user",
                "content": "Ana Lind leads the harbour project now.",
                "timestamp": "2026-03-01T08:00:00",
            },
            {"role": "assistant", "content": "Noted: Ana Lind leads it.", "timestamp": "2026-03-01T08:00:01"},
            {"role": "user", "content": "And when do deploys go out?", "timestamp": "2026-03-01T08:05:00"},
            {"role": "assistant", "content": "On Tuesdays.", "timestamp": "2026-03-01T08:05:01"},
        )
    )
    return folder


@pytest.fixture(params=[Mouse, Keyboard], ids=["mouse", "keyboard"])
def hand(request: pytest.FixtureRequest) -> Callable[[Page], Hand]:
    name = request.node.originalname.removeprefix("test_")
    return lambda page: request.param(page, name)


def taken(folder: Path) -> Workspace:
    import_workspace(folder, by=By(COMMAND, timezone.now()))
    workspace = Workspace.objects.get()
    workspace.memory_window = 2
    workspace.save()
    return workspace


@pytest.fixture
def model(httpserver: HTTPServer, settings) -> Callable[[str], None]:
    """Set the MEMORY.md that the model will propose."""
    settings.MEMORYHUB_LLM_BASE_URL = httpserver.url_for("/v1")
    settings.MEMORYHUB_LLM_MODEL = "test-model"

    def replies(text: str) -> None:
        arguments = {"history_entry": "[2026-03-01 08:00] Ana Lind took over.", "memory_update": text}
        call = {
            "id": "c",
            "type": "function",
            "function": {"name": "save_memory", "arguments": json.dumps(arguments)},
        }
        message = {"role": "assistant", "content": None, "tool_calls": [call]}
        body = {"choices": [{"finish_reason": "tool_calls", "message": message}], "usage": {}}
        httpserver.expect_request("/v1/chat/completions").respond_with_json(body)

    return replies


def consolidated(does: Hand, workspace: Workspace) -> Run:
    """Request a consolidation on the session's page and execute it."""
    does.page.goto(f"/w/{workspace.slug}/sessions/{workspace.sessions.get().pk}/")
    does.unfold("More")
    does.button("Consolidate…")
    does.button("Consolidate")
    does.page.wait_for_url("**/runs/*/")
    return execute(Run.objects.latest("pk").pk, now=timezone.now)


def head() -> str:
    return MemoryDocument.objects.select_related("head").get(name="MEMORY.md").head.content


def test_first_start_and_import(visit: BrowserContext, agent: Path, hand):
    does = hand(visit.new_page())
    does.page.goto(f"/setup/{issue_setup_token(timezone.now())}/")
    does.look("setup")
    does.write(does.page.locator("[name=username]"), "olga")
    does.write(does.page.locator("[name=password1]"), PASSWORD)
    does.write(does.page.locator("[name=password2]"), PASSWORD)
    does.press(does.page.locator("main button[type=submit]"))
    does.look("empty-home")
    does.link("Import a folder")
    does.write(does.page.locator("[name=path]"), str(agent))
    does.look("import")
    does.press(does.page.locator("main form button.primary"))
    expect(does.page.locator("#import-report")).to_contain_text("Queued")
    run_jobs()
    expect(does.page.locator("#import-report")).to_contain_text("Imported")
    does.look("report")
    does.link("Open atlas")
    expect(does.page.locator(".page-head h1")).to_have_text("atlas")
    does.look("overview")


def test_a_fact_shows_its_origin_and_is_corrected(page: Page, agent: Path, model, hand):
    workspace = taken(agent)
    does = hand(page)
    model(memory(*FACTS, "Ana Lind leads the harbour project"))
    consolidated(does, workspace)

    page.goto("/w/atlas/")
    does.write(page.locator("[data-search]").first, "who leads harbour project")
    page.keyboard.press("Enter")
    page.wait_for_url("**/search/**")
    does.look("found")
    does.section("Memory")
    does.press(page.locator("main a", has_text="MEMORY.md").first)
    does.link("Origins")
    does.look("origins")
    does.press(page.locator(".blame-run", has_text="Ana Lind leads").get_by_role("link", name=re.compile("^#0 ")))
    expect(page.locator(":target")).to_contain_text("Ana Lind leads the harbour project now.")
    does.look("message")

    does.section("Memory")
    does.press(page.locator("main a", has_text="MEMORY.md").first)
    does.link("Edit")
    does.write(page.locator("#id_text"), memory(*FACTS, "Ana Lind and Bo Ek lead the harbour project"))
    does.write(page.locator("#id_reason"), "Bo joined")
    does.look("correction")
    does.button("Save")
    expect(page.locator("#document")).to_contain_text("Bo Ek")
    does.look("corrected")


def test_a_conflict_with_the_agent_is_resolved(page: Page, agent: Path, settings, hand):
    settings.MEMORYHUB_QUIET_SECONDS = 0.01
    workspace = taken(agent)
    switch_sync(workspace, follow=True, write_back=True, by=By(PERSON, timezone.now()))
    document = MemoryDocument.objects.select_related("head").get(name="MEMORY.md")
    mine, theirs = memory("Berth 1 is free", *FACTS[1:]), memory("Berth 1 is closed", *FACTS[1:])
    save_text(document, mine, base_number=document.head.number, by=By(PERSON, timezone.now()), reason="r")
    (agent / "memory" / "MEMORY.md").write_text(theirs)
    sync_workspace(Workspace.objects.get(), by=By(COMMAND, timezone.now()))
    does = hand(page)

    page.goto("/w/atlas/")
    does.section("Inbox")
    does.look("inbox")
    does.press(page.locator("main [data-row] a").first)
    does.press(page.locator("main a[data-key='e']"))
    does.look("conflict")
    does.write(page.locator("textarea[name=text]"), memory("Berth 1 is free from May", *FACTS[1:]))
    does.button("Accept edited text")
    expect(page.locator("#document")).to_contain_text("free from May")
    sync_workspace(Workspace.objects.get(), by=By(COMMAND, timezone.now()))
    assert (agent / "memory" / "MEMORY.md").read_text() == memory("Berth 1 is free from May", *FACTS[1:])


def test_a_held_consolidation_is_reviewed_by_hunk(page: Page, agent: Path, model, hand):
    workspace = taken(agent)
    does = hand(page)
    model(memory(*FACTS[2:7], *FACTS[9:], "Ana Lind leads the harbour project"))
    run = consolidated(does, workspace)
    assert HeldChange.objects.get().run_id == run.pk

    does.section("Inbox")
    does.press(page.locator("main [data-row] a").first)
    expect(page.locator("#inbox[data-open] .review-count")).to_have_text("0 accepted, 0 rejected, 2 undecided")
    does.look("hunks")
    page.keyboard.press("r")
    page.keyboard.press("a")
    expect(page.locator("#messages")).to_contain_text("1 of 2 changes accepted into MEMORY.md.")
    assert FACTS[0] in head()
    assert FACTS[7] not in head()


def test_a_run_is_undone(page: Page, agent: Path, model, hand):
    workspace = taken(agent)
    does = hand(page)
    model(memory(*FACTS, "Ana Lind leads the harbour project"))
    consolidated(does, workspace)
    assert "Ana Lind" in head()

    does.section("Timeline", "Runs")
    does.look("runs")
    does.press(page.locator("main [data-row] a").first)
    does.button("Undo…")
    does.look("undo")
    does.button("Undo")
    expect(page.locator("#run")).to_contain_text("Undone")
    does.look("undone")
    assert head() == memory(*FACTS)


def test_duplicates_are_merged_and_restored(page: Page, hand):
    workspace = Workspace.objects.create(slug="atlas", name="Atlas")
    for text in ("The pilot boat leaves at six", "The pilot boat leaves at six.", "Tea is at four"):
        add_knowledge(workspace, text, category="learned_fact", by=By(PERSON, timezone.now()))
    does = hand(page)
    page.goto("/w/atlas/knowledge/")
    does.link("Merge duplicates")
    does.look("groups")
    does.button("Merge selected")
    expect(page.locator("#messages")).to_contain_text("merged")
    assert KnowledgeEntry.objects.filter(withdrawn_at=None).count() == 2
    does.look("merged")
    does.press(page.locator("#messages").get_by_role("button", name="Undo"))
    expect(page.locator("#messages")).to_contain_text("Undone")
    assert KnowledgeEntry.objects.filter(withdrawn_at=None).count() == 3


def test_a_person_is_forgotten(page: Page, agent: Path, hand):
    taken(agent)
    does = hand(page)
    page.goto("/w/atlas/")
    does.section("Settings", "Forget")
    does.choose(page.locator("#id_kind"), "A person: every line that mentions them is removed")
    does.write(page.locator("#id_words"), "Ana Lind")
    does.button("Show preview")
    expect(page.locator("#preview")).to_be_visible()
    does.look("preview")
    does.button("Forget permanently")
    expect(page.locator("#job")).to_contain_text("Queued")
    run_jobs()
    expect(page.locator("#job")).to_contain_text("Erased in")
    expect(page.locator("#erased-files")).to_contain_text("still has")
    does.look("erased")
    does.link("Receipts")
    expect(page.locator("#receipts")).to_contain_text("by olga")
    assert not Entry.objects.filter(content__contains="Ana Lind").exists()


def test_a_person_is_found_with_enter(page: Page, agent: Path, hand):
    taken(agent)
    does = hand(page)
    page.goto("/person-data/")
    names = page.get_by_label("Names")
    names.press("x")
    names.press("Shift+Enter")
    names.press_sequentially("Ana Lind")
    expect(names).to_have_value("x\nAna Lind")
    names.fill("Ana Lind")
    names.press("Enter")
    expect(page.locator("#found")).to_be_visible()
    with page.expect_navigation():
        page.get_by_label("Reason").press("Enter")
    expect(page.locator("#found")).to_be_visible()
    with page.expect_navigation():
        does.press(page.locator("#erase .button.danger"))
    expect(page.locator("h1")).to_contain_text("Data about a person")  # the box isn't ticked
    does.tick(page.get_by_label("I understand that this can't be undone"))
    names.fill("Ana Lind\nCarla")
    does.press(page.locator("#erase .button.danger"))
    expect(page.get_by_role("alert")).to_contain_text("Nothing has been erased")
    does.tick(page.get_by_label("I understand that this can't be undone"))
    does.press(page.locator("#erase .button.danger"))
    expect(page.locator("h1")).to_contain_text("Erasure")


def test_entries_are_recategorised_in_bulk_and_restored(page: Page, hand):
    workspace = Workspace.objects.create(slug="atlas", name="Atlas")
    for number in range(60):
        add_knowledge(workspace, f"Berth {number}", category="learned_fact", by=By(PERSON, timezone.now()))
    does = hand(page)
    page.goto("/w/atlas/knowledge/?category=learned_fact")
    does.tick(page.get_by_label("All 60 matches"))
    does.look("chosen")
    does.press(page.locator(".choosing summary", has_text="Move to"))
    does.press(page.locator(".choosing button[value='move:user_preference']"))
    expect(page.locator("#messages")).to_contain_text("60 knowledge entries changed")
    does.look("done")
    assert KnowledgeEntry.objects.filter(category="user_preference").count() == 60
    does.press(page.locator("#messages").get_by_role("button", name="Undo"))
    expect(page.locator("#messages")).to_contain_text("Undone")
    assert KnowledgeEntry.objects.filter(category="learned_fact").count() == 60


def test_an_agent_is_connected(page: Page, live_server, hand):
    Workspace.objects.create(slug="atlas", name="Atlas")
    does = hand(page)
    page.goto("/w/atlas/")
    does.section("Settings", "Connect")
    does.look("connect")
    does.link("Create token")
    does.write(page.locator("#id_name"), "scout")
    does.look("token")
    does.button("Create token")
    expect(page.locator("#first-call")).to_contain_text("Waiting for the first call")
    does.look("lines")

    with MemoryHub(live_server.url, page.locator("#token").inner_text()) as agent:
        agent.append("cli:main", [{"role": "user", "content": "Hello"}])

    expect(page.locator("main")).to_contain_text("First call arrived")
    does.look("arrived")
    assert Entry.objects.get().content == "Hello"


@pytest.fixture
def real_hub(tmp_path: Path, new_database: Callable[[Path], None]) -> Iterator[RealHub]:
    hub = RealHub(tmp_path / "home")
    hub.home.mkdir()
    new_database(hub.home / "memoryhub.sqlite3")
    hub.start()
    yield hub
    hub.stop()


@pytest.mark.parametrize("hand", [Keyboard], indirect=True, ids=["keyboard"])  # a hub takes as long as ten journeys
def test_a_backup_is_restored(chromium: Browser, real_hub: RealHub, hand):
    context = chromium.new_context(base_url=real_hub.address)
    does = hand(context.new_page())
    page = does.page
    page.goto(real_hub.setup)
    does.write(page.locator("[name=username]"), "olga")
    does.write(page.locator("[name=password1]"), PASSWORD)
    does.write(page.locator("[name=password2]"), PASSWORD)
    does.press(page.locator("main button[type=submit]"))
    page.wait_for_url(f"{real_hub.address}/")
    page.goto("/new/")
    does.write(page.locator("#id_name"), "Atlas")
    does.press(page.locator("main form button[type=submit]"))
    page.wait_for_url("**/w/atlas/**")
    page.goto("/backups/")
    does.look("none")
    does.button("Back up now")
    expect(page.locator("main tbody tr")).to_have_count(1)
    does.look("made")
    name = page.locator("main tbody .mono").first.inner_text()
    page.goto("/w/atlas/settings/")
    does.write(page.locator("#id_name"), "Spoilt")
    does.button("Save")
    expect(page.locator(".topbar")).to_contain_text("Spoilt")

    real_hub.stop()
    backup = real_hub.home / "backups" / name
    told = manage(real_hub.home, str(real_hub.home / "memoryhub.sqlite3"), "restore", str(backup), "--yes")
    real_hub.start()

    assert "all invariants hold" in told
    page.goto("/w/atlas/")  # a backup has no sign-ins
    does.write(page.locator("[name=username]"), "olga")
    does.write(page.locator("[name=password]"), PASSWORD)
    does.press(page.locator("main button[type=submit]"))
    expect(page.locator(".page-head h1")).to_have_text("Atlas")
    does.look("restored")
    context.close()
