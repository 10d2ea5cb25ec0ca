from pathlib import Path

import pytest
from django.test import Client
from django.utils import timezone

from knowledge_app.models import HeldChange, KnowledgeEntry, MemoryDocument
from knowledge_app.services.documents.editing import save_text, start_document
from knowledge_app.services.rows.knowledge import add_knowledge
from knowledge_app.services.rows.undoable_edits import edit_rows
from memoryhub.sync.importing import import_workspace
from memoryhub.sync.syncing import sync_workspace
from sessions_app.models import AuditRecord, Session, SyncState, Workspace
from sessions_app.services.audit import Actor, By
from tests.hub import PERSON, client_of, member, run_jobs

pytestmark = pytest.mark.django_db
BY = By(PERSON, timezone.now())
TEXT = "# Facts\n\n- tea at four\n- no meetings\n"


@pytest.fixture
def atlas(tmp_path: Path, settings) -> Workspace:
    settings.MEMORYHUB_QUIET_SECONDS = 0
    (tmp_path / "atlas" / "memory").mkdir(parents=True)
    (tmp_path / "atlas" / "memory" / "MEMORY.md").write_text(TEXT)
    (tmp_path / "atlas" / "memory" / "HISTORY.md").write_text("[2026-04-01 10:00] began\n")
    return import_workspace(tmp_path / "atlas", by=By(PERSON, timezone.now()), name="Atlas").workspace


def client_as(workspace: Workspace, role: str) -> Client:
    return client_of(member(workspace, role, role))


@pytest.fixture
def operator(atlas) -> Client:
    return client_as(atlas, "operator")


def edit() -> None:
    document = MemoryDocument.objects.select_related("head").get()
    text = document.head.content.replace("four", "five")
    save_text(document, text, base_number=document.head.number, by=By(PERSON, timezone.now()), reason="edited")


def test_the_page_shows_what_would_be_written_before_it_is_switched_on(atlas, operator):
    edit()

    page = operator.get("/w/atlas/sync/").content.decode()

    assert "hub has newer text" in page
    assert "Preview of changes to memory/MEMORY.md" in page
    assert "1 file would be written immediately" in page
    assert "memory/HISTORY.md" in page


def test_every_file_that_would_be_written_is_previewed_before_the_switch(atlas, operator):
    edit()
    for name in ("SOUL.md", "USER.md"):
        document = start_document(atlas, name)
        save_text(document, f"About {name}, password: hunter22abc", base_number=0, by=BY, reason="edited")

    page = operator.get("/w/atlas/sync/").content.decode()

    places = [page.index(f"Preview of changes to {path}") for path in ("memory/MEMORY.md", "SOUL.md", "USER.md")]
    assert places == sorted(places)
    assert places[-1] < page.index(">Turn on</button>")
    assert "3 files would be written immediately" in page
    assert "About USER.md" in page
    assert "hunter22abc" not in page


def test_the_entries_that_would_be_written_to_a_knowledge_file_are_previewed(atlas, operator):
    Workspace.objects.filter(pk=atlas.pk).update(layout="grip")
    atlas.refresh_from_db()
    for text in ("tea", "milk", "rum", "gin"):
        add_knowledge(atlas, text, category="learned_fact", by=BY)
    rows = list(KnowledgeEntry.objects.order_by("id"))
    KnowledgeEntry.objects.update(awaits_file_since=None)
    edit_rows(atlas, "knowledge", "assign", [rows[0].pk], values={"content": "green tea"}, by=BY)
    edit_rows(atlas, "knowledge", "withdraw", [rows[1].pk], by=BY)
    KnowledgeEntry.objects.filter(pk=rows[2].pk).update(awaits_file_since=timezone.now())

    [difference] = [
        one for one in operator.get("/w/atlas/sync/").context["differences"] if one.file.kind == "knowledge"
    ]

    marked = [(line.mark, line.text) for line in difference.lines if line.mark in ("del", "ins")]
    assert sorted(marked) == [
        ("del", "Learned facts: milk"),
        ("del", "Learned facts: tea"),
        ("ins", "Learned facts: green tea"),
        ("ins", "Learned facts: rum"),
    ]


