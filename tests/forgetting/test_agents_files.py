"""Agents' files that still contain what was forgotten: they count as behind, and two-way sync replaces them."""

from __future__ import annotations

from pathlib import Path

import pytest

from knowledge_app.services.documents.delivery import undelivered_documents
from memoryhub.sync.importing import import_workspace
from sessions_app.models import Workspace
from sessions_app.services.syncing import switch_sync
from tests.forgetting.test_forgetting import BY, forget
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
