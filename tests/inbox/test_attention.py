from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from knowledge_app.models import Concern, HeldChange, MemoryDocument
from knowledge_app.services.documents.outside_edits import SYNC
from memoryhub.inbox.attention import attention_items
from memoryhub.inbox.attention_items import AttentionItem
from memoryhub.jobs.uploads import uploads
from memoryhub.models import Job
from memoryhub.role_scope import role_scope, whole_scope
from sessions_app.models import (
    ImportProblem,
    ImportReport,
    Run,
    Session,
    SyncState,
    Webhook,
    WebhookDelivery,
    Workspace,
)
from sessions_app.services.audit import By, record
from sessions_app.services.runs import dismiss_run
from tests.hub import PERSON, member, open_at

pytestmark = pytest.mark.django_db
NOW = timezone.now()


def hold(workspace: Workspace, text: str = "new", **values: Any) -> HeldChange:
    document, _ = MemoryDocument.objects.get_or_create(workspace=workspace, name="MEMORY.md")
    who = {"author_kind": "run", "author_name": "run 1"} | values
    return HeldChange.objects.create(
        workspace=workspace, document=document, proposed=text, proposed_hash=text, reason="loses facts", **who
    )


def find_concerns(workspace: Workspace, kind: str, count: int = 1) -> None:
    for number in range(count):
        mark = f"{kind}{number}"
        Concern.objects.create(
            workspace=workspace, kind=kind, table="facts", object_id=number, what="it", fingerprint=mark
        )


def stop(workspace: Workspace, status: str, **values: Any) -> Run:
    facts = {"kind": "consolidation", "finished_at": NOW - timedelta(hours=2)} | values
    return Run.objects.create(workspace=workspace, status=status, **facts)


def over_limit(workspace: Workspace, key: str = "cli:big", **values: Any) -> Session:
    session = open_at(workspace, key)
    facts = {"active_tokens": workspace.max_tokens + 1, "updated_at": NOW} | values
    Session.objects.filter(pk=session.pk).update(**facts)
    return session


def fold(session: Session, status: str) -> Run:
    return stop(session.workspace, status, session=session, kind="compression")


def imported(workspace: Workspace | None, *outcomes: str, **values: Any) -> ImportReport:
    report = ImportReport.objects.create(
        **{"workspace": workspace, "path": "/agent", "status": "done", "problem_count": len(outcomes)} | values
    )
    for outcome in outcomes:
        ImportProblem.objects.create(report=report, file="f", what="what", action="kept", outcome=outcome)
    return report


def end_job(workspace: Workspace | None, status: str, **values: Any) -> Job:
    facts = {"kind": "export", "error": "The disk is full.", "finished_at": NOW - timedelta(hours=2)} | values
    return Job.objects.create(workspace=workspace, status=status, requested_by="ada", **facts)


def hooked(workspace: Workspace, **values: Any) -> Webhook:
    return Webhook.objects.create(workspace=workspace, url="https://hooks.example/secret-path", **values)


def told(hook: Webhook, status: str, gave_up_at: Any = NOW) -> None:
    event = record(By(PERSON, NOW), "session.opened", "session", 1, "opened", workspace=hook.workspace)
    facts = {"status": status, "error": "it answered 500", "tried_at": gave_up_at}
    WebhookDelivery.objects.update_or_create(webhook=hook, record=event, defaults=facts)


def items() -> list[AttentionItem]:
    return attention_items(whole_scope(), now=NOW)


def kinds() -> list[str]:
    return [item.kind for item in items()]


def test_the_most_urgent_come_first(workspace):
    find_concerns(workspace, "stale")
    Workspace.objects.filter(pk=workspace.pk).update(auto_compress=False)
    over_limit(workspace)
    stop(workspace, "parked")
    hold(workspace)
    SyncState.objects.create(workspace=workspace, failed_at=NOW, error_code="folder_missing", error="It is gone.")
    Workspace.objects.filter(pk=workspace.pk).update(path="/agent")
    find_concerns(workspace, "secret")

    assert kinds() == ["secret", "folder", "held", "parked", "budget", "concerns"]


def test_one_held_change_links_to_itself_and_several_to_the_inbox(workspace):
    old = hold(workspace, created_at=NOW - timedelta(days=2))
    [one] = items()
    hold(workspace, "newer")
    [both] = items()

    assert one.url == f"/w/atlas/review/{old.pk}/"
    assert one.text == "A change to MEMORY.md awaits review."
    assert (both.url, both.count, both.since) == ("/w/atlas/inbox/?kind=change", 2, old.created_at)


