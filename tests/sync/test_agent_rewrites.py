"""Agents that read their memory, think, and write the whole file, while people edit it in the hub."""

import os
from datetime import timedelta
from pathlib import Path

import pytest
from django.utils import timezone

from knowledge_app.models import HeldChange, MemoryDocument
from knowledge_app.services.documents.editing import save_text
from knowledge_app.services.documents.proposals import write_text
from memoryhub.integrity import check_memory
from memoryhub.runs.review import approve
from memoryhub.sync.importing import import_workspace
from memoryhub.sync.syncing import sync_workspace
from sessions_app.models import Workspace
from sessions_app.services.audit import Actor, By
from sessions_app.services.syncing import switch_sync
from tests.hub import AGENT, PERSON, head

pytestmark = pytest.mark.django_db
TEXT = "# Memory\n\n## Facts\n\n" + "".join(f"- fact {word}\n" for word in "abcdefghijklmnopqrst")
START = timezone.now()


@pytest.fixture
def file(tmp_path: Path, settings) -> Path:
    settings.MEMORYHUB_QUIET_SECONDS = 0
    made = tmp_path / "agent" / "memory" / "MEMORY.md"
    made.parent.mkdir(parents=True)
    made.write_text(TEXT)
    return made


@pytest.fixture
def atlas(file: Path) -> Workspace:
    workspace = import_workspace(file.parent.parent, by=By(PERSON, START), name="Atlas").workspace
    switch_sync(workspace, write_back=True, by=By(PERSON, START))
    return workspace


def sync(workspace: Workspace, seconds: float) -> None:
    sync_workspace(workspace, by=By(Actor("sync", "worker"), START + timedelta(seconds=seconds)))


def save(text: str, seconds: float) -> None:
    document = MemoryDocument.objects.select_related("head").get()
    by = By(PERSON, START + timedelta(seconds=seconds))
    save_text(document, text, base_number=document.head.number, by=by, reason="edited")


def write(file: Path, text: str, seconds: float) -> None:
    file.write_text(text)
    moment = (START + timedelta(seconds=seconds)).timestamp()
    os.utime(file, (moment, moment))


@pytest.mark.slow
@pytest.mark.parametrize("thinks", [0, 1, 30, 299, 600])
@pytest.mark.parametrize("is_delivered", [True, False])
def test_additions_of_both_sides_in_the_same_place_are_kept(atlas, file, thinks, is_delivered):
    read = file.read_text()
    save(TEXT + "- added in the hub\n", 0)
    if is_delivered:
        sync(atlas, 0)

    write(file, read + "- added by the agent\n", thinks)
    sync(atlas, thinks + 1)

    assert head() == TEXT + "- added in the hub\n- added by the agent\n"
    assert file.read_text() == head()
    assert not HeldChange.objects.exists()
    assert check_memory().broken == []


@pytest.mark.parametrize("thinks", [1, 600])
@pytest.mark.parametrize("is_delivered", [True, False])
def test_changes_of_the_same_line_are_held(atlas, file, thinks, is_delivered):
    read = file.read_text()
    save(TEXT.replace("fact c", "fact cats"), 0)
    if is_delivered:
        sync(atlas, 0)

    write(file, read.replace("fact c", "fact cows"), thinks)
    sync(atlas, thinks + 1)

    assert "fact cats" in head()
    assert "fact cows" in HeldChange.objects.get(status="pending").proposed


def test_a_second_program_that_writes_first_does_not_end_the_protection(atlas, file):
    read = file.read_text()
    save(TEXT + "- added in the hub\n", 0)
    sync(atlas, 0)
    write(file, file.read_text() + "- appended by a tool\n", 10)
    sync(atlas, 11)

    write(file, read + "- added after thinking\n", 60)
    sync(atlas, 61)

    assert "- added in the hub\n" in head()
    assert "- added after thinking\n" in head()


