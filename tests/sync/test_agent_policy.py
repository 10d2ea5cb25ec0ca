"""What happens to an agent's own changes of its memory files: accepted, or held while the file goes back."""

from pathlib import Path

import pytest
from django.utils import timezone

from knowledge_app.models import Fact, HeldChange, MemoryDocument
from knowledge_app.models.documents import ALL_HELD
from knowledge_app.services.documents.proposals import append_fact
from memoryhub.agents.api_tokens import Caller, issue_token
from memoryhub.agents.operations.corrections import correct
from memoryhub.agents.operations.memory import add_fact, replace_line, write_document
from memoryhub.integrity import check_memory
from memoryhub.runs.review import approve, reject
from memoryhub.sync.importing import import_workspace
from memoryhub.sync.source_folders import add_folder, sync_folder
from memoryhub.sync.status import written_files
from memoryhub.sync.syncing import sync_workspace
from sessions_app.models import Workspace
from sessions_app.services.audit import Actor, By
from sessions_app.services.syncing import switch_sync
from tests.hub import by, head

pytestmark = pytest.mark.django_db
TEXT = "# Memory\n\n" + "".join(f"- fact {word}\n" for word in "abcdefghijklmnopqrst")
SHORT = "# Memory\n\n- fact a\n"


@pytest.fixture
def file(tmp_path: Path, settings) -> Path:
    settings.MEMORYHUB_QUIET_SECONDS = 0
    made = tmp_path / "agent" / "memory" / "MEMORY.md"
    made.parent.mkdir(parents=True)
    made.write_text(TEXT)
    return made


@pytest.fixture
def atlas(file: Path) -> Workspace:
    workspace = import_workspace(file.parent.parent, by=by(), name="Atlas").workspace
    switch_sync(workspace, follow=True, write_back=True, by=by())
    return workspace


def use(workspace: Workspace, policy: str) -> None:
    Workspace.objects.filter(pk=workspace.pk).update(agent_changes=policy)
    workspace.refresh_from_db()


def sync(workspace: Workspace) -> None:
    sync_workspace(workspace, by=By(Actor("sync", "worker"), timezone.now()))


def pending() -> list[HeldChange]:
    return list(HeldChange.objects.filter(status="pending").order_by("id"))


def test_a_risky_change_is_held_by_default_and_the_file_goes_back(atlas, file):
    file.write_text(SHORT)

    sync(atlas)

    assert file.read_text() == TEXT
    assert head() == TEXT
    assert [change.proposed for change in pending()] == [SHORT]
    assert [status.standing for status in written_files(atlas)] == ["in_step"]
    assert check_memory().broken == []


def test_a_harmless_change_is_accepted_by_default(atlas, file):
    file.write_text(TEXT + "- added by the agent\n")

    sync(atlas)

    assert "added by the agent" in head()
    assert pending() == []


def test_every_change_is_held_if_the_workspace_says_so(atlas, file):
    use(atlas, "hold_all")
    file.write_text(TEXT + "- added by the agent\n")

    sync(atlas)

    assert file.read_text() == TEXT
    assert [change.proposed for change in pending()] == [TEXT + "- added by the agent\n"]

    approve(pending()[0], by=by())
    sync(atlas)

    assert file.read_text() == TEXT + "- added by the agent\n"
    assert check_memory().broken == []


def test_a_risky_change_is_accepted_if_the_workspace_says_so(atlas, file):
    use(atlas, "accept")
    file.write_text(SHORT)

    sync(atlas)

    assert head() == SHORT
    assert pending() == []


def test_a_rejected_change_stays_out_of_the_file(atlas, file):
    use(atlas, "hold_all")
    file.write_text(TEXT + "- added by the agent\n")
    sync(atlas)
    reject(pending()[0], by=by())
    sync(atlas)

    file.write_text(TEXT + "- added by the agent\n")
    sync(atlas)

    assert file.read_text() == TEXT
    assert pending() == []


def test_two_changes_can_be_approved_one_after_the_other(atlas, file):
    use(atlas, "hold_all")
    for line in ("- first\n", "- second\n"):
        file.write_text(file.read_text() + line)
        sync(atlas)

    for change in pending():
        approve(change, by=by())
    sync(atlas)

    assert file.read_text() == TEXT + "- first\n- second\n"


def test_a_text_that_includes_a_held_one_supersedes_it(atlas, file):
    use(atlas, "hold_all")
    file.write_text(TEXT + "- first\n")
    sync(atlas)
    MemoryDocument.objects.update(written_at=None, written_over=None)  # much later
    file.write_text(TEXT + "- first\n- second\n")
    sync(atlas)

    assert [change.proposed for change in pending()] == [TEXT + "- first\n- second\n"]


def test_an_emptied_file_is_filled_again_and_waits_for_review(atlas, file):
    file.write_text("")
    sync(atlas)
    sync(atlas)

    assert file.read_text() == TEXT
    assert [change.flags for change in pending()] == [["the file was emptied"]]
    sync(atlas)
    assert len(pending()) == 1


