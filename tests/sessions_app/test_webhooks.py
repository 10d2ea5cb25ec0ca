from __future__ import annotations

import base64
import hashlib
import hmac
import json
from datetime import timedelta

import pytest
from pytest_httpserver import HTTPServer

from memoryhub.jobs.queue import do_next_job
from memoryhub.lib.http.safe_http import AddressRefused
from memoryhub.models import Job
from sessions_app.models import AuditRecord, Webhook, WebhookDelivery, Workspace
from sessions_app.services.audit import By
from sessions_app.services.webhooks import (
    MAX_ATTEMPTS,
    add_webhook,
    remove_webhook,
    secret_of,
    signature,
    standard_secret_of,
    standard_signature,
)
from tests.hub import NOW, PERSON, add, compress, open_at, raises_code, talk, turn

pytestmark = pytest.mark.django_db


def place(httpserver: HTTPServer) -> frozenset[str]:
    return frozenset({f"{httpserver.host}:{httpserver.port}"})


def listen(workspace: Workspace, httpserver: HTTPServer, *actions: str) -> Webhook:
    return add_webhook(workspace, httpserver.url_for("/hook"), actions, allowed=place(httpserver), by=By(PERSON, NOW))


def send_all(now=NOW) -> list[str]:
    """Carry out the jobs that are due; return their states."""
    due = list(Job.objects.filter(status="queued", not_before__lte=now).order_by("id").values_list("pk", flat=True))
    for _ in due:
        do_next_job(clock=lambda: now)
    return list(Job.objects.filter(pk__in=due).order_by("id").values_list("status", flat=True))


@pytest.fixture(autouse=True)
def allowed(settings, httpserver):
    settings.MEMORYHUB_PRIVATE_HOSTS = place(httpserver)


def test_an_event_is_told_once_signed_and_without_memory(workspace, httpserver):
    httpserver.expect_request("/hook").respond_with_data("", status=204)
    hook = listen(workspace, httpserver)
    add(open_at(workspace), [{"role": "user", "content": "my secret plan"}])

    assert send_all() == ["done"]
    assert send_all() == []

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
    assert send_all() == ["queued"]
    delivery = WebhookDelivery.objects.get()
    assert (delivery.status, delivery.response_status, delivery.error) == ("", 503, "it answered 503")
    assert delivery.job.not_before == NOW + timedelta(seconds=30)
    assert send_all() == []

    now = NOW
    for _ in range(MAX_ATTEMPTS):
        now += timedelta(days=2)
        send_all(now)

    delivery.refresh_from_db()
    assert (delivery.status, delivery.attempt_count, len(httpserver.log)) == ("failed", MAX_ATTEMPTS, MAX_ATTEMPTS)


def test_redirects_are_not_followed(workspace, httpserver):
    httpserver.expect_request("/hook").respond_with_data("", status=302, headers={"Location": "/elsewhere"})
    listen(workspace, httpserver)
    add(open_at(workspace), turn(0)[:1])

    assert send_all() == ["queued"]
    assert len(httpserver.log) == 1


def test_an_address_inside_is_refused_when_it_is_saved_and_when_it_is_told(workspace, httpserver, settings):
    with pytest.raises(AddressRefused):
        add_webhook(workspace, "http://169.254.169.254/", [], allowed=(), by=By(PERSON, NOW))
    listen(workspace, httpserver)
    add(open_at(workspace), turn(0)[:1])

    settings.MEMORYHUB_PRIVATE_HOSTS = frozenset()

    assert send_all() == ["queued"]
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
    job = Job.objects.get()

    assert do_next_job(clock=lambda: NOW)
    assert not do_next_job(clock=lambda: NOW)
    job.refresh_from_db()
    assert job.status == "done"
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

    assert send_all() == ["done" if is_taken else "queued"]


def test_pauses_grow_fourfold_up_to_a_day(workspace, httpserver):
    httpserver.expect_request("/hook").respond_with_data("", status=503)
    listen(workspace, httpserver)
    add(open_at(workspace), turn(0)[:1])
    now, pauses = NOW, []

    while send_all(now) == ["queued"]:
        next_attempt = Job.objects.get().not_before
        pauses.append(int((next_attempt - now).total_seconds()))
        now = next_attempt

    assert pauses == [30, 120, 480, 1_920, 7_680, 30_720, 86_400]
    assert WebhookDelivery.objects.get().status == WebhookDelivery.Status.FAILED


def test_a_webhook_that_is_switched_off_or_of_another_workspace_is_told_nothing(workspace, httpserver):
    hook = listen(workspace, httpserver)
    add(open_at(workspace), turn(0)[:1])
    add(open_at(Workspace.objects.create(slug="other", name="Other")), turn(0)[:1])
    assert Job.objects.count() == 1

    hook.is_enabled = False
    hook.save()
    add(open_at(workspace), turn(1)[:1])

    assert send_all() == ["queued"]
    assert WebhookDelivery.objects.get().attempt_count == 0
    assert httpserver.log == []


def test_what_waits_longest_is_told_first(workspace, httpserver):
    httpserver.expect_request("/hook").respond_with_data("", status=204)
    listen(workspace, httpserver)
    for minute in range(22, 0, -1):
        add(open_at(workspace), turn(minute)[:1], now=NOW + timedelta(minutes=minute))

    while do_next_job(clock=lambda: NOW + timedelta(minutes=22)):
        pass

    told = [json.loads(request.data)["at"] for request, _ in httpserver.log]
    assert told == [(NOW + timedelta(minutes=minute)).isoformat() for minute in range(1, 23)]


def test_adding_and_removing_a_webhook_is_recorded(workspace, httpserver):
    remove_webhook(listen(workspace, httpserver), by=By(PERSON, NOW))

    assert not Webhook.objects.exists()
    recorded = AuditRecord.objects.filter(workspace=workspace, object_kind="webhook").order_by("id")
    assert list(recorded.values_list("action", flat=True)) == ["webhook.added", "webhook.removed"]


def test_the_signature_of_standard_webhooks_is_that_of_the_specification():
    """The values of the specification's own example, signed here once more without the hub's function."""
    secret, number, at = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "msg_p5jXN8AQM9LWM0D4loKWxJek", "1614265330"
    body = b'{"test": 2432232314}'
    key = base64.b64decode("MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
    digest = hmac.new(key, b"msg_p5jXN8AQM9LWM0D4loKWxJek.1614265330." + body, hashlib.sha256).digest()

    assert standard_signature(secret, number, at, body) == f"v1,{base64.b64encode(digest).decode()}"
    assert standard_signature(secret, number, at, body) == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


def test_a_message_has_the_headers_of_standard_webhooks_and_one_id_over_all_attempts(workspace, httpserver):
    httpserver.expect_ordered_request("/hook").respond_with_data("busy", status=503)
    httpserver.expect_ordered_request("/hook").respond_with_data("", status=204)
    hook = listen(workspace, httpserver)
    add(open_at(workspace), turn(0)[:1])
    send_all()
    send_all(NOW + timedelta(minutes=1))

    [(first, _), (second, _)] = httpserver.log
    assert first.headers["webhook-id"] == second.headers["webhook-id"]
    assert first.headers["webhook-timestamp"] != second.headers["webhook-timestamp"]
    key = base64.b64decode(standard_secret_of(hook).removeprefix("whsec_"))
    signed = f"{second.headers['webhook-id']}.{second.headers['webhook-timestamp']}.".encode() + second.data
    expected = base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()
    assert second.headers["webhook-signature"] == f"v1,{expected}"
    assert 24 <= len(key) <= 64
