"""What an agent's file changes in rows that people decided about waits as a proposal."""

from __future__ import annotations

import json
from itertools import chain
from pathlib import Path

import pytest
from django.utils import timezone

from knowledge_app.models import HeldRow, KeyValue, KnowledgeEntry, Observation
from knowledge_app.services.rows.importing import LATER
from knowledge_app.services.rows.key_values import write_value
from knowledge_app.services.rows.undoable_edits import edit_rows
from memoryhub.integrity import check_memory
from memoryhub.lib.import_counts import ImportCounts
from memoryhub.runs.review import approve_run
from memoryhub.sync.importing import import_workspace
from sessions_app.models import Run, Workspace
from sessions_app.services.audit import By
from sessions_app.services.runs import cancel_run
from sessions_app.services.syncing import switch_sync
from tests.hub import by
from tests.sync.followed_folders import ACTOR, followed, sync
from tests.sync.test_held_imports import FACT, ORDER, write

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("_no_waiting")]
NEW, THIRD = "The deployment runs in Paris.", "The deployment runs in Oslo."
TABLES = {"grip": ("knowledge", KnowledgeEntry, "content"), "grid": ("key_values", KeyValue, "value")}


@pytest.fixture(params=["grip", "grid"])
def agent(request, tmp_path: Path) -> Path:
    folder = tmp_path / request.param
    write(folder, FACT)
    read(folder)
    return folder


def read(folder: Path, *texts: str, **options) -> ImportCounts:
    if texts:
        write(folder, *texts)
    return import_workspace(folder, by=By(ACTOR, timezone.now()), **options).tally


def edit(agent: Path, action: str, **values: object) -> None:
    table, model, _ = TABLES[agent.name]
    edit_rows(Workspace.objects.get(), table, action, [model.objects.get().pk], values=values, by=by())


def correct(agent: Path, text: str) -> None:
    edit(agent, "assign", **{TABLES[agent.name][2]: text})


def served(agent: Path) -> list[str]:
    _, model, field = TABLES[agent.name]
    return list(model.objects.filter(withdrawn_at=None, hold=None).values_list(field, flat=True))


def waiting() -> list[Run]:
    return list(Run.objects.filter(status="held", kind="edit"))


def test_a_correction_stays_after_the_file_agreed_with_it_once(agent):
    correct(agent, NEW)
    read(agent, NEW)

    tally = read(agent, FACT)

    assert served(agent) == [NEW]
    assert "the hub's value stays" in {one.action for one in tally.problems}
    (run,) = [one for one in waiting() if one.options["table"] == TABLES[agent.name][0]]
    assert run.requested_by == "the agent's file"
    approve_run(run, by=by())
    assert served(agent) == [FACT]
    assert +read(agent, FACT).updated == {}
    assert served(agent) == [FACT]


def test_a_third_text_is_proposed_once_and_not_again_after_a_rejection(agent):
    correct(agent, NEW)

    for _ in range(2):
        read(agent, THIRD)
    (run,) = [one for one in waiting() if one.options["table"] == TABLES[agent.name][0]]
    cancel_run(run, by=by())
    read(agent, NEW)
    read(agent, THIRD)

    assert served(agent) == [NEW]
    assert [one for one in waiting() if one.options["table"] == TABLES[agent.name][0]] == []


def test_only_the_latest_text_of_the_file_waits(agent):
    correct(agent, NEW)
    for text in (THIRD, FACT, THIRD):
        read(agent, text)

    (run,) = [one for one in waiting() if one.options["table"] == TABLES[agent.name][0]]
    assert run.options["values"][TABLES[agent.name][2]] == THIRD


def test_a_dry_run_proposes_nothing(agent):
    correct(agent, NEW)

    read(agent, THIRD, dry_run=True)

    assert waiting() == []


