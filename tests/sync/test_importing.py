import json
import os
import shutil
import tarfile
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from threading import Event, Thread, Timer

import pytest
from django.core.management import call_command
from django.db import connection

from knowledge_app.models import HistoryEntry, KeyValue, MemoryDocument
from memoryhub.jobs.queue import resume_jobs
from memoryhub.lib.files.safe_folder import FolderMissing
from memoryhub.models import Job
from memoryhub.sync.import_requests import run_import
from memoryhub.sync.importing import ImportRefused, import_lock, import_workspace
from sessions_app.models import AuditRecord, ImportReport, Session, SourceFile, Workspace
from sessions_app.services.audit import Actor, By

pytestmark = pytest.mark.django_db
NOW = datetime(2026, 4, 1, tzinfo=UTC)
ACTOR = Actor("command", "test")
SAMPLE = Path(__file__).resolve().parent.parent / "samples" / "nanobot-0.1"


def take(path: Path, **options):
    return import_workspace(path, by=By(ACTOR, options.pop("now", NOW)), **options)


@pytest.fixture
def forge(tmp_path: Path) -> Path:
    folder = tmp_path / "forge.v1"
    folder.mkdir()
    (folder / "kv.json").write_text('{"theme": "dark"}')
    return folder


def test_a_dry_run_reports_everything_and_changes_nothing():
    tally = take(SAMPLE, dry_run=True).tally

    assert (tally.added["entries"], tally.added["sessions"], tally.added["history"]) == (7, 2, 3)
    assert [problem.outcome for problem in tally.problems].count("rejected") == 1
    assert not Workspace.objects.exists()
    assert not AuditRecord.objects.exists()


def test_a_dry_run_of_a_known_folder_counts_what_is_new(forge):
    take(forge)
    (forge / "kv.json").write_text('{"theme": "light", "new": "1"}')

    tally = take(forge, dry_run=True).tally

    assert (+tally.added, +tally.updated) == ({"key_values": 1}, {"key_values": 1})
    assert KeyValue.objects.get().value == "dark"


def test_the_path_is_the_identity_and_names_make_a_slug(forge, tmp_path):
    first = take(forge).workspace
    again = take(forge, name="Another name").workspace
    other = tmp_path / "x" / "forge.v1"
    other.mkdir(parents=True)
    (other / "kv.json").write_text("{}")

    assert (first.slug, first.name) == ("forge-v1", "forge.v1")
    assert again == first
    assert take(other).workspace.slug == "forge-v1-2"
    assert take(SAMPLE, name="工具").workspace.slug == "workspace"


def test_settings_come_from_the_agents_own_configuration():
    workspace = take(SAMPLE).workspace

    assert (workspace.layout, workspace.layout_version, workspace.memory_window) == ("nanobot", "0.1", 20)


def test_a_missing_folder_is_flagged_and_nothing_is_lost(forge):
    take(forge)
    (forge / "kv.json").rename(forge.parent / "kv.json")
    forge.rmdir()

    with pytest.raises(FolderMissing):
        take(forge)

    assert Workspace.objects.get().unavailable_since == NOW
    assert KeyValue.objects.count() == 1


def test_a_folder_that_comes_back_is_available_again(forge):
    take(forge)
    Workspace.objects.update(unavailable_since=NOW)

    take(forge)

    assert Workspace.objects.get().unavailable_since is None


def test_a_missing_file_is_reported_and_kept(forge):
    (forge / "semantic_graph.json").write_text('{"meta": {}, "terms": {}}')
    take(forge)
    (forge / "kv.json").unlink()

    tally = take(forge, now=NOW + timedelta(hours=1)).tally

    assert [(problem.file, problem.outcome) for problem in tally.problems] == [("kv.json", "held")]
    assert SourceFile.objects.get(path="kv.json").status == "missing"
    assert KeyValue.objects.count() == 1


def test_the_hubs_own_folder_is_refused(settings):
    with pytest.raises(ImportRefused):
        take(settings.MEMORYHUB_HOME)


def test_an_import_waits_while_the_folder_is_synced(forge):
    is_held, is_over = Event(), Event()

    def sync() -> None:
        with closing(connection), import_lock(forge):
            is_held.set()
            is_over.wait()

    thread = Thread(target=sync)
    thread.start()
    is_held.wait()
    with pytest.raises(ImportRefused, match="already being imported"), import_lock(forge, timeout=0):
        pass
    Timer(0.2, is_over.set).start()

    assert +take(forge).tally.added == {"key_values": 1}
    thread.join()