def test_without_two_way_sync_the_file_stays_as_it_is(atlas, file):
    switch_sync(atlas, follow=False, by=by())
    use(atlas, "hold_all")
    file.write_text(TEXT + "- added by the agent\n")

    sync(atlas)

    assert file.read_text() == TEXT + "- added by the agent\n"
    assert head() == TEXT
    assert [status.standing for status in written_files(atlas)] == ["held"]


def test_the_command_changes_the_policy(atlas, command):
    assert command("workspace", "set", "atlas", "agent_changes=hold_all")["settings"]["agent_changes"] == "hold_all"
    atlas.refresh_from_db()
    assert atlas.agent_changes == "hold_all"


@pytest.mark.slow
@pytest.mark.postgres
def test_a_new_file_of_the_agent_waits_and_stays_where_it_is(atlas, file):
    use(atlas, "hold_all")
    new = file.parent.parent / "USER.md"
    new.write_text("# User\n\n- has a boat\n")

    sync(atlas)
    sync(atlas)

    assert new.read_text() == "# User\n\n- has a boat\n"
    assert MemoryDocument.objects.get(name="USER.md").head is None
    assert [(change.document.name, change.flags) for change in pending()] == [("USER.md", [ALL_HELD])]
    assert check_memory().broken == []

    approve(pending()[0], by=by())
    sync(atlas)

    assert MemoryDocument.objects.get(name="USER.md").head.content == new.read_text() == "# User\n\n- has a boat\n"
    assert check_memory().broken == []


def test_a_new_file_that_changes_while_it_waits_is_one_change(atlas, file):
    use(atlas, "hold_all")
    new = file.parent.parent / "USER.md"
    for text in ("- has a boat\n", "- has a boat and a car\n"):
        new.write_text(text)
        sync(atlas)

    assert [change.proposed for change in pending()] == ["- has a boat and a car\n"]
    reject(pending()[0], by=by())
    sync_workspace(atlas, by=by(), full=True)

    assert pending() == []
    assert MemoryDocument.objects.get(name="USER.md").head is None


def test_a_new_file_waits_too_if_a_person_imports_the_folder_again(atlas, file):
    use(atlas, "hold_all")
    (file.parent.parent / "USER.md").write_text("- has a boat\n")

    import_workspace(file.parent.parent, by=by())

    assert MemoryDocument.objects.get(name="USER.md").head is None
    assert len(pending()) == 1


def test_the_first_import_of_a_further_folder_is_taken(atlas, tmp_path):
    use(atlas, "hold_all")
    folder = tmp_path / "other" / "memory"
    folder.mkdir(parents=True)
    (folder / "MEMORY.md").write_text("- has a boat\n")
    source = add_folder(atlas, folder.parent, by=by(), label="other")
    sync_folder(source, by=by())
    (folder.parent / "SOUL.md").write_text("- is calm\n")
    source.refresh_from_db()
    sync_folder(source, by=by())

    assert MemoryDocument.objects.get(name="other/MEMORY.md").head.content == "- has a boat\n"
    assert MemoryDocument.objects.get(name="other/SOUL.md").head is None
    assert [change.document.name for change in pending()] == ["other/SOUL.md"]


@pytest.mark.parametrize("name", ["MEMORY.md", "USER.md"])
def test_agents_change_no_document_over_rest_and_mcp_either(atlas, name):
    use(atlas, "hold_all")
    token, _ = issue_token(atlas, "a", ["append", "edit", "read"], by=by())
    caller, now = Caller(token, "rest"), timezone.now()
    number = 1 if name == "MEMORY.md" else 0
    text = TEXT if number else ""

    answers = [
        add_fact(caller, name, "has a boat", now=now),
        write_document(caller, name, f"{text}- has a car\n", base=number, now=now),
        *([replace_line(caller, name, "- fact a", "- fact A, or B", now=now)] if number else []),
    ]

    assert {answer["status"] for answer in answers} == {"held"}
    assert {tuple(answer["proposal"]["why"]) for answer in answers} == {(ALL_HELD,)}
    document = MemoryDocument.objects.select_related("head").get(name=name)
    assert (document.head.content if document.head else "") == text


def test_agents_do_not_correct_their_own_facts_either(atlas):
    token, _ = issue_token(atlas, "a", ["append", "edit", "read"], by=by())
    caller, now = Caller(token, "rest"), timezone.now()
    add_fact(caller, "MEMORY.md", "has a boat", now=now)
    use(atlas, "hold_all")
    caller.token.workspace.refresh_from_db()

    answer = correct(caller, "fact", Fact.objects.get(text="has a boat").pk, "has a car", now=now)

    assert answer["status"] == "held"
    assert head().endswith("- has a boat\n")


def test_people_change_documents_at_once(atlas):
    use(atlas, "hold_all")

    append_fact(MemoryDocument.objects.get(), "has a boat", by=by())

    assert head().endswith("- has a boat\n")
    assert pending() == []