def test_a_withdrawn_row_that_the_file_changes_returns_when_a_person_approves(agent):
    edit(agent, "withdraw", reason="no")

    read(agent, THIRD)

    assert THIRD not in served(agent)
    (run,) = [one for one in waiting() if one.options["table"] == TABLES[agent.name][0]]
    approve_run(run, by=by())
    assert served(agent) == [THIRD]


def test_a_verified_entry_that_the_file_changes_stays(tmp_path):
    agent = tmp_path / "grip"
    read(agent, FACT)
    edit(agent, "verify")

    read(agent, THIRD)

    assert served(agent) == [FACT]
    assert len(waiting()) == 1


def test_a_value_that_a_person_wrote_stays_if_the_file_has_another(tmp_path):
    agent = tmp_path / "grid"
    read(agent, FACT)
    write_value(Workspace.objects.get(), "key1", NEW, by=by())

    read(agent, FACT, THIRD)

    assert set(served(agent)) == {FACT, NEW}
    assert len(waiting()) == 1


def test_a_flagged_change_waits_and_the_text_before_stays_in_use(agent):
    tally = read(agent, ORDER)

    assert served(agent) == [FACT]
    assert not HeldRow.objects.filter(**{f"{agent_link(agent)}__isnull": False}).exists()
    assert [one.what for one in tally.problems if one.outcome == "held"].count(
        "1 row is flagged by the content check"
    ) == 2  # and a line of the history, or an observation
    runs = [one for one in waiting() if one.options["table"] == TABLES[agent.name][0]]
    assert len(runs) == 1
    approve_run(runs[0], by=by())
    assert served(agent) == [ORDER]


def agent_link(agent: Path) -> str:
    return "knowledge" if agent.name == "grip" else "key_value"


def test_a_flagged_tag_waits_and_the_entry_stays_in_use(tmp_path):
    agent = tmp_path / "grip"
    read(agent, FACT)
    file = agent / "memory" / "knowledge.json"
    file.write_text(file.read_text().replace("[]", json.dumps([ORDER])))

    read(agent)

    assert served(agent) == [FACT]
    assert KnowledgeEntry.objects.get().tags == []


def test_a_tag_that_says_what_a_person_removed_waits_and_the_entry_stays_in_use(tmp_path):
    agent = tmp_path / "grip"
    read(agent, FACT, THIRD)
    withdrawn = KnowledgeEntry.objects.get(content=THIRD)
    edit_rows(withdrawn.workspace, "knowledge", "withdraw", [withdrawn.pk], by=by())
    file = agent / "memory" / "knowledge.json"
    file.write_text(file.read_text().replace("[]", json.dumps([THIRD]), 1))

    read(agent)

    assert served(agent) == [FACT]
    assert KnowledgeEntry.objects.get(content=FACT).tags == []
    assert len(waiting()) == 1


def test_a_key_that_is_almost_a_withdrawn_one_is_held(tmp_path):
    folder = tmp_path / "grid"
    folder.mkdir()
    (folder / "kv.json").write_text(json.dumps({"home": "Lisbon"}))
    read(folder)
    edit(folder, "withdraw")

    (folder / "kv.json").write_text(json.dumps({"home ": "Lisbon", "x": "1"}))
    tally = read(folder)

    assert served(folder) == ["1"]
    assert [one.outcome for one in tally.problems] == ["held"]


def test_a_held_key_is_still_held_when_the_file_changes_its_value(tmp_path):
    folder = tmp_path / "grid"
    folder.mkdir()
    (folder / "kv.json").write_text(json.dumps({"home": "Lisbon"}))
    read(folder)
    correct(folder, "Porto")

    for text in ("Braga", "Faro", "Braga"):
        (folder / "kv.json").write_text(json.dumps({"home": "Lisbon", "Home": text}))
        read(folder)

        assert served(folder) == ["Porto"]
        assert HeldRow.objects.get().findings[0]["code"] == "decided"