def test_an_archived_folder_is_imported(forge, tmp_path):
    with tarfile.open(tmp_path / "forge.tar.gz", "w:gz") as archive:
        archive.add(forge, "forge")

    assert +take(tmp_path / "forge.tar.gz").tally.added == {"key_values": 1}


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE])
def test_an_archive_with_links_or_devices_is_refused(kind, tmp_path):
    with tarfile.open(tmp_path / "bad.tar.gz", "w:gz") as archive:
        item = tarfile.TarInfo("kv.json")
        item.type, item.linkname = kind, "/etc/passwd"
        archive.addfile(item)

    with pytest.raises(Exception, match="link or a device"):
        take(tmp_path / "bad.tar.gz")


def test_progress_counts_files():
    seen = []

    take(SAMPLE, progress=lambda done, count, _file: seen.append((done, count)))

    assert seen[-1] == (4, 4)


def test_a_report_keeps_the_outcome_and_its_problems():
    report = ImportReport.objects.create(path=str(SAMPLE))

    run_import(report, by=By(ACTOR, NOW))

    report.refresh_from_db()
    assert (report.status, report.added["entries"], report.problem_count) == ("done", 7, 3)
    assert bytes(report.problems.get(outcome="rejected").raw) == b'{"role": "assistant", "con'


def test_a_failed_report_says_why(tmp_path):
    report = ImportReport.objects.create(path=str(tmp_path / "gone"))

    with pytest.raises(FolderMissing):
        run_import(report, by=By(ACTOR, NOW))

    report.refresh_from_db()
    assert (report.status, report.error_code) == ("failed", "folder_missing")


def test_an_interrupted_import_closes_its_report():
    report = ImportReport.objects.create(path="x")
    options = {"report": report.pk, "once": True}
    Job.objects.create(kind="import", status="running", options=options, lease_owner="elsewhere:1:gone")

    assert len(resume_jobs(NOW)) == 1
    report.refresh_from_db()
    assert (report.status, report.error_code) == ("failed", "interrupted")


def test_the_command_prints_one_document_or_one_error(capsys, tmp_path):
    call_command("import_workspace", str(SAMPLE), "--json")
    document = json.loads(capsys.readouterr().out)

    with pytest.raises(SystemExit) as status:
        call_command("import_workspace", str(tmp_path), "--json")
    error = json.loads(capsys.readouterr().out)

    assert document["added"]["entries"] == 7
    assert document["problems"][0].keys() >= {"file", "line", "what", "action"}
    assert status.value.code == 1
    assert error["error"]["code"] == "unknown_layout"


def test_commands_escape_control_characters(capsys, tmp_path):
    (tmp_path / "sessions").mkdir()
    (tmp_path / "sessions" / "a_b.jsonl").write_text(
        '{"_type": "metadata", "key": "a:b"}\n{"role": "user", "content": "\\u001b[31mred"}\n'
    )
    take(tmp_path, name="w")

    call_command("context", "w", "a:b")

    assert "\x1b" not in capsys.readouterr().out


def test_commands_read_the_workspace_of_the_pages(capsys):
    take(SAMPLE, name="Sample")

    call_command("document", "sample", "--json")
    document = json.loads(capsys.readouterr().out)
    call_command("context", "Sample", "cli:direct", "--max-messages", "1", "--json")
    context = json.loads(capsys.readouterr().out)
    call_command("stats", "--json")
    [stats] = json.loads(capsys.readouterr().out)["workspaces"]

    assert document["revisions"][0].keys() == {"number", "author", "reason", "created_at", "hash"}
    assert "Ana leads" in document["content"]
    assert [message["role"] for message in context["messages"]] == ["user", "user"]
    assert stats["entries"] == sum(Session.objects.values_list("entry_count", flat=True))


def test_an_unexpected_error_closes_the_report_too(monkeypatch):
    def fail(*_args, **_options):
        raise ZeroDivisionError

    monkeypatch.setattr("memoryhub.sync.importing.import_conversation", fail)
    report = ImportReport.objects.create(path=str(SAMPLE))

    with pytest.raises(ZeroDivisionError):
        run_import(report, by=By(ACTOR, NOW))

    report.refresh_from_db()
    assert (report.status, report.error_code) == ("failed", "import_refused")


