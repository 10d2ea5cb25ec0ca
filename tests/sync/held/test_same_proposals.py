"""A file's text that is held although the same text waits for review already, proposed by somebody else."""

from unittest.mock import Mock

import pytest
from django.utils import timezone

from knowledge_app.models import HeldChange, MemoryRevision
from knowledge_app.services.documents import outside_edits
from knowledge_app.services.documents.outside_edits import hold_emptied, import_late_text
from knowledge_app.services.documents.proposals import propose_text
from memoryhub.integrity import check_memory
from memoryhub.lib.layouts.records import DocumentRecord
from memoryhub.runs.review import approve, reject
from memoryhub.sync.status import written_files
from sessions_app.models import Run
from sessions_app.services.audit import Actor, By
from sessions_app.services.syncing import switch_sync
from tests.hub import PERSON, open_at, recorded_supersessions
from tests.sync.followed_folders import TEXT, edit, memory, sync

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("_no_waiting")]
SHORT = "# Facts\n\n- fact a\n- fact b\n"


def by(kind: str = "agent", name: str = "bot") -> By:
    return By(Actor(kind, name), timezone.now())


def proposed(text: str) -> HeldChange:
    return propose_text(memory(), text, base_number=None, by=by(), reason="shorter")


def pending() -> list[HeldChange]:
    return list(HeldChange.objects.filter(status="pending"))


@pytest.fixture
def change(atlas) -> HeldChange:
    """An agent's proposal that is based on a newer text than the file's."""
    edit("- fact t\n", "")
    return proposed(SHORT)


def test_the_files_change_replaces_a_proposal_with_the_same_text(atlas, file, change):
    file.write_text(SHORT)

    sync(atlas)
    sync(atlas)

    change.refresh_from_db()
    assert change.status == "superseded"
    assert recorded_supersessions() == [change.pk]
    assert [(one.author_kind, one.proposed) for one in pending()] == [("sync", SHORT)]
    assert [one.standing for one in written_files(atlas)] == ["held"]
    assert file.read_text() == SHORT
    approve(pending()[0], by=By(PERSON, timezone.now()))
    assert memory().head.content == SHORT
    assert check_memory().broken == []


def test_a_rejected_text_is_replaced_in_the_file(atlas, file, change):
    file.write_text(SHORT)
    sync(atlas)

    reject(pending()[0], by=By(PERSON, timezone.now()))
    sync(atlas)

    assert file.read_text() == TEXT.replace("- fact t\n", "")
    assert pending() == []


def test_two_way_sync_recognises_the_proposal(atlas, file, change):
    switch_sync(atlas, follow=True, by=By(PERSON, timezone.now()))
    file.write_text(SHORT)

    sync(atlas)

    assert pending() == [change]
    assert file.read_text() == TEXT.replace("- fact t\n", "")


def test_a_file_that_was_emptied_as_an_agent_proposed_is_held(atlas, change):
    other = proposed("")

    hold_emptied(memory(), timezone.now())

    other.refresh_from_db()
    assert other.status == "superseded"
    assert [one.author_kind for one in HeldChange.objects.filter(status="pending", proposed="")] == ["sync"]


def test_a_late_text_that_an_agent_proposed_is_held(atlas):
    edit("- fact b\n", "- fact two\n")
    late = DocumentRecord("MEMORY.md", TEXT.replace("- fact b\n", "- fact 2\n"))
    import_late_text(memory(), late, timezone.now())
    HeldChange.objects.update(author_kind="agent", author_name="bot", base=None)

    import_late_text(memory(), late, timezone.now())

    assert [one.status for one in HeldChange.objects.order_by("id")] == ["superseded", "pending"]
    assert [one.author_kind for one in pending()] == ["sync"]


def test_a_consolidation_that_waits_with_the_same_text_is_cancelled(atlas, file, change):
    run = Run.objects.create(workspace=atlas, session=open_at(atlas), kind="consolidation", status="held")
    HeldChange.objects.update(run=run, author_kind="run", author_name=f"run {run.pk}")
    file.write_text(SHORT)

    sync(atlas)

    run.refresh_from_db()
    assert run.status == "cancelled"  # its messages wait for the next one
    assert [one.author_kind for one in pending()] == ["sync"]


def test_a_late_text_is_imported_as_a_whole_or_not_at_all(atlas, monkeypatch):
    edit("- fact b\n", "- fact two\n")
    before = MemoryRevision.objects.count()
    monkeypatch.setattr(outside_edits, "_revise", Mock(side_effect=RuntimeError))

    with pytest.raises(RuntimeError):
        import_late_text(memory(), DocumentRecord("MEMORY.md", f"{TEXT}- fact z\n"), timezone.now())

    assert MemoryRevision.objects.count() == before