def test_an_unflagged_change_of_the_agents_own_row_is_taken(agent):
    read(agent, ORDER)

    read(agent, NEW)

    assert served(agent) == [NEW]
    assert waiting() == []


def test_two_way_sync_gives_the_file_the_text_back_and_the_change_waits(tmp_path):
    agent = tmp_path / "grip"
    write(agent, FACT)
    workspace = followed(agent)
    write(agent, ORDER)

    sync(workspace)

    file = json.loads((agent / "memory" / "knowledge.json").read_text())
    assert [one["content"] for one in file["entries"]] == [FACT]
    sync(workspace, full=True)
    assert served(agent) == [FACT]
    assert len(waiting()) == 1
    write(agent, NEW)
    sync(workspace)
    assert served(agent) == [NEW]
    assert waiting() == []


def test_many_changes_are_kept_although_not_all_are_proposed(tmp_path, monkeypatch):
    monkeypatch.setattr("knowledge_app.services.rows.proposed_edits.MAX_PENDING", 1)
    agent = tmp_path / "grip"
    read(agent, FACT, NEW)

    tally = read(agent, ORDER, ORDER.replace("evil", "worse"))

    assert set(served(agent)) == {FACT, NEW}
    assert len(waiting()) == 1
    assert "1 change is not proposed: too many are waiting" in {one.what for one in tally.problems}


@pytest.mark.slow
@pytest.mark.postgres
@pytest.mark.parametrize("is_two_way", [True, False])
@pytest.mark.parametrize("full", [True, False])
def test_changes_that_were_too_many_are_proposed_after_decisions(tmp_path, monkeypatch, is_two_way, full):
    monkeypatch.setattr("knowledge_app.services.rows.proposed_edits.MAX_PENDING", 2)
    agent, texts = tmp_path / "grip", [f"{name} runs in Frankfurt." for name in ("Atlas", "Blue", "Coral", "Delta")]
    write(agent, *texts)
    workspace = followed(agent)
    switch_sync(workspace, write_back=is_two_way, by=by())
    KnowledgeEntry.objects.update(last_verified_at=timezone.now())
    corrected = KnowledgeEntry.objects.order_by("-pk").values_list("pk", flat=True)[:1]
    edit_rows(workspace, "knowledge", "assign", list(corrected), values={"content": "Delta is new."}, by=by())
    sync(workspace)
    write(agent, *(text.replace("Frankfurt", "Oslo") for text in texts))

    first = sync(workspace, full=full).tally
    sync(workspace, full=full)
    proposed = [[one.options["values"]["content"] for one in waiting()]]
    while runs := waiting():
        approve_run(runs[0], by=by())
        if len(runs) > 1:
            cancel_run(runs[1], by=by())
        sync(workspace, full=full)
        sync(workspace, full=full)
        proposed.append([one.options["values"]["content"] for one in waiting()])

    note = "2 changes are not proposed: too many are waiting"
    assert [one.action for one in first.problems if one.what == note] == [LATER]
    assert [len(one) for one in proposed] == [2, 2, 0]
    assert sorted(chain(*proposed)) == sorted(text.replace("Frankfurt", "Oslo") for text in texts)
    assert sorted("Oslo" in text for text in served(agent)) == [False, False, True, True]
    if is_two_way:
        file = json.loads((agent / "memory" / "knowledge.json").read_text())
        assert sorted(one["content"] for one in file["entries"]) == sorted(served(agent))
    assert check_memory().broken == []


def test_an_observation_that_a_person_corrected_stays(tmp_path):
    agent = tmp_path / "grid"
    read(agent, FACT)
    row = Observation.objects.get()
    edit_rows(row.workspace, "observations", "assign", [row.pk], values={"content": NEW}, by=by())
    read(agent, NEW)

    read(agent, THIRD)

    row.refresh_from_db()
    assert row.content == NEW
    assert [one.options["table"] for one in waiting()] == ["observations"]
