from contextlib import suppress

import pytest

from sessions_app.models import AuditRecord, Entry, MutationGuard, WebhookDelivery
from sessions_app.services.audit import Actor, By, open_guard, record
from tests.hub import NOW, add, open_at, turn

pytestmark = pytest.mark.django_db


def test_rows_can_be_removed_inside_a_guard_and_never_after_it(workspace):
    add(open_at(workspace), turn(0))

    with open_guard("forget"):
        assert MutationGuard.objects.get().reason == "forget"
        assert Entry.objects.filter(position=0).delete()[0] == 1

    assert not MutationGuard.objects.exists()


def test_a_guard_is_gone_after_an_error_and_what_was_removed_is_back(workspace):
    add(open_at(workspace), turn(0)[:1])

    with suppress(ZeroDivisionError), open_guard("forget"):
        Entry.objects.all().delete()
        raise ZeroDivisionError

    assert not MutationGuard.objects.exists()
    assert Entry.objects.count() == 1


def test_a_record_of_the_whole_hub_is_told_to_no_webhook():
    made = record(By(Actor("agent", "a" * 300), NOW), "run.failed", "run", 7, "Run 7 failed")

    kept = AuditRecord.objects.get()
    assert (kept.pk, kept.object_id, kept.detail, kept.at) == (made.pk, "7", {}, NOW)
    assert kept.actor_name == "a" * 200
    assert not WebhookDelivery.objects.exists()
