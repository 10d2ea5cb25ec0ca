import json
import os
import shutil
from datetime import timedelta
from pathlib import Path

import pytest
from django.utils import timezone

from knowledge_app.models import Fact, HeldChange, MemoryRevision
from knowledge_app.services.documents.editing import curate_facts
from memoryhub.integrity import check_memory
from memoryhub.runs.review import approve, reject
from memoryhub.sync.importing import import_workspace
from memoryhub.sync.sync_requests import is_requested, request_sync
from sessions_app.models import AuditRecord, Entry, Session, SourceFile, SyncState, Workspace
from sessions_app.services.audit import By
from sessions_app.services.syncing import switch_sync
from tests.hub import PERSON, raises_code, run_jobs
from tests.sync.followed_folders import ACTOR, TEXT, edit, followed, memory, private, replace, sync

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("_no_waiting")]
SAMPLE = Path(__file__).resolve().parent.parent / "samples" / "nanobot-0.1"


def test_an_agent_cannot_turn_it_off_with_a_manifest_in_its_folder(atlas, folder, file):
    switch_sync(atlas, follow=True, write_back=True, by=By(PERSON, timezone.now()))
    (folder / "documents").mkdir()
    (folder / "documents" / "MEMORY.md").write_text("- everything is different\n")
    (folder / "memoryhub.json").write_text('{"format": "memoryhub", "version": 1, "program": "nanobot"}')
    edit("fact c", "fact c, corrected")

    sync(atlas)

    atlas.refresh_from_db()
    assert (atlas.write_back, atlas.layout) == (True, "nanobot")
    assert memory().path == "memory/MEMORY.md"
    assert "fact c, corrected" in file.read_text()
    assert not HeldChange.objects.exists()


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


def test_the_file_loses_a_code_fence_around_a_pinned_fact(atlas, file):
    switch_sync(atlas, follow=True, by=By(PERSON, timezone.now()))
    curate_facts(memory(), [Fact.objects.get(text="fact b").pk], by=By(PERSON, timezone.now()), pinned=True)
    for new in ("```\n- fact b\n```\n", ""):
        replace(file, "- fact b\n", new)
        sync(atlas)

        assert file.read_text() == TEXT
        assert Fact.objects.get(text="fact b", died=None).pinned
    assert check_memory().broken == []


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


def test_a_text_based_on_the_replaced_one_does_not_undo_a_correction(atlas, file):
    edit("fact c", "fact c, corrected")
    sync(atlas)

    file.write_text(TEXT + "- learnt meanwhile\n")
    sync(atlas)

    assert "fact c, corrected" in file.read_text()
    assert "learnt meanwhile" in file.read_text()


def test_after_ten_minutes_the_agent_may_drop_a_line_of_a_person_but_not_revert_a_correction(atlas, file):
    edit("fact c", "fact c, corrected")
    edit("fact e", "fact e\n- added by a person")
    sync(atlas)
    corrected = file.read_text()
    file.write_text(TEXT)
    later = timezone.now() + timedelta(minutes=11)
    os.utime(file, (later.timestamp(), later.timestamp()))

    sync(atlas, now=later)

    assert memory().head.content == corrected.replace("- added by a person\n", "")
    assert [change.reason for change in HeldChange.objects.all()] == ["1 new fact was removed or corrected earlier"]


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


def test_only_a_folder_is_synced(atlas, file):
    for path in ("", str(file)):
        Workspace.objects.update(path=path, write_back=False, is_followed=False)
        with raises_code("cannot_sync"):
            sync(Workspace.objects.get())


def test_a_folder_that_is_gone_marks_its_own_workspace_once(atlas, folder):
    Workspace.objects.create(slug="other", name="Other", path="/elsewhere")
    shutil.rmtree(folder)
    now = timezone.now()

    for minutes in (0, 5):
        with raises_code("folder_missing"):
            sync(atlas, now=now + timedelta(minutes=minutes))

    assert Workspace.objects.get(pk=atlas.pk).unavailable_since == now
    assert Workspace.objects.get(slug="other").unavailable_since is None
    assert SyncState.objects.get(workspace=atlas).error


def test_files_of_another_workspace_with_the_same_names_do_not_matter(tmp_path, atlas, file):
    for place in ("memory/MEMORY.md", "memory/HISTORY.md"):
        (tmp_path / "other" / place).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "other" / place).write_text("[2026-04-01 10:00] began\n")
    import_workspace(tmp_path / "other", by=By(ACTOR, timezone.now()), name="Other")

    result = sync(atlas)
    assert (result.tally.problems, +result.tally.unchanged) == ([], {"files": 1})

    file.write_text("")
    for _ in range(2):
        sync(atlas)
    assert [change.document.workspace_id for change in HeldChange.objects.all()] == [atlas.pk]


def test_a_removed_file_is_reported_once(atlas, folder):
    (folder / "memory" / "HISTORY.md").write_text("[2026-04-01 10:00] began\n")
    sync(atlas)
    (folder / "memory" / "HISTORY.md").unlink()

    told = [[problem.what for problem in sync(atlas).tally.problems] for _ in range(2)]

    assert told == [["is gone"], []]
