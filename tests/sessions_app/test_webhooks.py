from __future__ import annotations

import hmac
import json
from datetime import timedelta

import pytest
from pytest_httpserver import HTTPServer

from memoryhub.lib.safe_http import AddressRefused
from sessions_app.models import AuditRecord, Webhook, WebhookDelivery, Workspace
from sessions_app.services.audit import By
from sessions_app.services.webhooks import (
    MAX_ATTEMPTS,
    add_webhook,
    deliver,
    due_deliveries,
    remove_webhook,
    secret_of,
    signature,
)
from tests.hub import NOW, PERSON, add, compress, open_at, raises_code, talk, turn

pytestmark = pytest.mark.django_db


def place(httpserver: HTTPServer) -> frozenset[str]:
    return frozenset({f"{httpserver.host}:{httpserver.port}"})


def listen(workspace: Workspace, httpserver: HTTPServer, *actions: str) -> Webhook:
    return add_webhook(workspace, httpserver.url_for("/hook"), actions, allowed=place(httpserver), by=By(PERSON, NOW))


def send_all(httpserver: HTTPServer, now=NOW) -> list[bool]:
    return [deliver(delivery, allowed=place(httpserver), now=now) for delivery in due_deliveries(now)]


def test_an_event_is_told_once_signed_and_without_memory(workspace, httpserver):
    httpserver.expect_request("/hook").respond_with_data("", status=204)
    hook = listen(workspace, httpserver)
    add(open_at(workspace), [{"role": "user", "content": "my secret plan"}])

    assert send_all(httpserver) == [True]
    assert send_all(httpserver) == []

    [(request, _)] = httpserver.log
    told = json.loads(request.data)
    expected = signature(secret_of(hook), request.headers["X-MemoryHub-Timestamp"], request.data)
    assert request.headers["X-MemoryHub-Signature"] == expected
    assert (told["event"], told["workspace"]) == ("entry.added", "atlas")
    assert b"secret plan" not in request.data


def test_only_the_chosen_events_are_told(workspace, httpserver):
    listen(workspace, httpserver, "session.compressed", "run.finished")
    session = open_at(workspace)
    talk(session, 10)
    compress(session)

    actions = WebhookDelivery.objects.values_list("record__action", flat=True)

    assert sorted(actions) == ["run.finished", "session.compressed"]


def test_a_message_that_is_not_taken_is_tried_again_later_and_given_up_in_the_end(workspace, httpserver):
    httpserver.expect_request("/hook").respond_with_data("busy", status=503)
    listen(workspace, httpserver)
    add(open_at(workspace), turn(0)[:1])
    assert send_all(httpserver) == [False]
    delivery = WebhookDelivery.objects.get()
    assert (delivery.status, delivery.response_status, delivery.error) == ("waiting", 503, "it answered 503")
    assert delivery.next_attempt_at == NOW + timedelta(seconds=30)
    assert send_all(httpserver) == []

    now = NOW
    for _ in range(MAX_ATTEMPTS):
        now += timedelta(days=2)
        send_all(httpserver, now)

    delivery.refresh_from_db()
    assert (delivery.status, delivery.attempt_count, len(httpserver.log)) == ("failed", MAX_ATTEMPTS, MAX_ATTEMPTS)


def test_redirects_are_not_followed(workspace, httpserver):
    httpserver.expect_request("/hook").respond_with_data("", status=302, headers={"Location": "/elsewhere"})
    listen(workspace, httpserver)
    add(open_at(workspace), turn(0)[:1])

    assert send_all(httpserver) == [False]
    assert len(httpserver.log) == 1


def test_an_address_inside_is_refused_when_it_is_saved_and_when_it_is_told(workspace, httpserver):
    with pytest.raises(AddressRefused):
        add_webhook(workspace, "http://169.254.169.254/", [], allowed=(), by=By(PERSON, NOW))
    listen(workspace, httpserver)
    add(open_at(workspace), turn(0)[:1])

    [delivery] = due_deliveries(NOW)

    assert deliver(delivery, allowed=(), now=NOW) is False
    assert "MEMORYHUB_PRIVATE_HOSTS" in WebhookDelivery.objects.get().error
    assert httpserver.log == []


