"""The activity pages: filters, export and access control."""

from __future__ import annotations

import csv
import io

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from knowledge_app.services.rows.key_values import write_value
from memoryhub.lib.search.matching import SearchTooSlow
from sessions_app.models import AuditRecord, Workspace
from sessions_app.services.audit import Actor, By, record
from tests.hub import NOW, PERSON

pytestmark = pytest.mark.django_db
AGENT = Actor("agent", "scout")


@pytest.fixture
def told(workspace: Workspace) -> Workspace:
    record(By(PERSON, NOW), "document.revised", "document", 1, "MEMORY.md revised", workspace=workspace)
    record(By(AGENT, NOW), "history.added", "history", 1, '=HYPERLINK("x") noted', workspace=workspace)
    record(By(PERSON, NOW), "backup.made", "hub", "", "A backup was made")
    return workspace


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        ({}, ["history.added", "document.revised"]),
        ({"actor": "agent"}, ["history.added"]),
        ({"who": "SCOU"}, ["history.added"]),
        ({"noun": "document"}, ["document.revised"]),
        ({"text": "memory.md"}, ["document.revised"]),
        ({"since": "2999-01-01"}, []),
        ({"until": "no day", "noun": "document"}, ["document.revised"]),
    ],
)
def test_filters(told, viewer_client, asked, found):
    response = viewer_client.get(reverse("activity", args=["atlas"]), asked)

    assert [row.action for row, *_ in response.context["rows"]] == found


def test_the_records_of_a_run_are_one_row(told, viewer_client):
    for action, text in (("requested", "was asked for"), ("started", "started"), ("finished", "is done")):
        record(By(AGENT, NOW), f"run.{action}", "run", "7", f"Scan 7 {text}", workspace=told)

    response = viewer_client.get(reverse("activity", args=["atlas"]))

    row, *_, earlier = response.context["rows"][0]
    assert (row.action, [one.action for one in earlier]) == ("run.finished", ["run.started", "run.requested"])
    page = response.content.decode()
    assert '<span class="badge">Run</span>' in page
    assert "run.finished" not in page
    assert "2 earlier steps" in response.content.decode()
    assert len(response.context["rows"]) == 3


def test_only_hub_operators_see_the_hubs_records(told, admin_client, viewer_client):
    assert viewer_client.get(reverse("hub-activity")).status_code == 403
    assert "A backup was made" in admin_client.get(reverse("hub-activity")).content.decode()


def test_the_hubs_records_name_their_workspaces(told, workspace, admin_client):
    workspace.name = "Atlas of the observatory"
    workspace.save()

    page = admin_client.get(reverse("hub-activity")).content.decode()

    assert f'<a href="{reverse("activity", args=["atlas"])}"><bdi>Atlas of the observatory</bdi></a>' in page


def test_the_time_of_a_restored_backup_is_in_the_users_zone(told, admin_client):
    detail = {"taken_at": "2026-03-31T08:00:00+00:00"}
    record(By(AGENT, NOW), "backup.restored", "backup", "x.tar.gz", "restored a backup", detail=detail)
    admin_client.cookies["zone"] = "Asia/Tokyo"

    page = admin_client.get(reverse("hub-activity")).content.decode()

    assert "as it was on" in page
    assert "31 Mar 2026, 17:00:00" in page


def test_the_export_is_filtered_and_contains_no_formulas(told, admin_client):
    response = admin_client.post(reverse("export-activity", args=["atlas"]), {"actor": "agent", "format": "csv"})
    [row] = csv.DictReader(io.StringIO(b"".join(response).decode()))

    assert (row["action"], row["workspace"]) == ("history.added", "atlas")
    assert row["text"].startswith("'=")
    assert AuditRecord.objects.latest("pk").text == "1 record of the audit log exported"


def test_a_slow_search_asks_for_a_shorter_period(told, viewer_client, monkeypatch):
    def late(*_args, **_options):
        raise SearchTooSlow("late")

    monkeypatch.setattr("memoryhub.audit.views.audit_log.keyset_page", late)
    response = viewer_client.get(reverse("activity", args=["atlas"]), {"text": "x"})

    assert response.status_code == 422
    assert "Choose a shorter period" in response.content.decode()


def test_a_page_runs_the_same_queries_for_few_records_and_many(told, viewer_client):
    def cost() -> int:
        with CaptureQueriesContext(connection) as captured:
            viewer_client.get(reverse("activity", args=["atlas"]))
        return len(captured)

    cost()  # what a sign-in costs once
    few = cost()
    for number in range(30):
        write_value(told, f"key-{number}", "x", by=By(PERSON, NOW))

    assert cost() == few