def test_a_conflict_with_the_agents_file_is_a_separate_item(workspace):
    hold(workspace, author_kind=SYNC.kind, author_name=SYNC.name)

    assert kinds() == ["conflict"]


def test_a_held_run_is_listed_once(workspace):
    hold(workspace, run=stop(workspace, "held"))
    summary = stop(workspace, "held", kind="compression")

    assert [(item.kind, item.url) for item in items()][1:] == [("approval", f"/w/atlas/runs/{summary.pk}/")]
    assert kinds() == ["held", "approval"]


def test_a_failed_run_disappears_once_somebody_handled_it(workspace):
    dismissed = stop(workspace, "parked", kind="extraction")
    dismiss_run(dismissed, note="not worth it", by=By(PERSON, NOW))
    stop(workspace, "failed")
    stop(workspace, "done")
    stop(workspace, "failed", kind="scan", finished_at=NOW - timedelta(days=8))
    failed = stop(workspace, "failed", kind="compaction")

    assert [item.url for item in items()] == [f"/w/atlas/runs/{failed.pk}/"]


def test_queued_runs_are_listed_after_half_an_hour(workspace):
    Run.objects.create(workspace=workspace, kind="scan", not_before=NOW - timedelta(minutes=10))
    assert kinds() == []

    Run.objects.create(workspace=workspace, kind="compaction", not_before=NOW - timedelta(hours=1))
    assert kinds() == ["waiting"]


def test_a_session_over_budget_is_listed_if_nothing_compresses_it(workspace):
    session = over_limit(workspace)
    assert kinds() == []  # the worker is about to see it

    Session.objects.filter(pk=session.pk).update(updated_at=NOW - timedelta(hours=2))
    assert kinds() == ["budget"]

    Session.objects.filter(pk=session.pk).update(updated_at=NOW)
    Workspace.objects.update(auto_compress=False)
    [item] = items()
    assert item.url == f"/w/atlas/sessions/{session.pk}/compress/"
    assert "auto-compress is off" in item.text


@pytest.mark.parametrize("change", [{"archived_at": NOW}, {"is_visible_to_agent": False}, {"active_tokens": 50_000}])
def test_a_session_that_no_agent_reads_is_not_listed(workspace, change):
    Workspace.objects.update(auto_compress=False)
    over_limit(workspace, **change)

    assert kinds() == []


@pytest.mark.parametrize("status", ["queued", "cancelled", "undone"])
def test_a_session_is_not_listed_while_its_compression_waits_or_was_refused(workspace, status):
    Workspace.objects.update(auto_compress=False)
    fold(over_limit(workspace), status)

    assert kinds() == []


@pytest.mark.parametrize(
    ("facts", "words"),
    [
        ({"unavailable_since": NOW}, "can't be opened"),
        ({"is_followed": True, "updated_at": NOW - timedelta(hours=1)}, "worker running"),
        ({"sync_state__unwritten": {"MEMORY.md": "It is read-only."}}, "can't be written: It is read-only."),
        ({"sync_state__failed_at": NOW, "sync_state__error_code": "x", "sync_state__error": "No."}, "failed: No."),
    ],
)
def test_a_folder_that_fails_or_lags_is_listed(workspace, facts, words):
    mine = {name: value for name, value in facts.items() if "__" not in name}
    Workspace.objects.filter(pk=workspace.pk).update(path="/agent", **mine)
    states = {name.removeprefix("sync_state__"): value for name, value in facts.items() if "__" in name}
    if states:
        SyncState.objects.create(workspace=workspace, **states)

    [item] = items()

    assert (item.kind, item.url) == ("folder", "/w/atlas/sync/")
    assert words in item.text


def test_a_sync_that_waits_for_an_hour_is_listed(workspace):
    Workspace.objects.filter(pk=workspace.pk).update(path="/agent")
    Job.objects.create(workspace=workspace, kind="sync", created_at=NOW - timedelta(hours=1))

    [item] = items()

    assert (item.kind, item.since) == ("folder", NOW - timedelta(hours=1))
    assert "worker running" in item.text


def test_a_synced_folder_is_not_listed(workspace):
    Workspace.objects.filter(pk=workspace.pk).update(path="/agent", is_followed=True)
    SyncState.objects.create(workspace=workspace, succeeded_at=NOW - timedelta(seconds=30))

    assert kinds() == []