def test_session_files_have_the_title_of_their_conversation(atlas, operator):
    file = Path(atlas.path) / "sessions" / "cli_direct.jsonl"
    file.parent.mkdir()
    file.write_text('{"_type": "metadata", "metadata": {}}\n{"role": "user", "content": "hello"}\n')
    sync_workspace(atlas, by=BY)
    session = atlas.sessions.get()
    Session.objects.update(title="Plans for May")

    page = operator.get("/w/atlas/sync/").content.decode()

    assert f'<a href="/w/atlas/sessions/{session.pk}/" dir="auto">Plans for May</a>' in page


def test_switches_need_an_operator_and_are_recorded(atlas, operator):
    assert client_as(atlas, "editor").post("/w/atlas/sync/switch/", {"follow": "on"}).status_code == 404

    operator.post("/w/atlas/sync/switch/", {"follow": "on"})
    operator.post("/w/atlas/sync/switch/", {"write_back": "on"})

    atlas.refresh_from_db()
    assert (atlas.is_followed, atlas.write_back) == (True, True)
    assert AuditRecord.objects.filter(action="workspace.configured").count() == 2


def test_sync_now_imports_and_writes(atlas, operator):
    edit()
    operator.post("/w/atlas/sync/switch/", {"write_back": "on"})

    page = operator.post("/w/atlas/sync/now/", follow=True).content.decode()
    run_jobs()

    assert "Sync requested" in page
    assert "Sync requested" not in operator.get("/w/atlas/sync/").content.decode()
    assert "five" in (Path(atlas.path) / "memory" / "MEMORY.md").read_text()


def test_the_last_change_is_counted_in_words(atlas, operator):
    assert "written: " not in operator.get("/w/atlas/sync/").text

    counts = {"added": {"entries": 1, "sessions": 2}, "updated": {}, "written": {"files": 1}}
    SyncState.objects.update_or_create(workspace=atlas, defaults={"counts": counts})

    assert "added: 1 message, 2 conversations; written: 1 file<" in operator.get("/w/atlas/sync/").text


def test_the_page_links_a_conflict_and_shows_a_failure(atlas, operator):
    edit()
    file = Path(atlas.path) / "memory" / "MEMORY.md"
    file.write_text(TEXT.replace("four", "three"))
    sync_workspace(atlas, by=By(Actor("command", "test"), timezone.now()))
    SyncState.objects.update(failed_at=timezone.now(), error_code="x", error="The disk went away.")

    page = operator.get("/w/atlas/sync/").content.decode()

    assert f"/w/atlas/review/{HeldChange.objects.get().pk}/" in page
    assert "The disk went away." in page


def test_a_workspace_without_a_folder_has_no_switches(workspace):
    page = client_as(workspace, "operator").get("/w/atlas/sync/").content.decode()

    assert "writes directly to the hub" in page
    assert "/sync/switch/" not in page


def test_a_read_only_layout_refuses_with_a_message(atlas, operator):
    Workspace.objects.filter(pk=atlas.pk).update(layout="grid")

    response = operator.post("/w/atlas/sync/switch/", {"write_back": "on"}, follow=True)

    assert "never writes to grid folders" in response.content.decode()


def test_the_command_syncs_switches_and_lists_waiting_files(atlas, command):
    edit()

    waiting = command("sync", "atlas", "--follow")
    status = command("sync", "atlas", "--status")
    written = command("sync", "atlas", "--write-back")
    everything = command("sync")

    assert waiting["waiting"] == ["memory/MEMORY.md"]
    assert (status["follow"], status["write_back"]) == (True, False)
    assert written["written"] == [{"path": "memory/MEMORY.md", "verdict": "written", "why": ""}]
    assert [one["workspace"] for one in everything["workspaces"]] == ["atlas"]


def test_the_command_switches_both_directions(atlas, command):
    for option, state in (("--two-way", True), ("--no-two-way", False)):
        command("sync", "atlas", option)

        status = command("sync", "atlas", "--status")
        assert (status["two_way"], status["follow"], status["write_back"]) == (state, state, state)


def test_the_command_reports_a_missing_folder(atlas, command):
    Path(atlas.path).rename(Path(atlas.path).with_name("elsewhere"))

    assert command("sync", "atlas", status=1)["error"]["code"] == "folder_missing"
    assert command("sync", status=1)["workspaces"][0]["error"]["code"] == "folder_missing"
