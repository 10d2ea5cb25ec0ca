"""What a worker looks after in its turns."""

from __future__ import annotations

from threading import Event, Timer

import pytest
from django.utils import timezone
from django_tasks_db.models import DBTaskResult
from pytest_httpserver import HTTPServer

from memoryhub import worker
from sessions_app.models import Run, Session, Summary, WebhookDelivery, Workspace
from sessions_app.services.audit import By
from sessions_app.services.runs import claim_run, request_run, this_worker
from sessions_app.services.webhooks import add_webhook
from tests.hub import NOW, PERSON, add, open_at, talk, turn

pytestmark = pytest.mark.django_db


@pytest.fixture
def session(workspace) -> Session:
    session = open_at(workspace)
    talk(session, 10)
    session.refresh_from_db()
    return session


def test_a_sweep_finds_sessions_over_their_limits(session):
    Workspace.objects.update(max_entries=20)

    worker.sweep(timezone.now())
    worker.sweep(timezone.now())

    assert Run.objects.get().status == "queued"


def test_a_sweep_leaves_workspaces_alone_that_fold_for_themselves(session):
    Workspace.objects.update(max_entries=20, auto_compress=False)

    worker.sweep(timezone.now())

    assert not Run.objects.exists()


def test_a_sweep_finds_what_is_due_for_consolidation_where_a_model_is_set(session, settings):
    Workspace.objects.update(memory_window=20)
    worker.sweep(timezone.now())
    assert not Run.objects.exists()

    settings.MEMORYHUB_LLM_BASE_URL, settings.MEMORYHUB_LLM_MODEL = "http://127.0.0.1:9/v1", "nobody"
    worker.sweep(timezone.now())

    assert Run.objects.get().kind == "consolidation"


def test_a_turn_carries_out_what_waits(session):
    request_run(session, "compression", options={}, by=By(PERSON, timezone.now()))

    assert worker.turn(timezone.now) is True
    assert Run.objects.get().status == "done"
    assert worker.turn(timezone.now) is False


def test_a_sweep_frees_the_run_of_a_dead_worker_and_the_next_turn_does_it(session):
    run, _ = request_run(session, "compression", options={}, by=By(PERSON, NOW))
    claim_run(run.pk, owner=f"{this_worker().rsplit(':', 2)[0]}:999999:gone", now=NOW)

    worker.sweep(timezone.now())
    worker.turn(timezone.now)

    assert Summary.objects.count() == 1


def test_a_turn_sends_what_webhooks_are_due(workspace, settings, httpserver: HTTPServer):
    settings.MEMORYHUB_PRIVATE_HOSTS = frozenset({f"{httpserver.host}:{httpserver.port}"})
    httpserver.expect_request("/hook").respond_with_data("", status=204)
    add_webhook(
        workspace, httpserver.url_for("/hook"), [], allowed=settings.MEMORYHUB_PRIVATE_HOSTS, by=By(PERSON, NOW)
    )
    add(open_at(workspace), turn(0))

    assert worker.turn(timezone.now) is True
    assert WebhookDelivery.objects.get().status == "sent"


def test_a_loop_goes_on_after_an_error_and_ends_when_it_is_told(session, monkeypatch, caplog):
    calls = []

    def turn(_now):
        calls.append(1)
        raise ZeroDivisionError

    stopping = Event()
    monkeypatch.setattr(worker, "turn", turn)
    monkeypatch.setattr(worker, "IDLE_SECONDS", 0.01)
    monkeypatch.setattr(worker.connection, "close", lambda: None)
    monkeypatch.setattr(worker, "close_old_connections", lambda: None)
    Timer(0.2, stopping.set).start()

    worker.look_after(stopping)

    assert len(calls) > 1
    assert "a turn of the worker failed" in caplog.text
    assert not DBTaskResult.objects.exists()
