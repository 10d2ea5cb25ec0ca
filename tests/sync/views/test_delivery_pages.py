from pathlib import Path

import pytest
from django.test import Client
from django.utils import timezone

from knowledge_app.models import Fact, MemoryDocument
from knowledge_app.services.documents.editing import save_text
from memoryhub.inbox.attention import attention_items
from memoryhub.role_scope import whole_scope
from memoryhub.sync.importing import import_workspace
from sessions_app.models import SyncState, Workspace
from sessions_app.services.audit import By
from sessions_app.services.syncing import switch_sync
from tests.hub import PERSON, run_jobs
from tests.sync.views.test_sync_pages import client_as

pytestmark = pytest.mark.django_db
TEXT = "# Facts\n\n- tea at four\n- no meetings\n"


@pytest.fixture
def atlas(tmp_path: Path, settings) -> Workspace:
    settings.MEMORYHUB_QUIET_SECONDS = 0
    (tmp_path / "atlas" / "memory").mkdir(parents=True)
    (tmp_path / "atlas" / "memory" / "MEMORY.md").write_text(TEXT)
    return import_workspace(tmp_path / "atlas", by=By(PERSON, timezone.now()), name="Atlas").workspace


@pytest.fixture
def operator(atlas) -> Client:
    return client_as(atlas, "operator")


@pytest.fixture
def document(atlas) -> MemoryDocument:
    return MemoryDocument.objects.select_related("head").get()


@pytest.fixture
def edited(document) -> MemoryDocument:
    text = document.head.content.replace("four", "five")
    save_text(document, text, base_number=document.head.number, by=By(PERSON, timezone.now()), reason="edited")
    return document


def url(document: MemoryDocument) -> str:
    return f"/w/atlas/memory/{document.pk}/"


def attention() -> list[str]:
    return [item.text for item in attention_items(whole_scope(), now=timezone.now()) if item.kind == "ahead"]


def test_a_save_shows_that_the_agent_reads_the_old_text(operator, document):
    data = {"base": document.head.number, "text": TEXT + "- new\n"}

    page = operator.post(f"{url(document)}edit/", data, follow=True).content.decode()

    assert "Saved." in page
    assert "nanobot still reads the old text" in page
    assert "Send to agent" in page


def test_only_the_facts_that_the_agents_file_lacks_count_as_unsent(operator, edited):
    changed, kept = Fact.objects.filter(died=None).order_by("line")
    old = "nanobot still reads the old text"

    assert old in operator.get(f"/w/atlas/memory/facts/{changed.pk}/").content.decode()
    assert old not in operator.get(f"/w/atlas/memory/facts/{kept.pk}/").content.decode()

    edited.refresh_from_db()
    without = edited.head.content.replace("- no meetings\n", "")
    save_text(edited, without, base_number=edited.head.number, by=By(PERSON, timezone.now()), reason="removed")
    assert old in operator.get(f"/w/atlas/memory/facts/{kept.pk}/").content.decode()


def test_send_to_agent_writes_the_file_once(atlas, operator, edited):
    sending = operator.post("/w/atlas/sync/send/", {"document": edited.pk}, follow=True)
    assert "Sending to nanobot" in sending.content.decode()
    run_jobs()

    page = operator.get(url(edited)).content.decode()

    assert "Delivered to nanobot at" in page
    assert "five" in (Path(atlas.path) / "memory" / "MEMORY.md").read_text()
    atlas.refresh_from_db()
    assert not atlas.write_back


def test_an_imported_text_needs_no_delivery(operator, document):
    page = operator.get(url(document)).content.decode()

    assert "Delivered to" not in page
    assert "still reads" not in page


def test_an_editor_may_send_only_if_writing_is_on(atlas, edited):
    editor = client_as(atlas, "editor")
    assert "Send to agent" not in editor.get(url(edited)).content.decode()
    assert editor.post("/w/atlas/sync/send/").status_code == 404

    switch_sync(atlas, write_back=True, by=By(PERSON, timezone.now()))

    assert editor.post("/w/atlas/sync/send/").status_code == 302


def test_with_two_way_sync_the_page_waits_for_the_delivery(atlas, operator, edited):
    operator.post("/w/atlas/sync/switch/", {"two_way": "on"})

    page = operator.get(f"{url(edited)}delivery/").content.decode()

    assert "Sending to nanobot" in page
    assert "hx-get" in page


def test_a_file_that_cannot_be_written_says_why(operator, atlas, edited):
    SyncState.objects.create(workspace=atlas, unwritten={"memory/MEMORY.md": "is a link"})

    assert "is a link" in operator.get(url(edited)).content.decode()


def test_the_memory_page_marks_what_was_not_sent(operator, edited):
    assert "Not sent to nanobot" in operator.get("/w/atlas/memory/").content.decode()


def test_a_document_ahead_of_its_file_needs_attention(atlas, edited):
    assert attention() == ["The agent still reads the old text of MEMORY.md."]

    switch_sync(atlas, follow=True, write_back=True, by=By(PERSON, timezone.now()))

    assert attention() == []  # the worker is about to write it


def test_one_switch_turns_both_directions_on_and_off(atlas, operator):
    for state in (True, False):
        operator.post("/w/atlas/sync/switch/", {"two_way": "on" if state else "off"})

        atlas.refresh_from_db()
        assert (atlas.is_followed, atlas.write_back) == (state, state)


def test_a_read_only_layout_is_only_followed(atlas, operator):
    Workspace.objects.filter(pk=atlas.pk).update(layout="grid")

    operator.post("/w/atlas/sync/switch/", {"two_way": "on"})

    atlas.refresh_from_db()
    assert (atlas.is_followed, atlas.write_back) == (True, False)


def test_the_page_lists_accepted_changes(atlas, operator):
    (Path(atlas.path) / "memory" / "MEMORY.md").write_text(TEXT + "- from the agent\n")
    operator.post("/w/atlas/sync/now/")
    run_jobs()

    assert "Changes by the agent" in operator.get("/w/atlas/sync/").content.decode()