def test_a_hub_that_was_stopped_goes_by_the_time_of_the_file(atlas, file):
    read = file.read_text()
    save(TEXT.replace("fact c", "fact c, corrected"), 0)
    sync(atlas, 0)

    write(file, read + "- learned meanwhile\n", 60)
    sync(atlas, 7_200)

    assert "fact c, corrected" in head()
    assert "learned meanwhile" in head()


def test_a_line_removed_in_the_hub_does_not_come_back_unseen(atlas, file):
    save(TEXT.replace("- fact c\n", ""), 0)
    sync(atlas, 0)

    write(file, TEXT.replace("- fact c\n", "").replace("- fact t", "- fact c\n- fact t"), 60)
    sync(atlas, 61)

    assert "- fact c\n" not in head()


WRONG = "The shop is closed on Monday"


def _starred(text: str) -> str:
    return text.replace("- ", "* ")


def _moved_as(line: str):
    return lambda text: text.replace(f"- {WRONG}\n", "").replace("- fact t", f"{line}\n- fact t")


def _joined(text: str) -> str:
    return text.replace(f"- fact a\n- {WRONG}", f"- fact a; {WRONG}")


@pytest.mark.slow
@pytest.mark.parametrize("is_delivered", [True, False])
@pytest.mark.parametrize(
    "rewrite",
    [
        _starred,
        _joined,
        _moved_as(f"* {WRONG}"),
        _moved_as(f"- **{WRONG}**."),
        _moved_as(f"  - [fact] {WRONG.upper()}"),
        _moved_as("- On Monday, the shop is closed"),
        _moved_as("- \uff34he shop is closed on Monday"),
    ],
)
def test_a_line_removed_in_the_hub_does_not_come_back_in_another_form(atlas, file, rewrite, is_delivered):
    write(file, TEXT.replace("- fact a\n", f"- fact a\n- {WRONG}\n"), 0)
    sync(atlas, 0)
    read = file.read_text()
    save(head().replace(f"- {WRONG}\n", ""), 1)
    if is_delivered:
        sync(atlas, 1)

    write(file, rewrite(read), 60)
    sync(atlas, 61)

    assert "monday" not in head().lower()
    assert HeldChange.objects.filter(status="pending").exists()


def test_a_line_that_says_the_opposite_of_a_removed_one_is_accepted(atlas, file):
    write(file, f"{TEXT}- {WRONG}\n", 0)
    sync(atlas, 0)
    save(head().replace(f"- {WRONG}\n", ""), 1)
    sync(atlas, 1)

    write(file, f"{file.read_text()}- The shop is not closed on Monday\n", 60)
    sync(atlas, 61)

    assert "not closed" in head()
    assert not HeldChange.objects.exists()


def test_an_agent_that_has_read_the_correction_may_change_the_next_line(atlas, file):
    save(TEXT.replace("fact c", "fact cats"), 0)
    sync(atlas, 0)

    write(file, file.read_text().replace("fact d", "fact dogs"), 60)
    sync(atlas, 61)

    assert "- fact cats\n- fact dogs\n" in head()
    assert not HeldChange.objects.exists()


def test_a_stale_text_without_changes_is_replaced_by_the_hubs_text(atlas, file):
    save(TEXT + "- added in the hub\n", 0)
    sync(atlas, 0)

    write(file, TEXT, 60)
    sync(atlas, 61)

    assert file.read_text() == TEXT + "- added in the hub\n"


def test_an_open_editor_keeps_what_the_agent_added_in_the_same_place(atlas, file):
    opened = MemoryDocument.objects.select_related("head").get()
    write(file, TEXT + "- added by the agent\n", 1)
    sync(atlas, 2)

    text = TEXT + "- added in the hub\n"
    save_text(opened, text, base_number=opened.head.number, by=By(PERSON, START), reason="edited")

    assert "- added by the agent\n" in head()
    assert "- added in the hub\n" in head()


DAY = 86_400  # seconds