def test_an_archive_of_one_part_is_read_from_its_root(tmp_path):
    with tarfile.open(tmp_path / "memory.tgz", "w:gz") as archive:
        archive.add(SAMPLE / "workspace" / "memory", "memory")

    assert take(tmp_path / "memory.tgz").tally.added["documents"] == 1


@pytest.mark.parametrize("name", [b"bad\xff.jsonl", b"tab\tnew\nline.jsonl", b"x" * 240 + b".jsonl"])
def test_unusual_file_names_do_not_stop_an_import(name, tmp_path):
    (tmp_path / "sessions").mkdir()
    for content in (b'{"role": "user", "content": "no metadata"}\n', b"broken"):
        Path(os.fsdecode(os.fsencode(tmp_path / "sessions") + b"/" + name)).write_bytes(content)
        take(tmp_path)

    assert Session.objects.count() == 1
    assert SourceFile.objects.get().path.startswith("sessions/")


def test_a_byte_order_mark_costs_no_record(tmp_path):
    plain, marked = tmp_path / "plain", tmp_path / "marked"
    for folder, mark in ((plain, b""), (marked, b"\xef\xbb\xbf")):
        shutil.copytree(SAMPLE, folder)
        memory = next(folder.rglob("HISTORY.md")).parent
        rows = [
            {"cursor": number, "timestamp": "2026-04-01 10:00", "content": f"entry {number}"} for number in (1, 2)
        ]
        (memory / "history.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        for path in (path for path in folder.rglob("*") if path.is_file()):
            path.write_bytes(mark + path.read_bytes())

    first, second = take(plain), take(marked)

    assert second.tally.added == first.tally.added
    assert second.workspace.memory_window == first.workspace.memory_window == 20
    names = ("key", "title", "last_consolidated", "created_at", "updated_at")
    sessions = [
        list(Session.objects.filter(workspace=one.workspace).order_by("key").values(*names))
        for one in (first, second)
    ]
    assert sessions[0] == sessions[1]


@pytest.mark.parametrize("size", [1_000_001, 5_000_000])
def test_a_document_over_the_limit_is_rejected_and_the_stored_one_kept(tmp_path, size):
    folder = tmp_path / "agent"
    shutil.copytree(SAMPLE, folder)
    take(folder)
    before = MemoryDocument.objects.get(name="MEMORY.md").head
    next(folder.rglob("MEMORY.md")).write_text("- x\n" * (size // 4) + "-")

    problems = [problem for problem in take(folder).tally.problems if problem.file.endswith("MEMORY.md")]

    assert [problem.outcome for problem in problems] == ["rejected"]
    assert MemoryDocument.objects.get(name="MEMORY.md").head == before


def test_an_empty_journal_is_a_problem_only_if_it_had_entries(tmp_path):
    folder = tmp_path / "nanobot"
    shutil.copytree(SAMPLE, folder)
    journal = folder / "workspace" / "memory" / "history.jsonl"
    (folder / "workspace" / "memory" / "HISTORY.md").unlink()
    journal.write_text("")

    def journal_problems(day: int) -> list[str]:
        tally = take(folder, now=NOW + timedelta(days=day)).tally
        return [problem.what for problem in tally.problems if problem.file.endswith("history.jsonl")]

    assert journal_problems(0) == []
    SourceFile.objects.filter(path__endswith="history.jsonl").update(status="held")  # as an earlier version did
    journal.touch()
    assert journal_problems(1) == []
    assert SourceFile.objects.get(path__endswith="history.jsonl").status == "read"
    journal.write_text('{"cursor": 1, "timestamp": "2026-03-01 10:00", "content": "One"}\n')
    assert journal_problems(2) == []
    journal.write_text("")
    assert journal_problems(3) == ["is empty"]
    assert HistoryEntry.objects.count() == 1


def test_a_grid_folder_with_sessions_only_is_imported_once(tmp_path):
    folder = tmp_path / "grid"
    (folder / "sessions").mkdir(parents=True)
    file = folder / "sessions" / "s-1.jsonl"
    file.write_text(
        '{"_type":"header","id":"s-1","workflow_name":"Audit"}\n{"_type":"event","seq":1,"type":"user","content":"Hi"}\n'
    )
    first = take(folder)
    with file.open("a") as out:
        out.write('{"_type":"event","seq":2,"type":"assistant","content":"Hello"}\n')

    assert (first.workspace.layout, first.tally.added["entries"]) == ("grid", 1)
    assert +take(folder).tally.added == {"entries": 1}
    assert Session.objects.get().key == "s-1"
