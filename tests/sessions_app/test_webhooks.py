from __future__ import annotations

import json
from datetime import timedelta

import pytest
from pytest_httpserver import HTTPServer

from memoryhub.lib.safe_http import AddressRefused
from sessions_app.models import Webhook, WebhookDelivery, Workspace
from sessions_app.services.audit import By
from sessions_app.services.webhooks import (
    MAX_ATTEMPTS,
    BadWebhook,
    add_webhook,
    deliver,
    due_deliveries,
    secret_of,
    signature,
)
from tests.hub import NOW, PERSON, add, compress, open_at, talk, turn

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

    with pytest.raises(BadWebhook, match="already"):
        listen(workspace, httpserver)
    with pytest.raises(BadWebhook, match="no event"):
        listen(workspace, httpserver, "sun.rises")


def test_two_workers_send_a_message_once(workspace, httpserver):
    httpserver.expect_request("/hook").respond_with_data("", status=204)
    listen(workspace, httpserver)
    add(open_at(workspace), turn(0)[:1])
    [mine], [theirs] = due_deliveries(NOW), due_deliveries(NOW)

    assert deliver(mine, allowed=place(httpserver), now=NOW) is True
    assert deliver(theirs, allowed=place(httpserver), now=NOW) is False
    assert len(httpserver.log) == 1
