"""How the hub writes an agent's files: when they are missing, linked, unmounted or being replaced."""

import os

import pytest
from django.utils import timezone

from knowledge_app.models import HeldChange, MemoryRevision
from knowledge_app.services.documents.editing import save_text, start_document
from memoryhub.lib.files.safe_folder import FolderMissing
from memoryhub.sync import atomic_replace, write_back
from sessions_app.models import SyncState
from sessions_app.services.audit import By
from tests.hub import PERSON
from tests.sync.followed_folders import TEXT, edit, followed, memory, private, sync

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("_no_waiting")]


@pytest.mark.parametrize("kind", ["folder", "link", "missing folder"])
def test_folders_links_and_missing_folders_are_never_written(atlas, file, tmp_path, kind):
    (file.parent.parent / "SOUL.md").write_text("soul")
    sync(atlas)
    edit("fact a", "fact apples")
    file.rename(tmp_path / "kept.md")
    if kind == "folder":
        file.mkdir()
    elif kind == "link":
        file.symlink_to(tmp_path / "kept.md")
    else:
        file.parent.rmdir()

    result = sync(atlas)

    assert [one.verdict for one in result.written] == ["refused"]
    assert (tmp_path / "kept.md").read_text() == TEXT
    assert list(SyncState.objects.get().unwritten) == ["memory/MEMORY.md"]
    assert MemoryRevision.objects.count() == 3


def test_a_missing_file_is_created_again_by_the_next_edit(atlas, folder, file):
    (folder / "SOUL.md").write_text("soul")
    sync(atlas)
    file.unlink()

    result = sync(atlas)
    assert [problem.outcome for problem in result.tally.problems] == ["held"]
    assert not file.exists()
    assert memory().head.content == TEXT

    edit("fact a", "fact apples")
    sync(atlas)
    assert "fact apples" in file.read_text()


def test_an_unmounted_folder_is_flagged_and_catches_up_later(atlas, folder, file, tmp_path):
    folder.rename(tmp_path / "elsewhere")
    edit("fact a", "fact apples")
    with pytest.raises(FolderMissing):
        sync(atlas)
    folder.mkdir()
    with pytest.raises(FolderMissing):
        sync(atlas)
    atlas.refresh_from_db()
    assert atlas.unavailable_since
    assert SyncState.objects.get().error_code == "folder_missing"
    assert os.listdir(folder) == []

    folder.rmdir()
    (tmp_path / "elsewhere").rename(folder)
    sync(atlas)

    atlas.refresh_from_db()
    assert atlas.unavailable_since is None
    assert "fact apples" in file.read_text()
    assert SyncState.objects.get().error_code == ""


def test_an_agent_that_started_over_is_not_taken_for_an_unmounted_folder(atlas, file):
    file.rename(file.with_name("HISTORY.md"))

    assert +sync(atlas).tally.added == {"history": 2}


def test_text_written_while_the_file_is_replaced_is_merged(atlas, file, monkeypatch):
    edit("fact a", "fact apples")
    replace_file = write_back.replace_file

    def racing(folder, path, content, *, expected):
        with file.open("r+") as old:  # an agent that has the old file open
            result = replace_file(folder, path, content, expected=expected)
            old.write(TEXT.replace("fact t", "fact tea"))
        return result

    monkeypatch.setattr(write_back, "replace_file", racing)
    sync(atlas)
    monkeypatch.setattr(write_back, "replace_file", replace_file)

    assert "fact tea" in memory().head.content
    assert "fact apples" in memory().head.content
    sync(atlas)
    assert file.read_text() == memory().head.content
    assert private(file) == []


@pytest.mark.parametrize("is_renamed", [False, True])
def test_text_written_right_after_the_file_was_replaced_is_merged(atlas, file, monkeypatch, is_renamed):
    edit("fact a", "fact apples")
    swap_in = atomic_replace._swap_in

    def racing(*arguments):
        temporary = swap_in(*arguments)
        own = file.with_name("agents-own") if is_renamed else file
        own.write_text(file.read_text().replace("fact t", "fact tea"))
        own.rename(file)
        return temporary

    monkeypatch.setattr(atomic_replace, "_swap_in", racing)
    sync(atlas)
    monkeypatch.setattr(atomic_replace, "_swap_in", swap_in)
    sync(atlas)

    assert "fact tea" in memory().head.content
    edit("fact k", "fact kiwi")
    sync(atlas)
    assert file.read_text() == memory().head.content
    assert {"fact apples", "fact tea", "fact kiwi"} <= {line[2:] for line in file.read_text().splitlines()}


def test_files_of_a_killed_process_are_removed_after_import(atlas, file):
    (file.parent / ".MEMORY.md.memoryhub-new-0001").write_text("half a te")
    (file.parent / ".MEMORY.md.memoryhub-old-0002").write_text(TEXT)
    (file.parent / ".MEMORY.md.memoryhub-old-0003").write_text(TEXT.replace("fact k", "fact kept aside"))

    sync(atlas)

    assert private(file) == []
    assert "fact kept aside" in file.read_text()


def test_an_unrecorded_write_of_the_hub_is_recognised(atlas, file):
    edit("fact c", "fact cats")
    file.write_text(memory().head.content)
    edit("fact cats", "fact catfish")

    sync(atlas)

    assert "fact catfish" in file.read_text()
    assert not HeldChange.objects.exists()


def test_line_endings_and_byte_order_mark_are_kept(folder, file):
    file.write_bytes(b"\xef\xbb\xbf" + TEXT.replace("\n", "\r\n").encode())
    atlas = followed(folder)

    edit("fact c", "fact cats")
    sync(atlas)

    assert file.read_bytes() == b"\xef\xbb\xbf" + TEXT.replace("fact c", "fact cats").replace("\n", "\r\n").encode()


def test_a_missing_document_is_created_where_the_program_reads_it(atlas, folder):
    soul = start_document(atlas, "SOUL.md")
    save_text(soul, "Be brief.\n", base_number=0, by=By(PERSON, timezone.now()), reason="new")

    sync(atlas)

    assert (folder / "SOUL.md").read_text() == "Be brief.\n"
    assert not sync(atlas).has_changed