def test_an_address_is_told_once_and_unknown_events_are_refused(workspace, httpserver):
    listen(workspace, httpserver)

    with raises_code("bad_webhook", match="already"):
        listen(workspace, httpserver)
    with raises_code("bad_webhook", match="no event"):
        listen(workspace, httpserver, "sun.rises")


def test_two_workers_send_a_message_once(workspace, httpserver):
    httpserver.expect_request("/hook").respond_with_data("", status=204)
    listen(workspace, httpserver)
    add(open_at(workspace), turn(0)[:1])
    [mine], [theirs] = due_deliveries(NOW), due_deliveries(NOW)

    assert deliver(mine, allowed=place(httpserver), now=NOW) is True
    assert deliver(theirs, allowed=place(httpserver), now=NOW) is False
    assert len(httpserver.log) == 1


def test_the_signature_is_one_that_a_receiver_can_compute(workspace, httpserver):
    first, second = (
        listen(workspace, httpserver),
        add_webhook(workspace, "https://1.1.1.1/", [], allowed=(), by=By(PERSON, NOW)),
    )
    digest = hmac.new(secret_of(first).encode(), b"1775044800.{}", "sha256").hexdigest()

    assert signature(secret_of(first), "1775044800", b"{}") == f"sha256={digest}"
    assert secret_of(first) != secret_of(second)


@pytest.mark.parametrize(("status", "is_taken"), [(200, True), (299, True), (300, False), (404, False)])
def test_only_a_reply_of_2xx_says_that_a_message_was_taken(workspace, httpserver, status, is_taken):
    httpserver.expect_request("/hook").respond_with_data("", status=status)
    listen(workspace, httpserver)
    add(open_at(workspace), turn(0)[:1])

    assert send_all(httpserver) == [is_taken]


def test_pauses_grow_fourfold_up_to_a_day(workspace, httpserver):
    httpserver.expect_request("/hook").respond_with_data("", status=503)
    listen(workspace, httpserver)
    add(open_at(workspace), turn(0)[:1])
    now, pauses = NOW, []

    while send_all(httpserver, now) == [False]:
        next_attempt = WebhookDelivery.objects.get().next_attempt_at
        pauses.append(int((next_attempt - now).total_seconds()))
        now = next_attempt

    assert pauses == [30, 120, 480, 1_920, 7_680, 30_720, 86_400, 86_400]
    assert WebhookDelivery.objects.get().status == WebhookDelivery.Status.FAILED


def test_a_webhook_that_is_switched_off_or_of_another_workspace_is_told_nothing(workspace, httpserver):
    hook = listen(workspace, httpserver)
    add(open_at(workspace), turn(0)[:1])
    add(open_at(Workspace.objects.create(slug="other", name="Other")), turn(0)[:1])
    assert len(due_deliveries(NOW)) == 1

    hook.is_enabled = False
    hook.save()
    add(open_at(workspace), turn(1)[:1])

    assert due_deliveries(NOW) == []
    assert WebhookDelivery.objects.count() == 1


def test_what_waits_longest_is_told_first_and_twenty_at_a_time(workspace, httpserver):
    listen(workspace, httpserver)
    for minute in range(22, 0, -1):
        add(open_at(workspace), turn(minute)[:1], now=NOW + timedelta(minutes=minute))

    due = due_deliveries(NOW + timedelta(minutes=22))

    assert [delivery.next_attempt_at for delivery in due] == [
        NOW + timedelta(minutes=minute) for minute in range(1, 21)
    ]


def test_adding_and_removing_a_webhook_is_recorded(workspace, httpserver):
    remove_webhook(listen(workspace, httpserver), by=By(PERSON, NOW))

    assert not Webhook.objects.exists()
    recorded = AuditRecord.objects.filter(workspace=workspace, object_kind="webhook").order_by("id")
    assert list(recorded.values_list("action", flat=True)) == ["webhook.added", "webhook.removed"]
