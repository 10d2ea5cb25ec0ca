"""The job queue and its handlers."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from zipfile import ZipFile

import pytest
from django.core.files.storage import default_storage
from django.db import connection
from django.db.models.functions import Now
from django.utils import timezone

from memoryhub.job_handlers import KINDS
from memoryhub.jobs import progress
from memoryhub.jobs.downloads import discard_downloads, find_file, remove_old_downloads
from memoryhub.jobs.listing import job_item, live_count
from memoryhub.jobs.queue import cancel_job, correct_due_times, do_next_job, request_job, resume_jobs, waiting_jobs
from memoryhub.lib.search.index_maintenance import index_problems
from memoryhub.lib.search.operations import indexes
from memoryhub.models import Job, Process
from memoryhub.processes import _started_at, registered, this_home, this_process
from sessions_app.models import AuditRecord, Run, Session, Summary, Workspace
from sessions_app.services.audit import By
from tests.hub import PERSON, raises_code

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("home")]
ELSEWHERE = "another-host:4711:0"  # a process of another machine


def ask(kind: str, workspace: Workspace | None = None, **options) -> Job:
    return request_job(kind, workspace, options, by=By(PERSON, timezone.now()))[0]


def done(job: Job) -> Job:
    assert do_next_job(clock=timezone.now)
    return Job.objects.select_related("workspace").get(pk=job.pk)


def stored_file(job: Job) -> Path:
    return Path(default_storage.path(find_file(job)))


def cancelled_at(monkeypatch, job: Job, step: int) -> Job:
    """Run a job that is cancelled just before its n-th save."""
    save = progress.Progress.save
    saves = 0

    def save_and_count(self, **values):
        nonlocal saves
        saves += 1
        if saves == step:
            cancel_job(job, by=By(PERSON, timezone.now()))
        save(self, **values)

    monkeypatch.setattr(progress.Progress, "save", save_and_count)
    return done(job)


def killed(job: Job) -> None:
    """Leave a job running with a dead process, as after SIGKILL."""
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as worker:
        owner = this_process().rsplit(":", 2)[0] + f":{worker.pid}:{_started_at(worker.pid)}"
        running_at(job, owner)
        assert resume_jobs(timezone.now()) == []  # it is alive
        os.kill(worker.pid, signal.SIGKILL)


def running_at(job: Job, owner: str) -> None:
    number = Job.objects.get(pk=job.pk).fencing_number + 1
    values = {"status": "running", "lease_owner": owner, "fencing_number": number, "steps_done": 1}
    Job.objects.filter(pk=job.pk).update(started_at=timezone.now(), **values)


def test_identical_requests_share_one_job(workspace):
    first = ask("export", workspace, layout="hub")

    assert ask("export", workspace, layout="hub") == first
    assert ask("export", workspace, layout="nanobot") != first
    assert AuditRecord.objects.filter(action="job.requested").count() == 2


def test_an_exported_file_is_kept_for_a_day(due, home):
    job = done(ask("export", due, layout="hub"))

    file = stored_file(job)
    assert (job.status, job.file_name) == ("done", "atlas-hub.zip")
    assert file.stat().st_mode & 0o777 == 0o600
    assert "memoryhub.json" in ZipFile(file).namelist()[0]
    assert job.result["written"]["sessions"] == 2
    assert remove_old_downloads(timezone.now()) == 0
    assert remove_old_downloads(timezone.now() + timedelta(days=2)) == 1
    assert find_file(Job.objects.get()) == ""


def test_a_partial_file_of_a_killed_worker_is_removed(due, home):
    job = ask("export", due, layout="hub")
    (home / "downloads").mkdir()
    (home / "downloads" / f"job-{job.pk}.part").write_text("half")

    assert stored_file(done(job)).name == f"job-{job.pk}.out"
    assert len(list((home / "downloads").iterdir())) == 1


def test_forgetting_deletes_exported_files(due):
    job = done(ask("export", due, layout="hub"))
    file = stored_file(job)

    discard_downloads(due, timezone.now())

    assert not file.exists()


def test_a_cancelled_export_leaves_no_file(due, home, monkeypatch):
    job = cancelled_at(monkeypatch, ask("export", due, layout="hub"), step=3)

    assert job.status == "cancelled"
    assert list((home / "downloads").iterdir()) == []


def test_all_due_sessions_are_compressed(due):
    job = done(ask("compression", due, method="heuristic"))

    assert job.result == {"counts": {"done": 2}}
    assert Summary.objects.count() == 2
    assert done(ask("compression", due, method="heuristic")).result == {"counts": {"nothing_due": 2}}


def test_only_chosen_sessions_are_compressed(due):
    done(ask("compression", due, method="heuristic", sessions=["cli:two"]))

    assert Summary.objects.get().session.key == "cli:two"


def test_a_cancelled_compression_keeps_finished_sessions(due, monkeypatch):
    job = cancelled_at(monkeypatch, ask("compression", due, method="heuristic"), step=3)

    assert (job.status, job.result["counts"]) == ("cancelled", {"done": 1})
    assert Summary.objects.count() == 1
    assert not Run.objects.filter(status__in=("queued", "running")).exists()


def test_cancelling_a_job_cancels_its_current_run(due):
    job = ask("compression", due)
    session = Session.objects.first()
    run = Run.objects.create(workspace=due, session=session, kind="compression", status="running")
    Job.objects.update(status="running", result={"run": run.pk})

    cancel_job(job, by=By(PERSON, timezone.now()))

    run.refresh_from_db()
    assert run.status == "cancelled"


def test_rebuilt_indexes_match_their_rows_even_if_cancelled(due, monkeypatch):
    whole = done(ask("rebuild"))
    part = cancelled_at(monkeypatch, ask("rebuild"), step=4)

    assert len(whole.result["indexes"]) == len(indexes(connection))
    assert part.status == "cancelled"
    assert [wrong for index in indexes(connection) for wrong in index_problems(connection, index)] == []


@pytest.mark.parametrize("kind", ["export", "compression", "rebuild"])
def test_a_job_of_a_killed_worker_is_resumed(kind, due, home):
    job = ask(kind, due if kind != "rebuild" else None)
    killed(job)

    assert resume_jobs(timezone.now()) == [job]
    assert do_next_job(clock=timezone.now)

    job.refresh_from_db()
    assert (job.status, job.takeover_count) == ("done", 1)
    assert list(AuditRecord.objects.filter(object_kind="job").order_by("id").values_list("action", flat=True)) == [
        "job.requested",
        "job.interrupted",
        "job.finished",
    ]


def test_a_job_of_another_machine_is_resumed_after_its_lease_expires(workspace):
    job = ask("export", workspace)
    process = Process.objects.create(name=ELSEWHERE, kind="worker", host="another-host", pid=4711, seen_at=Now())
    running_at(job, ELSEWHERE)

    assert resume_jobs(timezone.now()) == []
    Process.objects.filter(pk=process.pk).update(seen_at=Now() - timedelta(seconds=11))
    assert resume_jobs(timezone.now()) == [job]


def test_a_job_whose_end_was_not_saved_is_resumed_by_its_own_worker(workspace):
    job = ask("export", workspace)
    running_at(job, this_process())

    assert resume_jobs(timezone.now()) == [job]


def test_a_job_that_needs_files_of_another_machine_is_not_claimed(workspace):
    job, _ = request_job("backup_check", None, {"name": "x"}, by=By(PERSON, timezone.now()), home="other:/hub")

    assert not do_next_job(clock=timezone.now)
    assert job_item(job, timezone.now() + timedelta(minutes=1)).is_stranded


def test_a_recurring_job_is_queued_again(monkeypatch):
    job = ask("sweep")

    done(job)

    job.refresh_from_db()
    assert (job.status, job.not_before > timezone.now()) == ("queued", True)
    assert not AuditRecord.objects.exists()


def test_what_a_wrong_clock_queued_is_due_after_its_correction(workspace):
    now, wrong = timezone.now(), timezone.now() + timedelta(days=400)
    sweep, export, waiting = ask("sweep"), ask("export", workspace), ask("rebuild", workspace)
    Job.objects.filter(pk=sweep.pk).update(not_before=now + timedelta(hours=2))
    Job.objects.filter(pk=export.pk).update(not_before=wrong)
    Job.objects.filter(pk=waiting.pk).update(not_before=now + timedelta(hours=1))
    run = Run.objects.create(workspace=workspace, kind=Run.Kind.EMBEDDING, not_before=wrong, created_at=wrong)

    correct_due_times(now)

    assert set(waiting_jobs(now)) == {sweep, export}
    run.refresh_from_db()
    assert run.not_before == now


def test_a_job_that_lost_three_workers_fails(workspace, home):
    job = ask("export", workspace)
    for _ in range(4):
        killed(job)
        resume_jobs(timezone.now())

    job.refresh_from_db()
    assert (job.status, job.error_code) == ("failed", "interrupted")


def test_a_worker_that_lost_its_job_cannot_write_to_it(due, monkeypatch):
    job = ask("compression", due, method="heuristic")

    def lose(*_args):
        Job.objects.update(fencing_number=7)

    monkeypatch.setattr("memoryhub.job_handlers.due_sessions", lambda _workspace: lose() or Session.objects.all())

    assert done(job).status == "running"
    assert not Summary.objects.exists()


def test_a_stopping_worker_returns_its_job_to_the_queue(due):
    job = ask("export", due)

    assert do_next_job(clock=timezone.now, is_stopping=lambda: True)
    job.refresh_from_db()
    assert job.status == "queued"


def test_a_queued_job_is_cancelled_at_once_and_a_finished_one_is_refused(workspace):
    job = ask("export", workspace)

    assert cancel_job(job, by=By(PERSON, timezone.now())).status == "cancelled"
    with raises_code("job_not_fitting"):
        cancel_job(job, by=By(PERSON, timezone.now()))


def test_a_failed_job_has_an_error_message(workspace):
    job = done(ask("export", workspace, layout="grid"))

    assert (job.status, job.error_code) == ("failed", "export_refused")
    assert "Choose another layout" in job.error


def test_an_unexpected_error_fails_the_job_but_not_the_worker(workspace, monkeypatch):
    monkeypatch.setattr("memoryhub.job_handlers.rebuild_indexes", lambda *_args, **_options: 1 / 0)

    assert "ZeroDivisionError" in done(ask("rebuild")).error


def test_time_left_is_estimated_from_finished_steps(workspace):
    now = timezone.now()
    job = ask("export", workspace)
    running_at(job, this_process())
    Job.objects.update(started_at=now - timedelta(seconds=30), steps_done=300, steps_total=400)
    job.refresh_from_db()

    assert job_item(job, now).seconds_left == 10
    job.steps_done = 10
    assert job_item(job, now).seconds_left is None


@pytest.mark.django_db(transaction=True)
def test_a_queued_job_without_a_worker_is_stranded(workspace, home):
    later = timezone.now() + timedelta(minutes=1)
    job = ask("export", workspace)

    assert job_item(job, later).is_stranded
    with registered("worker"):
        assert Process.objects.get().home == this_home()
        assert not job_item(job, later).is_stranded
    assert not Process.objects.exists()


def test_live_count_runs_one_query(workspace, django_assert_num_queries):
    ask("export", workspace)
    ask("rebuild")

    with django_assert_num_queries(1):
        assert live_count(Workspace.objects.all(), of_hub=True) == 2
    assert live_count(Workspace.objects.all(), of_hub=False) == 1


def test_the_command_lists_and_cancels(workspace, command):
    job = ask("export", workspace)

    (one,) = command("work")["work"]
    assert (one["name"], one["workspace"]) == (f"job-{job.pk}", "atlas")
    assert command("work", "cancel", str(job.pk))["work"][0]["status"] == "cancelled"
    assert command("work", "show", "run-99", status=1)["error"]["code"] == "not_found"


@pytest.mark.slow
@pytest.mark.postgres
@pytest.mark.django_db(transaction=True)
def test_an_export_continues_while_others_write(due, monkeypatch):
    save = progress.Progress.save

    def save_beside_a_writer(self, **values):
        with ThreadPoolExecutor(1) as pool:
            pool.submit(lambda: Workspace.objects.update(name="Elsewhere")).result()
            pool.submit(lambda: connection.close()).result()
        save(self, **values)

    monkeypatch.setattr(progress.Progress, "save", save_beside_a_writer)

    assert done(ask("export", due, layout="hub")).status == "done"


def test_an_export_cancelled_after_its_last_step_leaves_no_file(due, home, monkeypatch):
    job, export = ask("export", due, layout="hub"), KINDS["export"]

    def export_and_forget(*asked):
        made = export.carry_out(*asked)
        discard_downloads(due, timezone.now())  # as forgetting does
        return made

    monkeypatch.setitem(KINDS, "export", replace(export, carry_out=export_and_forget))
    ended = done(job)

    assert ended.status == Job.Status.CANCELLED
    assert find_file(ended) == ""
    assert list((home / "downloads").iterdir()) == []
