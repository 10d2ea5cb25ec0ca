"""Imports as jobs: progress, cancelling and resuming."""

import pytest
from django.core.management import call_command
from django.utils import timezone

from memoryhub.jobs import progress
from memoryhub.jobs.labels import work_row
from memoryhub.jobs.listing import job_item
from memoryhub.jobs.queue import do_next_job, resume_jobs
from memoryhub.sync.import_requests import cancel_import, request_import, run_import
from sessions_app.models import AuditRecord, ImportReport, Session, SourceFile
from sessions_app.services.audit import By
from tests.hub import PERSON
from tests.jobs.test_queue import cancelled_at, killed

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("home")]


@pytest.fixture
def agent(tmp_path):
    folder = tmp_path / "agents" / "agent"
    (folder / "sessions").mkdir(parents=True)
    for number in range(4):
        lines = f'{{"_type": "metadata", "key": "cli:{number}"}}\n{{"role": "user", "content": "hello {number}"}}\n'
        (folder / "sessions" / f"cli_{number}.jsonl").write_text(lines)
    return folder


def test_a_finished_import_counts_the_files_that_it_read(agent):
    (agent / "memory").mkdir()
    for number in range(3):
        (agent / "memory" / f"picture{number}.png").write_bytes(b"no memory")
    report = ImportReport.objects.create(path=str(agent))

    run_import(report, by=By(PERSON, timezone.now()))

    report.refresh_from_db()
    assert (report.files_done, report.file_count) == (4, 4)
    row = work_row(job_item(report.job, timezone.now()), may_decide=True)
    assert row.result.startswith("4 files read · ")


def test_a_cancelled_import_keeps_read_files_and_the_next_reads_the_rest(agent, monkeypatch, django_user_model):
    user = django_user_model.objects.create_user("olga")
    first = ImportReport.objects.create(path=str(agent), requested_by=user)
    run_import(first, by=By(PERSON, timezone.now()))
    (agent / "sessions" / "cli_0.jsonl").write_text('{"role": "user", "content": "anew"}\n')
    second = request_import(path=str(agent), user=user)

    cancelled_at(monkeypatch, second.job, step=1)

    second.refresh_from_db()
    assert second.status == "cancelled"
    assert second.error == "Cancelled after 1 of 4 files. Everything read so far is kept. Import again to continue."
    assert not SourceFile.objects.filter(status="missing").exists()


def test_a_queued_import_is_cancelled_at_once(agent, django_user_model):
    report = request_import(path=str(agent), user=django_user_model.objects.create_user("olga"))

    cancel_import(report, by=By(PERSON, timezone.now()))

    assert not do_next_job(clock=timezone.now)
    report.refresh_from_db()
    assert (report.status, Session.objects.count()) == ("cancelled", 0)
    assert AuditRecord.objects.get(action="import.cancelled").object_id == str(report.pk)


def test_a_folder_is_imported_by_one_job_at_a_time(agent, django_user_model):
    user = django_user_model.objects.create_user("olga")

    assert request_import(path=str(agent), user=user) == request_import(path=str(agent), user=user)
    assert ImportReport.objects.count() == 1


def test_a_killed_import_is_resumed_once_and_then_fails(agent, home, django_user_model):
    report = request_import(path=str(agent), user=django_user_model.objects.create_user("olga"))
    killed(report.job)

    assert resume_jobs(timezone.now()) == [report.job]
    assert do_next_job(clock=timezone.now)
    report.refresh_from_db()
    assert (report.status, report.error_code, Session.objects.count()) == ("done", "", 4)

    killed(report.job)
    resume_jobs(timezone.now())

    report.refresh_from_db()
    assert (report.status, report.error_code) == ("failed", "interrupted")
    assert "Import again to continue" in report.error


def test_ctrl_c_cancels_an_import_and_an_export(agent, due, home, monkeypatch, capsys):
    def interrupt(*_args):
        raise KeyboardInterrupt

    place = home.parent / f"{home.name}-out"
    for command in (["import_workspace", str(agent)], ["export_workspace", "atlas", str(place)], ["rebuild_search"]):
        monkeypatch.setattr(f"memoryhub.management.commands.{command[0]}.progress_bar", lambda _unit: interrupt)
        with pytest.raises(SystemExit) as ended:
            call_command(*command)
        assert ended.value.code == 130

    assert capsys.readouterr().err.count("Stopped") == 3
    assert ImportReport.objects.get().status == "cancelled"
    assert not place.exists()


def test_the_current_file_is_shown(workspace, agent, monkeypatch):
    report = ImportReport.objects.create(path=str(agent))
    stages, write = [], progress.Progress._write
    monkeypatch.setattr(
        progress.Progress, "_write", lambda self, values: stages.append(values) or write(self, values)
    )

    run_import(report, by=By(PERSON, timezone.now()))

    assert stages[0] == {"steps_done": 1, "steps_total": 4, "stage": "sessions/cli_0.jsonl"}
