from collections import Counter
from datetime import date, timedelta

import pytest
from django.utils import timezone

from knowledge_app.models import (
    Concern,
    Fact,
    HeldChange,
    HeldRow,
    HistoryEntry,
    KnowledgeEntry,
    MemoryDocument,
    MemoryRevision,
    Observation,
    Term,
)
from knowledge_app.services.documents.delivery import undelivered_documents
from knowledge_app.services.documents.origins import line_origins
from memoryhub.demo import WRITERS, write_agent, write_demo
from memoryhub.demo.building import demo_folder
from memoryhub.demo.script import edited
from memoryhub.integrity import check_memory
from memoryhub.lib.files.safe_folder import Folder
from memoryhub.lib.layouts.detect import detect
from memoryhub.lib.layouts.read import read_folder
from memoryhub.lib.layouts.records import SessionRecord
from memoryhub.models import AccessRecord, Job
from sessions_app.models import AuditRecord, Entry, Run, Workspace
from tests.hub import run_jobs

TODAY = date(2026, 3, 20)
LAYOUTS = {"Atlas": "nanobot", "Pilot": "grip", "Forge": "grid", "Desk": "agterm"}


def test_the_demo_is_deterministic_for_a_day(tmp_path):
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


def contents(folder):
    return {str(file.relative_to(folder)): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


@pytest.mark.parametrize("name", LAYOUTS)
def test_an_earlier_folder_has_the_beginning_of_the_same_story(name, tmp_path):
    for offset in (-84, -9, 0):
        write_agent(name, tmp_path / str(offset), today=TODAY, offset=offset)

    texts = [b"".join(contents(tmp_path / str(offset)).values()) for offset in (-84, -9, 0)]
    assert 0 < len(texts[0]) < len(texts[1]) < len(texts[2])


def test_edits_replace_remove_and_append_lines():
    text = "# A\n\n- one\n- two\n\n# B\n\n- three\n"

    changed = edited(text, ["- - one => - 1", "- - two =>", "+ A | - new", "+ B | - last", "+ C | - more"])

    assert changed == "# A\n\n- 1\n- new\n\n# B\n\n- three\n- last\n\n# C\n\n- more\n"


@pytest.mark.slow
@pytest.mark.postgres
@pytest.mark.django_db
def test_the_command_fills_every_page_and_is_idempotent(command):
    """One test, because building the demo takes seconds."""
    first = command("demo")
    check_variety()
    check_origins()
    second = command("demo")

    assert [row["workspace"] for row in first["workspaces"]] == ["atlas", "pilot", "forge", "desk"]
    assert all(row["added"] == {} for row in second["workspaces"])
    assert Workspace.objects.count() == 4
    assert 2_700 < Entry.objects.count() < 3_300
    assert set(KnowledgeEntry.objects.values_list("category", flat=True)) == set(KnowledgeEntry.Category.values)
    assert set(Observation.objects.values_list("category", flat=True)) == set(Observation.Category.values)
    assert HistoryEntry.objects.filter(is_archived=True).exists()
    assert Term.objects.filter(relations__isnull=False).exists()
    assert not HeldRow.objects.exists()
    assert check_memory().broken == []


def check_variety() -> None:
    now = timezone.now()
    kinds = Counter(Run.objects.filter(status="done").values_list("kind", flat=True))
    assert not Run.objects.exclude(status="done").exists()
    assert kinds["compression"] >= 15
    assert kinds["consolidation"] >= 8
    assert kinds["scan"] == 12
    assert kinds["edit"] >= 3
    poisoned, conflict = HeldChange.objects.filter(status=HeldChange.Status.PENDING).order_by("workspace__slug")
    assert (poisoned.workspace.slug, conflict.workspace.slug) == ("atlas", "pilot")
    assert "proposed by an agent" in poisoned.flags
    assert len(poisoned.flags) >= 3
    assert [row.workspace.slug for row in undelivered_documents(Workspace.objects.all())].count("atlas") == 1
    assert AccessRecord.objects.filter(token__isnull=False).count() > 100
    assert AccessRecord.objects.filter(at__gt=now).count() == 0
    assert AuditRecord.objects.filter(at__gt=now).count() == 0
    assert Concern.objects.filter(kind="duplicate").count() >= 3
    assert Fact.objects.filter(pinned=True).exists()
    assert MemoryRevision.objects.filter(document__workspace__slug="desk").count() >= 5
    assert MemoryRevision.objects.earliest("created_at").created_at < now - timedelta(days=80)


def check_origins() -> None:
    documents = MemoryDocument.objects.select_related("head")
    origins = [origin for document in documents for origin in line_origins(document)]
    assert len(origins) == sum(document.head.content.count("\n") + 1 for document in documents)
    assert {"file", "run"} <= {origin.source for origin in origins}


@pytest.mark.django_db
def test_the_button_queues_one_job(admin_client, monkeypatch):
    calls = []
    monkeypatch.setattr("memoryhub.job_handlers.build_demo", lambda **options: calls.append(options) or [])
    for _ in range(2):
        assert admin_client.post("/demo/").status_code == 302

    run_jobs()

    [job] = Job.objects.filter(kind="demo")
    assert (job.status, len(calls)) == ("done", 1)


@pytest.mark.django_db
def test_a_demo_that_exists_is_not_built_again(admin_client):
    for name in WRITERS:
        Workspace.objects.create(name=name, slug=name.lower(), path=str(demo_folder() / name.lower()))

    html = admin_client.post("/demo/", follow=True).content.decode()

    assert "The demo&#x27;s workspaces already exist." in html
    assert not Job.objects.exists()


def offers(client) -> set[bool]:
    """Return whether the import page and the palette offer the demo."""
    return {'action="/demo/"' in client.get(path).text for path in ("/import/", "/palette/?q=open+the+demo")}


@pytest.mark.django_db
def test_the_demo_is_offered_until_it_exists(admin_client):
    assert offers(admin_client) == {True}

    admin_client.post("/demo/")
    assert offers(admin_client) == {False}

    Job.objects.update(status="failed")
    assert offers(admin_client) == {True}

    for name in WRITERS:
        Workspace.objects.create(name=name, slug=name.lower(), path=str(demo_folder() / name.lower()))
    assert offers(admin_client) == {True}  # to complete it
    Job.objects.update(status="done")
    assert offers(admin_client) == {False}


@pytest.mark.django_db
def test_only_hub_operators_open_the_demo(stranger_client):
    assert stranger_client.post("/demo/").status_code == 403
