"""Agents' files that still contain what was forgotten: they count as behind, and two-way sync replaces them."""

from __future__ import annotations

from pathlib import Path

import pytest
from django.urls import reverse

from knowledge_app.models import Forgotten
from knowledge_app.services.documents.delivery import undelivered_documents
from knowledge_app.services.documents.editing import save_text
from memoryhub.sync.importing import import_workspace
from memoryhub.sync.source_folders import add_folder, sync_folders
from sessions_app.models import Session, Workspace
from sessions_app.services.syncing import switch_sync
from tests.forgetting.test_forgetting import BY, forget
from tests.forgetting.test_person_page import confirmed
from tests.hub import run_jobs
from tests.sync.followed_folders import followed, memory, sync

pytestmark = pytest.mark.django_db
TEXT = "# Team\n\n- Zoltan likes tea\n- the boat is red\n"


@pytest.fixture
def file(tmp_path: Path, settings) -> Path:
    settings.MEMORYHUB_QUIET_SECONDS = 0
    file = tmp_path / "agent" / "memory" / "MEMORY.md"
    file.parent.mkdir(parents=True)
    (file.parent.parent / "sessions").mkdir()
    file.write_text(TEXT)
    return file


@pytest.mark.parametrize("kind", ["phrase", "person"])
def test_two_way_sync_removes_it_from_the_file(file, kind):
    atlas = followed(file.parent.parent)
    forget(atlas, kind, "Zoltan")

    sync(atlas)

    assert "Zoltan" not in file.read_text()
    assert "- the boat is red\n" in file.read_text()
    assert file.read_text() == memory().head.content
    assert not undelivered_documents(Workspace.objects.all()).exists()


def test_text_that_the_agent_writes_again_is_removed_again(file):
    atlas = followed(file.parent.parent)
    forget(atlas, "person", "Zoltan")
    sync(atlas)

    file.write_text(file.read_text() + "- Zoltan moved to Oslo\n- Ana has a cat\n")
    for _ in range(2):
        sync(atlas)

    assert "Zoltan" not in file.read_text()
    assert "- Ana has a cat\n" in file.read_text()
    assert file.read_text() == memory().head.content
    count = memory().revisions.count()
    sync(atlas)
    assert memory().revisions.count() == count


def test_without_two_way_sync_the_page_says_so(file):
    workspace = import_workspace(file.parent.parent, by=BY).workspace
    forget(workspace, "person", "Zoltan")

    assert [document.name for document in undelivered_documents(Workspace.objects.all())] == ["MEMORY.md"]
    assert file.read_text() == TEXT
    switch_sync(workspace, write_back=True, by=BY)
    sync(workspace)
    assert "Zoltan" not in file.read_text()


def test_documents_without_it_are_not_revised(file):
    atlas = followed(file.parent.parent)
    (file.parent.parent / "USER.md").write_text("# Zoltan\n")
    sync(atlas)

    forget(atlas, "person", "Zoltan")

    assert memory().revisions.count() == 2
    (file.parent.parent / "SOUL.md").write_text("# Calm\n")
    sync(atlas)
    soul = atlas.documents.get(name="SOUL.md")
    assert soul.revisions.count() == 1


def erased_page(client, workspace: Workspace, words: str = "Zoltan", kind: str = "person") -> str:
    """Erase on the page and return the URL of the job's page."""
    asked = {"kind": kind, "words": words, "expected": 1}
    url = client.post(reverse("forget", args=[workspace.slug]), asked)["Location"]
    run_jobs()
    return url


def states(client, url: str) -> dict[str, str]:
    return {file.path: file.state for place in client.get(url).context["places"] for file in place.files}


@pytest.mark.slow
def test_the_page_of_the_erasure_sends_the_new_text_to_the_agents_file(file, admin_client):
    workspace = import_workspace(file.parent.parent, by=BY).workspace
    url = erased_page(admin_client, workspace)

    assert states(admin_client, url) == {"memory/MEMORY.md": "behind"}
    page = admin_client.get(url).content.decode()
    assert "1 file still has the old text." in page
    assert str(file.parent.parent) in page
    receipt = Forgotten.objects.get()
    files_url = reverse("erased-files", args=[workspace.slug, receipt.pk])
    send = admin_client.post(reverse("send-to-agent", args=[workspace.slug]), {"receipt": receipt.pk})
    assert send["Location"] == files_url
    assert "The new text is being sent." in admin_client.get(files_url).content.decode()
    run_jobs()

    assert "Zoltan" not in file.read_text()
    assert states(admin_client, url) == states(admin_client, files_url) == {"memory/MEMORY.md": "delivered"}
    assert "new text sent" in admin_client.get(files_url, headers={"HX-Request": "true"}).content.decode()


def test_with_two_way_sync_the_page_says_that_the_text_is_being_sent(file, admin_client):
    atlas = followed(file.parent.parent)
    switch_sync(atlas, follow=True, by=BY)
    url = erased_page(admin_client, atlas)

    assert "The new text is being sent: two-way sync is on." in admin_client.get(url).content.decode()
    sync(atlas)
    assert states(admin_client, url) == {"memory/MEMORY.md": "delivered"}


