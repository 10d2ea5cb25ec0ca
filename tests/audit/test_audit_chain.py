"""Forged, changed and deleted audit records are noticed."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest
from django.db import IntegrityError, connection, transaction

from memoryhub.integrity.database import protections
from memoryhub.lib.database.append_only import remove_sql
from memoryhub.sweeps import prune
from sessions_app.models import AuditRecord, AuditSeal, Workspace
from sessions_app.services import audit_chain
from sessions_app.services.audit import By, open_guard, record
from sessions_app.services.audit_chain import audit_problems, seal_records
from tests.hub import AGENT, NOW

pytestmark = pytest.mark.django_db
LATER = NOW + timedelta(minutes=11)


@pytest.fixture
def records(workspace: Workspace) -> list[AuditRecord]:
    detail = {2: ("a", 1.5), 10: None, "é": {"x": [1]}}
    return [
        record(By(AGENT, NOW), "test.done", "test", number, f"Test {number}", workspace=workspace, detail=detail)
        for number in range(4)
    ]


def unprotected(change: Callable[[], object]) -> None:
    """Make a change as somebody who can remove triggers."""
    with connection.cursor() as cursor:
        for protection in protections():
            if "audit" in protection.table:
                for statement in remove_sql(connection, protection):
                    cursor.execute(statement)
    change()


def problems() -> list[tuple[str, str]]:
    return list(audit_problems())


def test_records_and_seals_are_valid(records):
    assert problems() == []

    assert seal_records(LATER)
    record(By(AGENT, LATER), "test.done", "test", 4, "Test 4")
    assert seal_records(LATER) is None
    prune(LATER + timedelta(minutes=11))

    assert list(AuditSeal.objects.order_by("id").values_list("record_count", flat=True)) == [4, 1]
    assert problems() == []


@pytest.mark.parametrize("column", ["text", "actor_name", "action", "object_id", "detail", "mac"])
def test_a_changed_record_is_noticed(column, records):
    unprotected(lambda: AuditRecord.objects.filter(pk=records[1].pk).update(**{column: "changed"}))

    assert [where for _, where in problems()] == [f"audit record {records[1].pk}"]


def test_a_forged_record_is_noticed(records):
    forged = AuditRecord.objects.create(text="forged", at=NOW, mac="0" * 64)

    assert [where for _, where in problems()] == [f"audit record {forged.pk}"]


def test_a_record_cannot_be_copied(records):
    records[0].pk = None

    with pytest.raises(IntegrityError), transaction.atomic():
        records[0].save(force_insert=True)


@pytest.mark.parametrize("index", [0, 1, 3])
def test_a_deleted_record_is_noticed(index, records):
    seal_records(LATER)
    unprotected(AuditRecord.objects.filter(pk=records[index].pk).delete)

    assert "deleted" in problems()[0][0]


@pytest.mark.parametrize("index", [0, 1])
def test_a_deleted_seal_is_noticed(index, records, monkeypatch):
    monkeypatch.setattr(audit_chain, "MAX_SEALED", 2)
    seals = [seal_records(LATER), seal_records(LATER)]
    unprotected(AuditSeal.objects.filter(pk=seals[index].pk).delete)

    assert "deleted" in problems()[0][0]


def test_other_seals_than_a_deleted_one_and_the_next_stay_valid(records, monkeypatch):
    monkeypatch.setattr(audit_chain, "MAX_SEALED", 1)
    seals = [seal_records(LATER) for _ in range(4)]

    unprotected(lambda: AuditSeal.objects.filter(pk=seals[0].pk).delete())

    assert [where for _, where in problems()] == [f"audit record {records[0].pk}", f"audit seal {seals[1].pk}"]


def test_a_seal_without_its_records_is_noticed(records):
    seal = seal_records(LATER)

    unprotected(AuditRecord.objects.all().delete)

    assert [where for _, where in problems()] == [f"audit seal {seal.pk}"]


def test_seals_are_append_only(records):
    seal_records(LATER)

    with pytest.raises(IntegrityError, match="append-only"), transaction.atomic():
        AuditSeal.objects.update(mac="")


def test_another_secret_key_is_reported_once(records, settings):
    seal_records(LATER)
    settings.SECRET_KEY = "another"

    ((what, _),) = problems()
    assert "another secret key" in what


def test_forgetting_may_change_a_record(records):
    with open_guard("forget"):
        row = AuditRecord.objects.get(pk=records[0].pk)
        row.text = "forgotten"
        AuditRecord.objects.filter(pk=row.pk).update(text=row.text, mac=audit_chain.audit_mac(row))

    assert problems() == []
