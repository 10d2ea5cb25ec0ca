"""The worker's turns, sweeps and loops."""

from __future__ import annotations

from dataclasses import replace
from threading import Event, Thread, Timer

import pytest
from django.utils import timezone
from pytest_httpserver import HTTPServer

from memoryhub import sweeps, worker
from memoryhub.job_handlers import KINDS
from memoryhub.jobs.queue import request_job
from memoryhub.models import Job
from memoryhub.processes import this_process
from sessions_app.models import Run, Summary, WebhookDelivery, Workspace
from sessions_app.services.audit import By
from sessions_app.services.runs import claim_run, request_run
from sessions_app.services.webhooks import add_webhook
from tests.hub import NOW, PERSON, add, open_at, run_jobs, turn

pytestmark = pytest.mark.django_db


def test_a_sweep_finds_sessions_over_their_limits(session):
    Workspace.objects.update(max_entries=20)

    sweeps.request_due(timezone.now())
    sweeps.request_due(timezone.now())

    assert Run.objects.get().status == "queued"


def test_a_sweep_skips_workspaces_without_auto_compression(session):
    Workspace.objects.update(max_entries=20, auto_compress=False)

    sweeps.request_due(timezone.now())

    assert not Run.objects.exists()


def test_a_sweep_requests_due_consolidations_if_a_model_is_set(session, settings):
    Workspace.objects.update(memory_window=20)
    sweeps.request_due(timezone.now())
    assert not Run.objects.exists()

    settings.MEMORYHUB_LLM_BASE_URL, settings.MEMORYHUB_LLM_MODEL = "http://127.0.0.1:49151/v1", "nobody"
    sweeps.request_due(timezone.now())

    assert Run.objects.get().kind == "consolidation"


def test_a_turn_executes_waiting_runs(session):
    request_run(session, "compression", options={}, by=By(PERSON, timezone.now()))

    assert worker.do_next_run(timezone.now) is True
    assert Run.objects.get().status == "done"
    assert worker.do_next_run(timezone.now) is False


def test_the_run_of_a_dead_worker_is_retried(session):
    run, _ = request_run(session, "compression", options={}, by=By(PERSON, NOW))
    claim_run(run.pk, owner=f"{this_process().rsplit(':', 2)[0]}:999999:gone", now=NOW)

    worker._free_runs(timezone.now())
    worker.do_next_run(timezone.now)

    assert Summary.objects.count() == 1


def test_a_turn_sends_due_webhook_deliveries(workspace, settings, httpserver: HTTPServer):
    settings.MEMORYHUB_PRIVATE_HOSTS = frozenset({f"{httpserver.host}:{httpserver.port}"})
    httpserver.expect_request("/hook").respond_with_data("", status=204)
    add_webhook(
        workspace, httpserver.url_for("/hook"), [], allowed=settings.MEMORYHUB_PRIVATE_HOSTS, by=By(PERSON, NOW)
    )
    add(open_at(workspace), turn(0))

    run_jobs()

    assert WebhookDelivery.objects.get().status == "sent"


def test_a_loop_survives_errors_and_stops_on_request(session, monkeypatch, caplog):
    calls = []

    def turn(_now):
        calls.append(1)
        raise ZeroDivisionError

    stopping = Event()
    monkeypatch.setattr(worker, "do_next_run", turn)
    monkeypatch.setattr(worker, "IDLE_SECONDS", 0.01)
    monkeypatch.setattr(worker.connection, "close", lambda: None)
    monkeypatch.setattr(worker, "close_old_connections", lambda: None)
    Timer(0.2, stopping.set).start()

    worker.carry_out_runs(stopping)

    assert len(calls) > 1
    assert "the worker's loop failed" in caplog.text


@pytest.mark.slow
@pytest.mark.postgres
@pytest.mark.django_db(transaction=True)
def test_a_long_job_does_not_delay_other_lanes(workspace, monkeypatch):
    stopping, sent = Event(), Event()
    monkeypatch.setattr(worker, "IDLE_SECONDS", 0.01)
    monkeypatch.setitem(KINDS, "export", replace(KINDS["export"], carry_out=lambda *_: {"sent": sent.wait(20)}))
    monkeypatch.setitem(
        KINDS, "rebuild", replace(KINDS["rebuild"], lane="other", carry_out=lambda *_: sent.set() or {})
    )
    export, _ = request_job("export", workspace, {}, by=By(PERSON, timezone.now()))
    request_job("rebuild", None, {}, by=By(PERSON, timezone.now()))
    loop = Thread(target=worker.carry_out_jobs, args=(stopping,))
    loop.start()
    while Job.objects.get(pk=export.pk).is_live:
        stopping.wait(0.05)
    stopping.set()
    loop.join()

    assert Job.objects.get(pk=export.pk).result == {"sent": True}


def test_recurring_jobs_are_queued_once(workspace):
    worker.do_housekeeping(timezone.now())
    worker.do_housekeeping(timezone.now())

    assert sorted(Job.objects.values_list("kind", flat=True)) == ["pruning", "sweep"]
