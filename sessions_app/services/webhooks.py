"""Webhooks: signed messages about activity, tried again with growing pauses, never to a link-local address."""

from __future__ import annotations

import hashlib
import hmac
import json
import secrets
from collections.abc import Collection, Sequence
from datetime import datetime, timedelta

import httpx2
from django.db import transaction
from django.utils.crypto import salted_hmac
from django.utils.translation import gettext

from memoryhub.lib.errors import Invalid, MemoryHubError
from memoryhub.lib.safe_http import check_url, open_client
from sessions_app.models import AuditRecord, Webhook, WebhookDelivery, Workspace
from sessions_app.services.audit import EVENTS, By, record

MAX_ATTEMPTS = 8
FIRST_PAUSE = timedelta(seconds=30)  # four times as long after each failure, a day at most
LONGEST_PAUSE = timedelta(days=1)
TIMEOUT_SECONDS = 10.0
BATCH = 20


def add_webhook(
    workspace: Workspace, url: str, actions: Sequence[str], *, allowed: Collection[str], by: By
) -> Webhook:
    """Keep an address that is told of some events, all of them where none is named.

    Raises AddressRefused for an address that the hub wouldn't connect to, Invalid for one that is kept already or
    for an unknown event.
    """
    unknown = [action for action in actions if action not in EVENTS]
    if unknown:
        raise Invalid(f"There is no event {unknown[0]!r}: use {', '.join(EVENTS)}.", code="bad_webhook")
    check_url(url, allowed)
    with transaction.atomic():
        hook, is_new = Webhook.objects.get_or_create(
            workspace=workspace,
            url=url,
            defaults={
                "actions": list(actions),
                "salt": secrets.token_hex(16),
                "created_by": by.actor.name[:200],
                "created_at": by.at,
            },
        )
        if not is_new:
            raise Invalid(gettext("This address is told already."), code="bad_webhook")
        record(by, "webhook.added", "webhook", hook.pk, "Webhook added", workspace=workspace)
    return hook


@transaction.atomic
def remove_webhook(hook: Webhook, *, by: By) -> None:
    record(by, "webhook.removed", "webhook", hook.pk, "Webhook removed", workspace=hook.workspace)
    hook.delete()


def secret_of(hook: Webhook) -> str:
    """Return the key that signs a webhook's messages: derived from the hub's key, stored nowhere."""
    return salted_hmac(f"memoryhub.webhook.{hook.salt}", str(hook.pk), algorithm="sha256").hexdigest()


def signature(secret: str, timestamp: str, body: bytes) -> str:
    """Return ``sha256=`` and the hex HMAC-SHA-256 of ``timestamp.body``, as in the header X-MemoryHub-Signature."""
    digest = hmac.new(secret.encode(), timestamp.encode() + b"." + body, hashlib.sha256).hexdigest()
    return f"sha256={digest}"


def due_deliveries(now: datetime) -> list[WebhookDelivery]:
    """Return the next deliveries to send, those that wait longest first."""
    due = WebhookDelivery.objects.filter(
        status=WebhookDelivery.Status.WAITING, next_attempt_at__lte=now, webhook__is_enabled=True
    )
    return list(due.select_related("webhook", "webhook__workspace").order_by("next_attempt_at", "id")[:BATCH])


def deliver(delivery: WebhookDelivery, *, allowed: Collection[str], now: datetime) -> bool:
    """Send one message; tell whether it was taken (2xx). A message may arrive twice: its id stays the same.

    Only one worker tries: the attempt is counted, and the next one set, before anything is sent.
    """
    pause = min(FIRST_PAUSE * 4**delivery.attempt_count, LONGEST_PAUSE)
    claimed = WebhookDelivery.objects.filter(
        pk=delivery.pk, status=WebhookDelivery.Status.WAITING, attempt_count=delivery.attempt_count
    ).update(attempt_count=delivery.attempt_count + 1, next_attempt_at=now + pause)
    if not claimed:
        return False
    delivery.attempt_count += 1
    delivery.response_status, delivery.error = _send(delivery, allowed, now)
    is_taken = delivery.response_status is not None and 200 <= delivery.response_status < 300
    if is_taken:
        delivery.status, delivery.sent_at = WebhookDelivery.Status.SENT, now
    elif delivery.attempt_count >= MAX_ATTEMPTS:
        delivery.status = WebhookDelivery.Status.FAILED
    delivery.save(update_fields=["status", "sent_at", "response_status", "error"])
    return is_taken


def _send(delivery: WebhookDelivery, allowed: Collection[str], now: datetime) -> tuple[int | None, str]:
    told = AuditRecord.objects.select_related("workspace").get(pk=delivery.record_id)
    body = json.dumps(message(told), ensure_ascii=False).encode()
    timestamp = str(int(now.timestamp()))
    headers = {
        "Content-Type": "application/json",
        "User-Agent": "MemoryHub",
        "X-MemoryHub-Event": told.action,
        "X-MemoryHub-Delivery": str(delivery.pk),
        "X-MemoryHub-Timestamp": timestamp,
        "X-MemoryHub-Signature": signature(secret_of(delivery.webhook), timestamp, body),
    }
    try:
        with open_client(allowed=allowed, deadline_seconds=TIMEOUT_SECONDS) as http:
            response = http.post(delivery.webhook.url, content=body, headers=headers)
    except (httpx2.HTTPError, MemoryHubError) as error:
        return None, str(error)[:300]
    return response.status_code, "" if response.is_success else f"it answered {response.status_code}"


def message(told: AuditRecord) -> dict[str, object]:
    """Return what a webhook is told: what happened and where, never memory content."""
    return {
        "id": told.pk,
        "event": told.action,
        "workspace": told.workspace.slug if told.workspace else None,
        "session": told.session_id,
        "text": told.text,
        "detail": told.detail,
        "actor": {"kind": told.actor_kind, "name": told.actor_name},
        "at": told.at.isoformat(),
    }