def test_files_that_the_hub_only_reads_are_listed_with_the_reason(file, tmp_path, admin_client):
    workspace = import_workspace(file.parent.parent, by=BY).workspace
    more = tmp_path / "more" / "memory" / "MEMORY.md"
    more.parent.mkdir(parents=True)
    (more.parent.parent / "sessions").mkdir()
    more.write_text("- Zoltan has a dog\n")
    (more.parent / "HISTORY.md").write_text("[2026-02-01 10:00] Zoltan called.\n")
    add_folder(workspace, more.parent.parent, project="", follow=True, by=BY)
    list(sync_folders(workspace, by=BY, full=True))

    url = erased_page(admin_client, workspace)

    found = states(admin_client, url)
    assert found.pop("memory/MEMORY.md") == "behind"
    assert set(found.values()) == {"unchanged"}
    assert {Path(path).name for path in found} == {"MEMORY.md", "HISTORY.md"}
    page = admin_client.get(url).content.decode()
    assert "The hub only reads this folder. Edit or delete these files yourself:" in page
    more.write_text("- somebody has a dog\n")
    list(sync_folders(workspace, by=BY, full=True))
    assert sorted(states(admin_client, url).values()) == ["behind", "changed", "unchanged"]


def test_files_of_sessions_have_the_title_of_their_conversation(file, admin_client):
    session = file.parent.parent / "sessions" / "Y2xpOmRpcmVjdA.jsonl"
    session.write_text('{"_type": "metadata", "metadata": {}}\n{"role": "user", "content": "hello Zoltan"}\n')
    workspace = import_workspace(file.parent.parent, by=BY).workspace
    Session.objects.update(title="Plans for May")

    page = admin_client.get(erased_page(admin_client, workspace)).content.decode()

    address = reverse("sessions:detail", args=[workspace.slug, Session.objects.get().pk])
    assert f'<a href="{address}" dir="auto">Plans for May</a>' in page
    assert "sessions/Y2xpOmRpcmVjdA.jsonl" in page


def test_a_file_that_never_contained_it_is_not_listed(file, admin_client):
    (file.parent.parent / "USER.md").write_text("# Ana\n")
    workspace = import_workspace(file.parent.parent, by=BY).workspace

    url = erased_page(admin_client, workspace)

    assert set(states(admin_client, url)) == {"memory/MEMORY.md"}


def test_the_file_of_an_erased_session_is_counted(file, admin_client):
    session = file.parent.parent / "sessions" / "cli_direct.jsonl"
    session.write_text('{"_type": "metadata", "metadata": {}}\n{"role": "user", "content": "hello Zoltan"}\n')
    workspace = import_workspace(file.parent.parent, by=BY).workspace
    key = workspace.sessions.get().key

    url = erased_page(admin_client, workspace, key, "session")

    assert "1 file of an erased session isn't listed." in admin_client.get(url).content.decode()


def test_the_page_of_a_person_erased_everywhere_lists_files_of_every_workspace(file, admin_client):
    import_workspace(file.parent.parent, by=BY)
    page = admin_client.post(reverse("person-data"), {"words": "Zoltan"})
    url = admin_client.post(reverse("erase-person"), confirmed(page))["Location"]
    run_jobs()

    assert states(admin_client, url) == {"memory/MEMORY.md": "behind"}
    send = admin_client.post(
        reverse("send-to-agent", args=[Workspace.objects.get().slug]), {"receipt": Forgotten.objects.get().pk}
    )
    assert states(admin_client, send["Location"]) == {"memory/MEMORY.md": "behind"}


@pytest.mark.parametrize("kind", ["phrase", "person"])
def test_the_preview_of_sending_shows_the_replaced_text_as_a_bar(file, admin_client, kind):
    workspace = import_workspace(file.parent.parent, by=BY).workspace
    document = workspace.documents.get(name="MEMORY.md")
    erased_page(admin_client, workspace, kind=kind)

    item = {"item": f"document-{document.pk}"}
    inbox = admin_client.get(reverse("inbox", args=[workspace.slug]), item).content.decode()
    sync_page = admin_client.get(reverse("sync", args=[workspace.slug])).content.decode()

    for page in (inbox, sync_page):
        assert "█████ is forgotten text. The file may still have it." in page
        assert "█████</mark>" in page or "- █████</del>" in page
        assert "[forgotten]" in page
        assert "Zoltan" not in page


def test_a_mark_that_the_file_has_already_is_no_bar(file, admin_client):
    atlas = followed(file.parent.parent)
    forget(atlas, "person", "Zoltan")
    sync(atlas)
    switch_sync(atlas, follow=False, write_back=False, by=BY)
    save_text(memory(), memory().head.content + "- new\n", base_number=memory().head.number, reason="", by=BY)

    page = admin_client.get(reverse("sync", args=[atlas.slug])).content.decode()

    assert "- new" in page
    assert "█" not in page
