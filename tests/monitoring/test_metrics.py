"""/metrics: who may read it, and what it says."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from datetime import timedelta
from pathlib import Path

import pytest
from django.db import connection
from django.db.models.functions import Now
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from prometheus_client.parser import text_string_to_metric_families

from memoryhub import asgi
from memoryhub.lib.metrics import process_metrics
from memoryhub.models import Job, Process
from memoryhub.monitoring import figures
from sessions_app.models import SyncState, Webhook, Workspace
from tests.hub import add, open_at

pytestmark = pytest.mark.django_db
ROOT = Path(__file__).resolve().parent.parent.parent
TOKEN = "t" * 40
LABELS = ("route", "method", "status", "kind", "state", "le")


@pytest.fixture
def served(settings) -> Client:
    """A client of a hub that serves metrics, with counters that start at zero."""
    settings.MEMORYHUB_METRICS = True
    process_metrics.cache_clear()
    yield Client()
    process_metrics.cache_clear()


def read(client: Client) -> dict[tuple[str, ...], float]:
    """Return the values by name and labels."""
    response = client.get("/metrics")
    assert response.status_code == 200
    families = text_string_to_metric_families(response.content.decode())
    samples = [one for family in families for one in family.samples]
    return {(one.name, *(one.labels[name] for name in LABELS if name in one.labels)): one.value for one in samples}


def test_metrics_are_off_by_default(client):
    assert client.get("/metrics").status_code == 404


@pytest.mark.parametrize(
    ("token", "headers", "address", "status"),
    [
        ("", {}, "127.0.0.1", 200),
        ("", {}, "::1", 200),
        ("", {}, "10.0.0.7", 403),
        ("", {}, "", 403),
        ("", {"X-Forwarded-For": "127.0.0.1"}, "127.0.0.1", 403),
        ("", {"Authorization": f"Bearer {TOKEN}"}, "10.0.0.7", 403),
        (TOKEN, {"Authorization": f"Bearer {TOKEN}"}, "10.0.0.7", 200),
        (TOKEN, {"Authorization": f"Bearer {TOKEN}", "X-Forwarded-For": "10.0.0.8"}, "127.0.0.1", 200),
        (TOKEN, {"Authorization": "Bearer wrong"}, "127.0.0.1", 401),
        (TOKEN, {}, "127.0.0.1", 401),
    ],
)
def test_only_this_machine_or_a_token_may_read_them(token, headers, address, status, served, settings):
    settings.MEMORYHUB_METRICS_TOKEN = token

    assert served.get("/metrics", headers=headers, REMOTE_ADDR=address).status_code == status


def test_metrics_stay_readable_on_this_machine_if_the_hub_redirects_to_https(served, settings):
    settings.SECURE_SSL_REDIRECT = True

    assert Client().get("/metrics").status_code == 200
    assert Client().get("/metrics/x").status_code == 301


def test_requests_are_counted_by_route_and_status(served, workspace, admin_user):
    served.force_login(admin_user)
    for path in ("/w/atlas/", "/w/nobody/", "/no/such/page", "/other/page"):
        served.get(path)

    values = read(served)

    assert values["memoryhub_requests_total", "w/<slug:slug>/", "GET", "200"] == 1
    assert values["memoryhub_requests_total", "w/<slug:slug>/", "GET", "404"] == 1
    assert values["memoryhub_requests_total", "none", "GET", "404"] == 2
    assert values["memoryhub_request_seconds_count", "w/<slug:slug>/"] == 2
    assert "atlas" not in served.get("/metrics").content.decode()


def test_requests_to_mcp_are_counted(served):
    async def receive() -> dict[str, object]:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def ignore(_message: object) -> None:
        return

    scope = {"type": "http", "method": "POST", "scheme": "http", "path": "/mcp", "headers": [(b"host", b"localhost")]}
    asyncio.run(asgi.application(scope, receive, ignore))

    assert read(served)["memoryhub_requests_total", "mcp", "POST", "401"] == 1


def test_an_unknown_method_is_no_new_label(served):
    served.generic("BREW", "/no/such/page")

    assert read(served)["memoryhub_requests_total", "none", "other", "404"] == 1


def test_appends_and_searches_are_counted(served, workspace, admin_user, django_capture_on_commit_callbacks):
    served.force_login(admin_user)
    with django_capture_on_commit_callbacks(execute=True):
        texts = ("a valve opened", "it closed again")
        add(open_at(workspace), [{"role": "user", "content": text} for text in texts])
    served.get("/w/atlas/search/?q=valve")

    values = read(served)

    assert values["memoryhub_appended_entries_total",] == 2
    assert values["memoryhub_entries",] == 2
    assert values["memoryhub_searches_total",] == 1


def test_figures_of_the_database(served, workspace):
    now = timezone.now()
    Job.objects.create(kind="export", requested_by="olga", not_before=now - timedelta(minutes=10))
    Job.objects.create(kind="export", requested_by="olga", not_before=now - timedelta(minutes=2))
    Job.objects.create(kind="export", requested_by="olga", status="failed", finished_at=now)
    Workspace.objects.update(is_followed=True, path="/agent")
    SyncState.objects.create(
        workspace=workspace, succeeded_at=now - timedelta(minutes=3), lag_seconds=4.5, failed_at=now, error_code="x"
    )
    seen = Now() - timedelta(seconds=20)
    Process.objects.create(name="elsewhere:1:2", kind="worker", host="elsewhere", pid=1, seen_at=seen)

    values = read(served)

    assert values["memoryhub_database_up",] == 1
    assert values["memoryhub_database_bytes",] > 100_000
    assert values["memoryhub_jobs", "export", "queued"] == 2
    assert values["memoryhub_jobs", "export", "failed"] == 1
    assert 600 <= values["memoryhub_oldest_job_seconds", "export", "queued"] < 700
    assert ("memoryhub_oldest_job_seconds", "export", "failed") not in values
    assert values["memoryhub_followed_folders",] == values["memoryhub_failing_folders",] == 1
    assert 180 <= values["memoryhub_sync_age_seconds",] < 280
    assert values["memoryhub_sync_lag_seconds",] == 4.5
    assert values["memoryhub_processes", "worker"] == 1
    assert 15 <= values["memoryhub_worker_heartbeat_age_seconds",] < 120
    assert values["memoryhub_held", "change"] == 0
    assert values["memoryhub_failing_webhooks",] == 0


def test_a_failing_webhook_is_counted(served, workspace):
    hook = Webhook.objects.create(workspace=workspace, url="https://example.org/x", salt="s", created_by="olga")
    hook.deliveries.create(record_id=1, status="failed", tried_at=timezone.now())

    assert read(served)["memoryhub_failing_webhooks",] == 1


def test_the_number_of_queries_does_not_grow(served, workspace):
    def queries() -> int:
        with CaptureQueriesContext(connection) as found:
            served.get("/metrics")
        return len(found)

    before = queries()
    for number in range(20):
        one = Workspace.objects.create(
            slug=f"w{number}", name=f"W{number}", is_followed=True, path=f"/agents/{number}"
        )
        Job.objects.create(kind="export", requested_by="olga", workspace=one)

    assert queries() == before <= 17


def test_metrics_say_that_the_database_is_down(served, monkeypatch):
    def fail() -> int:
        raise figures.DatabaseError("gone")

    monkeypatch.setattr(figures, "database_bytes", fail)

    values = read(served)

    assert values["memoryhub_database_up",] == 0
    assert ("memoryhub_entries",) not in values


@pytest.mark.slow
def test_processes_that_share_a_folder_add_up_their_counters(served, settings, tmp_path):
    """Two other processes count requests in prometheus-client's folder; this one only reads it."""
    code = """import django; django.setup()
import os
from memoryhub.lib.metrics import count_request
child = os.fork()
count_request('login/', 'GET', 200, 0.1)
os._exit(0) if child == 0 else os.waitpid(child, 0)"""
    shared = os.environ | {"DJANGO_SETTINGS_MODULE": "tests.settings", "PROMETHEUS_MULTIPROC_DIR": str(tmp_path)}
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, env=shared, check=True)
    settings.METRICS_FOLDER = str(tmp_path)

    values = read(served)

    assert values["memoryhub_requests_total", "login/", "GET", "200"] == 2
    assert values["memoryhub_request_seconds_count", "login/"] == 2