@pytest.mark.slow
@pytest.mark.parametrize("policy", ["accept", "hold_risky"])
@pytest.mark.parametrize("again", ["- fact c\n", "* **Fact C**.\n"])
@pytest.mark.parametrize("by_hand", ["", "- fact see\n"], ids=["removed", "corrected"])
def test_a_fact_that_a_person_removed_is_held_when_it_comes_back_days_later(atlas, file, policy, again, by_hand):
    Workspace.objects.update(agent_changes=policy)
    switch_sync(atlas, follow=True, write_back=True, by=By(PERSON, START))
    save(TEXT.replace("- fact c\n", by_hand), 0)
    sync(atlas, 1)
    decided = file.read_text()

    write(file, decided + "- new fact\n" + again, DAY)
    sync(atlas, DAY + 1)

    assert head() == decided + "- new fact\n"
    assert file.read_text() == head()
    [change] = HeldChange.objects.all()
    assert change.reason == "1 new fact was removed or corrected earlier"
    assert check_memory().broken == []

    approve(change, by=By(PERSON, START + timedelta(seconds=DAY + 2)))
    sync(atlas, DAY + 3)

    assert file.read_text() == decided + "- new fact\n" + again


def test_a_fact_that_somebody_put_back_is_a_fact_like_others(atlas, file):
    save(TEXT.replace("- fact c\n", ""), 0)
    sync(atlas, 1)
    save(TEXT, DAY)
    sync(atlas, DAY + 1)
    write(file, TEXT.replace("- fact c\n", ""), 2 * DAY)
    sync(atlas, 2 * DAY + 1)

    write(file, TEXT, 3 * DAY)
    sync(atlas, 3 * DAY + 1)

    assert head() == TEXT
    assert not HeldChange.objects.exists()


def _old_text(_now: str) -> str:
    return TEXT


def _old_text_that_grew(_now: str) -> str:
    return TEXT + "- learned after the backup was restored\n"


def _old_text_in_another_form(_now: str) -> str:
    return TEXT.replace("- ", "* ").replace("\n", "\r\n")


@pytest.mark.slow
@pytest.mark.parametrize("policy", ["accept", "hold_risky"])
@pytest.mark.parametrize("rewrite", [_old_text, _old_text_that_grew, _old_text_in_another_form])
def test_a_restored_backup_of_the_file_does_not_remove_what_a_person_added(atlas, file, policy, rewrite):
    Workspace.objects.update(agent_changes=policy)
    save(TEXT + "- added in the hub\n", 0)
    sync(atlas, 0)
    write(file, file.read_text() + "- learned by the agent\n", 3_600)
    sync(atlas, 3_601)

    write(file, rewrite(file.read_text()), DAY)
    sync(atlas, DAY + 1)

    assert "added in the hub" in head()
    assert "older text without 1 line" in HeldChange.objects.get(status="pending").reason


@pytest.mark.slow
@pytest.mark.postgres
def test_a_restored_backup_is_recognised_however_often_the_agent_wrote_since(atlas, file):
    save(TEXT + "- added in the hub\n", 0)
    for number in range(101):
        document = MemoryDocument.objects.select_related("head", "workspace").get()
        text, by = f"{TEXT}- added in the hub\n\nCakes: {number}\n", By(AGENT, START + timedelta(hours=1))
        assert write_text(document, text, base_number=document.head.number, by=by, reason="").revision
    sync(atlas, 3_601)

    write(file, TEXT, DAY)
    sync(atlas, DAY + 1)

    assert "added in the hub" in head()
    assert "older text without 1 line" in HeldChange.objects.get(status="pending").reason


def test_an_agent_may_remove_a_line_that_it_has_read(atlas, file):
    save(TEXT + "- added in the hub\n", 0)
    sync(atlas, 0)
    write(file, file.read_text() + "- learned by the agent\n", 3_600)
    sync(atlas, 3_601)

    write(file, TEXT + "- learned by the agent\n", DAY)
    sync(atlas, DAY + 1)

    assert head() == TEXT + "- learned by the agent\n"
    assert not HeldChange.objects.exists()
