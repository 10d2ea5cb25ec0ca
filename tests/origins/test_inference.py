"""Origins of imported facts: tool calls, history entries, runs and probable messages."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path

import pytest
from django.db import IntegrityError, transaction
from django.utils import timezone

from bench.origins import measure_sample
from knowledge_app.models import Fact, FactSource, HistoryEntry
from memoryhub.integrity import check_memory
from memoryhub.origins.inference import infer_origins, pending_facts
from memoryhub.sync.importing import import_workspace
from memoryhub.sync.syncing import sync_workspace
from sessions_app.models import Entry, Workspace
from sessions_app.services.audit import Actor, By
from tests.shared import FIXTURES

pytestmark = pytest.mark.django_db
ACTOR = Actor("command", "test")
KINDS = FactSource.Kind


@pytest.fixture(autouse=True)
def _no_waiting(settings) -> None:
    settings.MEMORYHUB_QUIET_SECONDS = 0


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    root = tmp_path / "agent"
    (root / "memory").mkdir(parents=True)
    (root / "sessions").mkdir()
    return root


def write_memory(folder: Path, *facts: str) -> None:
    (folder / "memory" / "MEMORY.md").write_text("# Facts\n\n" + "".join(f"- {fact}\n" for fact in facts))


def write_session(folder: Path, *messages: dict, key: str = "cli:test") -> None:
    lines = [{"_type": "metadata", "key": key, "created_at": "2026-03-01T08:00:00", "last_consolidated": 0}]
    lines += [{"timestamp": f"2026-03-01T08:{n:02}:00"} | message for n, message in enumerate(messages)]
    text = "".join(f"{json.dumps(line)}\n" for line in lines)
    (folder / "sessions" / f"{key.replace(':', '_')}.jsonl").write_text(text)


def said(content: str, role: str = "user") -> dict:
    return {"role": role, "content": content}


def called(name: str, **arguments) -> dict:
    call = {"id": "c1", "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}
    return {"role": "assistant", "content": "", "tool_calls": [call]}


def imported(folder: Path) -> Workspace:
    return import_workspace(folder, by=By(ACTOR, timezone.now()), name="Atlas").workspace


def origins(text: str) -> list[tuple[str, int]]:
    rows = FactSource.objects.filter(fact__text=text, fact__died=None).order_by("id")
    return [(row.kind, row.entry.position if row.entry else -1) for row in rows]


def test_the_call_that_wrote_a_fact_and_the_message_before_it_are_found(folder):
    write_memory(folder, "Deploys go out on Tuesdays", "The moon is made of basalt")
    edit = called("edit_file", path="memory/MEMORY.md", old_text="", new_text="- Deploys go out on Tuesdays\n")
    write_session(
        folder, said("Hello"), said("Remember: deploys go out on Tuesdays"), edit, said("Done", "assistant")
    )

    imported(folder)

    assert origins("Deploys go out on Tuesdays") == [(KINDS.WRITTEN_BY, 2), (KINDS.PROBABLY_FROM, 1)]
    assert origins("The moon is made of basalt") == []


@pytest.mark.parametrize(
    "call",
    [
        called("edit_file", path="notes/other.md", new_text="- Deploys go out on Tuesdays\n"),
        called("edit_file", path="memory/MEMORY.md", old_text="- Deploys go out on Tuesdays\n", new_text=""),
        called("read_file", path="memory/MEMORY.md", note="- Deploys go out on Tuesdays"),
        called("edit_file", path="memory/MEMORY.md", new_text="- Deploys go out on Tuesdays or Fridays\n"),
    ],
)
def test_a_call_that_did_not_write_the_exact_text_is_no_origin(folder, call):
    write_memory(folder, "Deploys go out on Tuesdays")
    write_session(folder, said("Hello"), call, said("Done", "assistant"))

    imported(folder)

    assert KINDS.WRITTEN_BY not in dict(origins("Deploys go out on Tuesdays"))


@pytest.mark.parametrize(
    "call",
    [
        called("save_memory", memory_update="# Facts\n\n- Deploys go out on Tuesdays\n", history_entry="x"),
        called("remember", fact="Deploys go out on Tuesdays"),
        called("MultiEdit", file_path="/a/memory/MEMORY.md", edits=[{"new_string": "- Deploys go out on Tuesdays"}]),
        called("apply_patch", patch="*** Update File: MEMORY.md\n@@\n+- Deploys go out on Tuesdays\n"),
    ],
)
def test_similar_calls_are_recognised(folder, call):
    write_memory(folder, "Deploys go out on Tuesdays")
    write_session(folder, said("Hello"), call, said("Done", "assistant"))

    imported(folder)

    assert origins("Deploys go out on Tuesdays") == [(KINDS.WRITTEN_BY, 1)]


def test_the_first_of_several_calls_counts(folder):
    write_memory(folder, "Deploys go out on Tuesdays")
    write = called("write_file", path="memory/MEMORY.md", content="- Deploys go out on Tuesdays\n")
    write_session(folder, said("Hello"), write, said("Again"), write)

    imported(folder)

    assert origins("Deploys go out on Tuesdays") == [(KINDS.WRITTEN_BY, 1)]


def test_the_history_entry_of_the_same_call_is_recorded_with_the_fact(folder):
    write_memory(folder, "Deploys go out on Tuesdays")
    (folder / "memory" / "HISTORY.md").write_text(
        "[2026-03-01 07:10] An earlier thing.\n\n[2026-03-01 08:01] The team set a day.\n\n"
    )
    save = called("save_memory", memory_update="- Deploys go out on Tuesdays\n", history_entry="The team set a day.")
    write_session(folder, said("Hello"), save)

    imported(folder)

    [source] = FactSource.objects.filter(kind=KINDS.RECORDED_WITH)
    assert source.history_entry.content == "The team set a day."


def test_a_later_change_is_recorded_with_the_only_history_entry_of_its_sync(folder):
    write_memory(folder, "Deploys go out on Tuesdays")
    workspace = imported(folder)
    assert not FactSource.objects.exists()

    write_memory(folder, "Deploys go out on Tuesdays", "Ana leads the team")
    (folder / "memory" / "HISTORY.md").write_text("[2026-03-02 09:00] The lead changed.\n\n")
    sync_workspace(workspace, by=By(ACTOR, timezone.now()))

    [source] = FactSource.objects.all()
    assert (source.kind, source.fact.text) == (KINDS.RECORDED_WITH, "Ana leads the team")
    assert source.history_entry == HistoryEntry.objects.get()


def test_two_history_entries_of_the_same_time_prove_nothing(folder):
    write_memory(folder, "Deploys go out on Tuesdays")
    workspace = imported(folder)

    write_memory(folder, "Deploys go out on Tuesdays", "Ana leads the team")
    (folder / "memory" / "HISTORY.md").write_text("[2026-03-02 09:00] One.\n\n[2026-03-02 09:01] Two.\n\n")
    sync_workspace(workspace, by=By(ACTOR, timezone.now()))

    assert not FactSource.objects.exists()


def test_messages_after_the_fact_and_an_agents_own_sessions_are_left_out(folder):
    write_memory(folder, "Deploys go out on Tuesdays")
    write = called("write_file", path="memory/MEMORY.md", content="- Deploys go out on Tuesdays\n")
    write_session(folder, said("Hello"), write, said("So deploys go out on Tuesdays?"))
    write_session(folder, said("Memory: Deploys go out on Tuesdays"), key="dream:20260301-070000")

    imported(folder)

    assert origins("Deploys go out on Tuesdays") == [(KINDS.WRITTEN_BY, 1)]


def test_a_message_that_arrives_after_the_memory_is_found_by_the_next_sync(folder):
    write_memory(folder, "Deploys go out on Tuesdays")
    workspace = imported(folder)
    assert origins("Deploys go out on Tuesdays") == []

    write_session(folder, said("Please note that deploys go out on Tuesdays"))
    sync_workspace(workspace, by=By(ACTOR, timezone.now() + timedelta(minutes=1)))

    assert origins("Deploys go out on Tuesdays") == [(KINDS.PROBABLY_FROM, 0)]


def test_a_fact_is_looked_up_again_only_when_its_age_has_doubled(folder):
    write_memory(folder, "Deploys go out on Tuesdays")
    workspace = imported(folder)
    born = Fact.objects.get().born.created_at
    Fact.objects.update(origins_checked_at=born + timedelta(minutes=10))
    write_session(folder, said("Deploys go out on Tuesdays"))
    sync_workspace(workspace, by=By(ACTOR, born + timedelta(minutes=15)))

    assert not pending_facts(workspace, born + timedelta(minutes=19)).exists()
    assert pending_facts(workspace, born + timedelta(minutes=20)).exists()


def test_a_reworded_fact_is_inferred_again(folder):
    write_memory(folder, "Deploys go out on Tuesdays")
    write_session(folder, said("Deploys go out on Tuesdays"), said("No: deploys go out on Wednesdays at noon"))
    workspace = imported(folder)

    write_memory(folder, "Deploys go out on Wednesdays at noon")
    sync_workspace(workspace, by=By(ACTOR, timezone.now()))

    assert origins("Deploys go out on Wednesdays at noon")[0] == (KINDS.PROBABLY_FROM, 1)


def test_inferring_twice_changes_nothing(folder):
    write_memory(folder, "Deploys go out on Tuesdays")
    write_session(folder, said("Deploys go out on Tuesdays"))
    workspace = imported(folder)
    before = list(FactSource.objects.values_list("pk", "kind", "entry"))

    infer_origins(workspace, now=timezone.now())

    assert list(FactSource.objects.values_list("pk", "kind", "entry")) == before
    assert not pending_facts(workspace, timezone.now()).exists()


def test_a_text_with_search_syntax_is_searched_as_words(folder):
    fact = 'Config: "values.yaml" -prod OR (staging) session:cli'
    write_memory(folder, fact)
    write_session(folder, said("The config values.yaml is for prod or staging, session cli"))

    imported(folder)

    assert [kind for kind, _ in origins('Config: "values.yaml" -prod OR (staging) session:cli')] == [
        KINDS.PROBABLY_FROM
    ]


def test_the_database_refuses_an_origin_that_does_not_fit_its_kind(folder):
    write_memory(folder, "Deploys go out on Tuesdays")
    write_session(folder, said("Hello"))
    imported(folder)
    fact, entry = Fact.objects.get(), Entry.objects.get()

    for values in ({"kind": KINDS.PROBABLY_FROM}, {"kind": KINDS.WRITTEN_BY, "score": 0.5}, {"kind": "guessed"}):
        with pytest.raises(IntegrityError), transaction.atomic():
            FactSource.objects.create(fact=fact, entry=entry, **values)


def test_check_memory_knows_the_kinds(folder):
    write_memory(folder, "Deploys go out on Tuesdays")
    write_session(folder, said("Hello"))
    imported(folder)
    FactSource.objects.create(fact=Fact.objects.get(), entry=Entry.objects.get(), kind=KINDS.WRITTEN_BY)

    [broken] = check_memory().broken

    assert (broken.invariant, broken.what) == ("facts.origins", "it doesn't fit its kind")


@pytest.mark.slow
@pytest.mark.skipif(not FIXTURES.exists(), reason="the fixtures aren't beside the clone")
@pytest.mark.parametrize("name", ["nanobot-0.1", "nanobot-current", "grip"])
def test_the_true_message_is_usually_first_in_the_fixtures(name):
    score = measure_sample(name)

    assert score.first >= 0.7 * score.facts
    assert score.among_three >= 0.85 * score.facts
    assert score.wrong == 0
    assert check_memory().broken == []
