import json
import os
import shutil
from datetime import timedelta
from pathlib import Path

import pytest
from django.utils import timezone

from knowledge_app.models import Fact, HeldChange, MemoryDocument, MemoryRevision
from knowledge_app.services.documents.editing import curate_facts, save_text, start_document
from memoryhub.integrity import check_memory
from memoryhub.lib.safe_folder import FolderMissing
from memoryhub.runs.review import approve, reject
from memoryhub.sync import write_back
from memoryhub.sync.importing import import_workspace
from memoryhub.sync.sync_requests import is_requested, request_sync
from memoryhub.sync.syncing import sync_workspace
from sessions_app.models import AuditRecord, Entry, Session, SourceFile, SyncState, Workspace
from sessions_app.services.audit import Actor, By
from sessions_app.services.syncing import switch_sync
from tests.hub import PERSON, raises_code, run_jobs

pytestmark = pytest.mark.django_db
ACTOR = Actor("command", "test")
TEXT = "# Facts\n\n" + "".join(f"- fact {word}\n" for word in "abcdefghijklmnopqrst")
SAMPLE = Path(__file__).resolve().parent.parent / "samples" / "nanobot-0.1"


@pytest.fixture(autouse=True)
def _no_waiting(settings) -> None:
    settings.MEMORYHUB_QUIET_SECONDS = 0


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "agent"
    (made / "memory").mkdir(parents=True)
    (made / "memory" / "MEMORY.md").write_text(TEXT)
    return made


@pytest.fixture
def file(folder: Path) -> Path:
    return folder / "memory" / "MEMORY.md"


@pytest.fixture
def atlas(folder: Path) -> Workspace:
    return followed(folder)


def followed(folder: Path) -> Workspace:
    workspace = import_workspace(folder, by=By(ACTOR, timezone.now()), name="Atlas").workspace
    switch_sync(workspace, write_back=True, by=By(PERSON, timezone.now()))
    return workspace


def sync(workspace: Workspace, **options):
    return sync_workspace(workspace, by=By(ACTOR, options.pop("now", timezone.now())), **options)


def memory() -> MemoryDocument:
    return MemoryDocument.objects.select_related("head", "synced_revision").get(name="MEMORY.md")


def edit(old: str, new: str) -> None:
    document = memory()
    text = document.head.content.replace(old, new)
    save_text(document, text, base_number=document.head.number, by=By(PERSON, timezone.now()), reason="edited")


def replace(file: Path, old: str, new: str) -> None:
    file.write_text(file.read_text().replace(old, new))


def private(file: Path) -> list[str]:
    return [name for name in os.listdir(file.parent) if "memoryhub" in name]


def test_an_edit_in_the_hub_is_written_once(atlas, file):
    file.chmod(0o640)
    edit("fact c", "fact c, corrected")

    first, second = sync(atlas), sync(atlas)

    assert "fact c, corrected" in file.read_text()
    assert file.stat().st_mode & 0o777 == 0o640
    assert [one.verdict for one in first.written] == ["written"]
    assert not second.has_changed
    assert memory().head == memory().synced_revision
    assert private(file) == []
    assert AuditRecord.objects.filter(action="document.written").count() == 1
    assert check_memory().broken == []


def test_nothing_is_written_if_it_is_switched_off(folder, file):
    atlas = import_workspace(folder, by=By(ACTOR, timezone.now())).workspace
    edit("fact c", "fact c, corrected")

    sync(atlas)

    assert file.read_text() == TEXT


def test_an_agent_edit_is_imported_and_unchanged_files_are_not_read(atlas, file):
    replace(file, "fact d", "fact d, says the agent")

    assert +sync(atlas).tally.updated == {"documents": 1}
    assert "says the agent" in memory().head.content
    assert +sync(atlas).tally.unchanged == {"files": 1}


def test_edits_of_different_lines_are_merged_and_pins_stay(atlas, file):
    edit("- fact a\n", "- fact a\n- the hub's own fact, pinned\n")
    own = Fact.objects.get(text__contains="own fact")
    curate_facts(memory(), [own.pk], by=By(PERSON, timezone.now()), pinned=True)
    replace(file, "fact t", "fact t, says the agent")

    sync(atlas)

    assert "own fact" in file.read_text()
    assert "says the agent" in file.read_text()
    assert Fact.objects.get(pk=own.pk, died=None).pinned


def test_a_conflict_is_held_and_blocks_its_document_until_decided(atlas, file):
    edit("fact c", "fact cats")
    replace(file, "fact c", "fact cows")
    sync(atlas)
    edit("fact d", "fact dogs")

    sync(atlas)

    assert "fact cows" in file.read_text()
    assert "dogs" not in file.read_text()
    change = HeldChange.objects.get(status="pending")
    assert "fact cows" in change.proposed

    reject(change, by=By(PERSON, timezone.now()))
    sync(atlas)

    assert file.read_text() == memory().head.content
    assert "fact cats" in file.read_text()
    assert MemoryRevision.objects.filter(content__contains="fact cows").exists()
    assert not sync(atlas).has_changed
    assert check_memory().broken == []


