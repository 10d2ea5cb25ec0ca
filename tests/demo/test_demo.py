import json
from datetime import date

import pytest
from django.core.management import call_command

from knowledge_app.models import HeldChange, HeldRow, HistoryEntry, KnowledgeEntry, MemoryDocument, Observation, Term
from knowledge_app.services.documents.origins import line_origins
from memoryhub.demo import write_demo
from memoryhub.integrity import check_memory
from memoryhub.lib.layouts.detect import detect
from memoryhub.lib.layouts.read import read_folder
from memoryhub.lib.layouts.records import SessionRecord
from memoryhub.lib.safe_folder import Folder
from sessions_app.models import Entry, Session, Summary, Workspace

TODAY = date(2026, 3, 20)
LAYOUTS = {"Atlas": "nanobot", "Pilot": "grip", "Forge": "grid", "Desk": "agterm"}


def test_the_demo_is_deterministic_for_a_day(tmp_path):
    def contents(folder):
        return {str(file.relative_to(folder)): file.read_bytes() for file in folder.rglob("*") if file.is_file()}

    for name in ("one", "two"):
        write_demo(tmp_path / name, today=TODAY)

    assert contents(tmp_path / "one") == contents(tmp_path / "two")


@pytest.mark.parametrize("name", LAYOUTS)
def test_each_folder_has_its_programs_format_and_one_problem(name, tmp_path):
    folder = write_demo(tmp_path, today=TODAY)[name]

    with Folder(folder) as opened:
        found = detect(opened)
        reads = list(read_folder(opened, found))

    problems = [problem for read in reads for problem in read.problems]
    assert found.layout == LAYOUTS[name]
    assert [problem.outcome for problem in problems] == {
        "Atlas": ["rejected"],
        "Pilot": ["ignored"],
        "Forge": ["rejected", "ignored"],
        "Desk": ["repaired"],
    }[name]


def test_every_tool_result_follows_its_call(tmp_path):
    for folder in write_demo(tmp_path, today=TODAY).values():
        with Folder(folder) as opened:
            sessions = [
                item
                for read in read_folder(opened, detect(opened))
                for item in read.items
                if isinstance(item, SessionRecord)
            ]
        for session in sessions:
            called: set[str] = set()
            for entry in session.entries:
                called |= {call["id"] for call in entry.tool_calls}
                assert not entry.tool_call_id or entry.tool_call_id in called


@pytest.mark.django_db
def test_the_command_fills_every_page_and_is_idempotent(capsys):
    call_command("demo", "--json")
    first = json.loads(capsys.readouterr().out)
    call_command("demo", "--json")
    second = json.loads(capsys.readouterr().out)

    assert [row["workspace"] for row in first["workspaces"]] == ["atlas", "pilot", "forge", "desk"]
    assert all(row["added"] == {} for row in second["workspaces"])
    assert Workspace.objects.count() == 4
    assert Entry.objects.count() > 200
    assert Summary.objects.filter(entry_count__gt=5).count() == 2
    assert Session.objects.filter(last_consolidated__gt=0).count() >= 4
    assert set(KnowledgeEntry.objects.values_list("category", flat=True)) == set(KnowledgeEntry.Category.values)
    assert set(Observation.objects.values_list("category", flat=True)) == set(Observation.Category.values)
    assert HistoryEntry.objects.filter(is_archived=True).exists()
    assert Term.objects.filter(relations__isnull=False).exists()
    [waiting] = HeldChange.objects.filter(status=HeldChange.Status.PENDING)
    assert waiting.workspace.slug == "atlas"
    assert "proposed by an agent" in waiting.flags
    assert len(waiting.flags) >= 3
    assert not HeldRow.objects.exists()
    assert check_memory().broken == []


@pytest.mark.django_db
def test_every_line_of_the_demo_memory_has_an_origin(capsys):
    call_command("demo", "--json")
    documents = MemoryDocument.objects.select_related("head")

    origins = [origin for document in documents for origin in line_origins(document)]

    assert len(origins) == sum(document.head.content.count("\n") + 1 for document in documents)
    assert {origin.source for origin in origins} == {"file"}
