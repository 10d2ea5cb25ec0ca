"""Records of finished work are deleted by age, and only those."""

from __future__ import annotations

from datetime import timedelta

import pytest

from memoryhub.jobs.retention import delete_old_records
from memoryhub.jobs.uploads import FOLDER
from memoryhub.sweeps import prune
from sessions_app.models import AppendReceipt, AuditRecord, ImportReport, Run, Session, Webhook, WebhookDelivery
from sessions_app.services.audit import By, record
from tests.hub import NOW, PERSON

pytestmark = pytest.mark.django_db
OLD, NEW = NOW - timedelta(days=31), NOW - timedelta(days=29)


@pytest.fixture
def records(workspace) -> None:
    """Two of each kind, an old one and a newer one, and old ones that must stay."""
    hook = Webhook.objects.create(workspace=workspace, url="https://hooks.example/", created_by="olga")
    session = Session.objects.create(workspace=workspace, key="cli:direct")
    for at in (OLD, NEW):
        written = record(By(PERSON, at), "note.made", "workspace", workspace.pk, "Noted", workspace=workspace)
        for status in ("sent", ""):
            audited = written if status else record(By(PERSON, at), "note.made", "workspace", 0, "Noted")
            WebhookDelivery.objects.create(webhook=hook, record=audited, status=status, tried_at=at)
        receipt = {"session": session, "body_hash": "", "epoch": 1, "first_position": 0, "entry_count": 0}
        AppendReceipt.objects.create(**receipt, idempotency_key=f"{at:%j}", created_at=at)
        for kind in ("extraction", "edit"):
            run = {"workspace": workspace, "status": "failed", "error": "a bad reply", "proposal": {"reply": "Hm"}}
            Run.objects.create(**run, kind=kind, finished_at=at)


def reports(workspace, *rows: tuple[str, str, object]) -> list[int]:
    return [
        ImportReport.objects.create(workspace=workspace, path=path, status=status, finished_at=at).pk
        for path, status, at in rows
    ]


def test_by_default_everything_is_kept(workspace, records, settings):
    prune(NOW + timedelta(days=9_000))

    assert settings.MEMORYHUB_RECORD_DAYS == 0
    assert (WebhookDelivery.objects.count(), AppendReceipt.objects.count()) == (4, 2)
    assert Run.objects.exclude(proposal={}).count() == 4


def test_old_records_are_deleted_and_others_stay(workspace, records, settings):
    settings.MEMORYHUB_RECORD_DAYS = 30

    prune(NOW)

    kept = set(WebhookDelivery.objects.values_list("status", "tried_at"))
    assert kept == {("sent", NEW), ("", OLD), ("", NEW)}
    assert AppendReceipt.objects.get().created_at == NEW
    emptied = Run.objects.get(proposal={})
    assert (emptied.kind, emptied.error, emptied.finished_at) == ("extraction", "a bad reply", OLD)
    assert Run.objects.count() == 4
    assert AuditRecord.objects.filter(action="note.made").count() == 4


def test_the_latest_report_of_each_state_and_those_of_uploads_stay(workspace, settings):
    settings.MEMORYHUB_RECORD_DAYS = 30
    upload = f"/home/hub/{FOLDER}/{'0' * 32}/memory.zip"
    first, second, failed, waiting, of_upload, newer = reports(
        workspace,
        ("/agents/a", "done", OLD),
        ("/agents/a", "done", OLD),
        ("/agents/a", "failed", OLD),
        ("/agents/a", "", None),
        (upload, "done", OLD),
        ("/agents/a", "done", NEW),
    )
    [unfinished] = reports(None, ("/agents/b", "failed", OLD))

    delete_old_records(NOW)

    assert set(ImportReport.objects.values_list("pk", flat=True)) == {failed, waiting, of_upload, newer}
    assert not {first, second, unfinished} & set(ImportReport.objects.values_list("pk", flat=True))


def test_the_page_counts_what_would_be_deleted(admin_client, workspace, records):
    def preview(days: str) -> str:
        return admin_client.post(
            "/settings/retention/test/", {"access_days": "0", "record_days": days}
        ).content.decode()

    assert "Would be deleted: webhook deliveries (2), idempotency keys of appends (2), replies" in preview("30")
    assert WebhookDelivery.objects.count() == 4
    assert "Nothing would be deleted." in preview("0")
    assert "Preview" in admin_client.get("/settings/").content.decode()