def test_a_conflict_approved_with_an_edited_text_is_written(atlas, file):
    edit("fact c", "fact cats")
    replace(file, "fact c", "fact cows")
    sync(atlas)
    change = HeldChange.objects.get()

    approve(change, by=By(PERSON, timezone.now()), text=change.ours.content.replace("fact cats", "cats and cows"))
    sync(atlas)

    assert "cats and cows" in file.read_text()
    assert not sync(atlas).has_changed


def test_a_truncated_file_is_held_and_not_overwritten(atlas, file):
    edit("fact a", "fact apples")
    file.write_text(TEXT[:60])

    sync(atlas)

    assert file.read_text() == TEXT[:60]
    assert HeldChange.objects.get().proposed == TEXT[:60]


def test_an_emptied_file_is_held_at_the_second_sync(atlas, file):
    edit("fact a", "fact apples")
    file.write_text("")

    sync(atlas)
    assert file.read_text() == ""
    assert not HeldChange.objects.exists()
    sync(atlas)
    sync(atlas)
    change = HeldChange.objects.get()
    assert change.flags == ["the file was emptied"]

    reject(change, by=By(PERSON, timezone.now()))
    sync(atlas)

    assert "fact apples" in file.read_text()
    assert not MemoryRevision.objects.filter(content="").exists()


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


def test_a_text_based_on_the_replaced_one_does_not_undo_a_correction(atlas, file):
    edit("fact c", "fact c, corrected")
    sync(atlas)

    file.write_text(TEXT + "- learnt meanwhile\n")
    sync(atlas)

    assert "fact c, corrected" in file.read_text()
    assert "learnt meanwhile" in file.read_text()


def test_after_ten_minutes_the_agent_may_revert_a_correction(atlas, file):
    edit("fact c", "fact c, corrected")
    sync(atlas)
    file.write_text(TEXT)

    sync(atlas, now=timezone.now() + timedelta(minutes=11))

    assert file.read_text() == TEXT
    assert memory().head.content == TEXT


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


def test_sessions_are_imported_and_never_written(tmp_path):
    shutil.copytree(SAMPLE, tmp_path / "agent")
    atlas = followed(tmp_path / "agent")
    session = next((tmp_path / "agent").rglob("*.jsonl"))
    before = Entry.objects.count()
    with session.open("a") as out:
        out.write(json.dumps({"role": "user", "content": "and one more", "timestamp": "2026-04-01T12:00:00"}) + "\n")
    held = session.read_bytes()

    result = sync(atlas)

    assert result.tally.added["entries"] == 1
    assert Entry.objects.count() == before + 1
    assert session.read_bytes() == held
    assert result.lag_seconds is not None


def test_an_interrupted_turn_is_imported_even_if_its_file_is_unchanged(tmp_path):
    shutil.copytree(SAMPLE, tmp_path / "agent")
    atlas = followed(tmp_path / "agent")
    session = next(path for path in (tmp_path / "agent").rglob("*.jsonl") if "cli" in path.name)
    checkpoint = session.with_suffix(".checkpoint.json")
    checkpoint.write_text('{"step": 1}')
    sync(atlas)
    shown = SourceFile.objects.get(path__endswith=session.name).session
    assert shown.extra["checkpoint"] == {"step": 1}

    checkpoint.unlink()
    sync(atlas)

    assert "checkpoint" not in Session.objects.get(pk=shown.pk).extra


def test_unchanged_syncs_write_no_rows(atlas, django_assert_num_queries):
    sync(atlas)
    with django_assert_num_queries(7) as captured:
        sync(atlas)

    assert [query["sql"] for query in captured if query["sql"].startswith(("UPDATE", "INSERT"))] == []


def test_a_requested_sync_is_carried_out(atlas):
    job = request_sync(atlas, by=By(PERSON, timezone.now()))
    assert is_requested(atlas)

    run_jobs()

    job.refresh_from_db()
    assert (job.status, is_requested(atlas)) == ("done", False)
    assert SyncState.objects.get().succeeded_at is not None


def test_a_workspace_without_a_folder_cannot_be_followed(workspace):
    with raises_code("cannot_sync"):
        switch_sync(workspace, follow=True, by=By(PERSON, timezone.now()))
    with raises_code("cannot_sync"):
        sync(workspace)


def test_an_archive_cannot_be_followed(tmp_path, workspace, command):
    archive = tmp_path / "agent.zip"
    archive.write_bytes(b"")
    Workspace.objects.filter(pk=workspace.pk).update(path=str(archive))
    workspace.refresh_from_db()

    with raises_code("cannot_sync"):
        switch_sync(workspace, follow=True, by=By(PERSON, timezone.now()))
    assert command("sync") == {"workspaces": []}