def test_secrets_and_instructions_are_separate_items(workspace):
    find_concerns(workspace, "secret", 2)
    find_concerns(workspace, "order")
    find_concerns(workspace, "duplicate", 3)
    find_concerns(workspace, "contradiction")
    Concern.objects.filter(kind="order").update(status="dismissed")

    assert [(item.kind, item.count, item.url) for item in items()] == [
        ("secret", 2, "/w/atlas/hygiene/?kind=secret"),
        ("concerns", 4, "/w/atlas/hygiene/"),
    ]
    assert items()[1].text == "1 contradiction, 3 duplicates found."


def test_only_problems_of_the_latest_import_are_listed(workspace):
    imported(workspace, "rejected")
    assert [item.count for item in items()] == [1]

    imported(workspace, "noted", "ignored")
    assert kinds() == []

    imported(workspace, "rejected", created_at=NOW - timedelta(days=8))
    assert kinds() == []


def test_an_import_that_failed_without_a_workspace_belongs_to_the_hub(workspace):
    report = imported(None, status="failed", error="There is no such folder.")
    ours = attention_items(whole_scope().within(workspace), now=NOW)

    assert [item.url for item in items()] == [f"/imports/{report.pk}/"]
    assert ours == []


def test_a_failed_import_disappears_once_its_file_is_uploaded_again(db):
    first = imported(None, path=f"{uploads()}/1/agent.zip", name="agent", status="failed", error="No.")
    imported(None, path="/elsewhere", name="agent")
    assert [item.url for item in items()] == [f"/imports/{first.pk}/"]

    imported(None, path=f"{uploads()}/2/agent.zip", name="agent")
    assert kinds() == []


def test_cancelling_the_next_import_keeps_the_failure_listed(workspace):
    failed = imported(workspace, status="failed", error="No.")
    imported(workspace, status="cancelled")

    assert [item.url for item in items()] == [f"/imports/{failed.pk}/"]


def test_a_failed_job_is_listed_until_a_later_one_succeeds(workspace):
    end_job(workspace, "failed", finished_at=NOW - timedelta(days=8), kind="compression")
    failed = end_job(workspace, "failed")
    end_job(workspace, "cancelled")
    end_job(Workspace.objects.create(slug="other", name="Other"), "done")
    [item] = items()

    assert (item.url, item.text) == (f"/work/{failed.pk}/", "The last export failed: The disk is full.")
    end_job(workspace, "done")
    assert kinds() == []


def test_a_failed_rebuild_is_listed_for_hub_operators(workspace):
    failed = end_job(None, "failed", kind="rebuild")

    assert [item.url for item in items()] == [f"/work/{failed.pk}/"]
    assert attention_items(whole_scope().within(workspace), now=NOW) == []
    end_job(None, "done", kind="rebuild")
    assert kinds() == []


def test_a_failing_webhook_is_listed_until_a_delivery_succeeds(workspace):
    hook = hooked(workspace)
    told(hook, "sent")
    told(hook, "failed", NOW - timedelta(days=1))
    told(hook, "")
    [item] = items()

    assert (item.url, item.since) == ("/w/atlas/settings/webhooks/", NOW - timedelta(days=1))
    assert "hooks.example couldn't be delivered" in item.text
    assert "secret-path" not in item.text
    told(hook, "sent")
    assert kinds() == []


@pytest.mark.parametrize(("is_enabled", "days"), [(False, 1), (True, 8)])
def test_a_disabled_webhook_or_an_old_failure_is_not_listed(workspace, is_enabled, days):
    told(hooked(workspace, is_enabled=is_enabled), "failed", NOW - timedelta(days=days))

    assert kinds() == []


@pytest.mark.parametrize(
    ("role", "expected"), [("viewer", []), ("editor", ["held"]), ("operator", ["folder", "held"])]
)
def test_people_see_only_items_that_they_may_act_on(workspace, role, expected):
    user = member(workspace, "ines", role)
    hold(workspace)
    Workspace.objects.filter(pk=workspace.pk).update(path="/agent", unavailable_since=NOW)
    hold(Workspace.objects.create(slug="other", name="Other"))

    assert [item.kind for item in attention_items(role_scope(user), now=NOW)] == expected


def test_the_command_lists_the_same(workspace, command, capsys):
    hold(workspace)
    hold(Workspace.objects.create(slug="other", name="Other"))

    everything = command("attention")["needs"]
    of_one = command("attention", "atlas")["needs"]

    assert [item["workspace"] for item in everything] == ["atlas", "other"]
    assert of_one == everything[:1]
    assert command("attention", "nobody", status=1)["error"]["code"] == "not_found"
