"""Webhooks: signed messages about activity, retried with growing pauses, never sent to a link-local address."""

from __future__ import annotations

import base64
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
from memoryhub.lib.http.safe_http import check_url, open_client
from memoryhub.models import Job
from sessions_app.models import AuditRecord, Webhook, WebhookDelivery, Workspace
from sessions_app.services.audit import EVENTS, By, record

MAX_ATTEMPTS = 8
FIRST_PAUSE = timedelta(seconds=30)  # four times as long after each failure, a day at most
LONGEST_PAUSE = timedelta(days=1)
PAUSES = tuple(min(FIRST_PAUSE * 4**failures, LONGEST_PAUSE) for failures in range(MAX_ATTEMPTS - 1))
TIMEOUT_SECONDS = 10.0
SECRET_PREFIX = "whsec_"  # noqa: S105  no secret


def add_webhook(
    workspace: Workspace, url: str, actions: Sequence[str], *, allowed: Collection[str], by: By
) -> Webhook:
    """Add a webhook for some events, or for all if none is named.

    Raises AddressRefused for an address that the hub wouldn't connect to, Invalid for a duplicate or an unknown
    event.
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
            raise Invalid(gettext("This webhook exists already."), code="bad_webhook")
        record(by, "webhook.added", "webhook", hook.pk, "Webhook added", workspace=workspace)
    return hook


@transaction.atomic
def remove_webhook(hook: Webhook, *, by: By) -> None:
    record(by, "webhook.removed", "webhook", hook.pk, "Webhook removed", workspace=hook.workspace)
    hook.delete()


def secret_of(hook: Webhook) -> str:
    """Return the key that signs a webhook's messages. It is derived from the hub's key and never stored."""
    return salted_hmac(f"memoryhub.webhook.{hook.salt}", str(hook.pk), algorithm="sha256").hexdigest()


def standard_secret_of(hook: Webhook) -> str:
    """Return the same key in the form of the Standard Webhooks specification: ``whsec_`` and its base64."""
    return SECRET_PREFIX + base64.b64encode(bytes.fromhex(secret_of(hook))).decode()


def signature(secret: str, timestamp: str, body: bytes) -> str:
    """Return ``sha256=`` and the hex HMAC-SHA-256 of ``timestamp.body``, as in the header X-MemoryHub-Signature."""
    digest = hmac.new(secret.encode(), timestamp.encode() + b"." + body, hashlib.sha256).hexdigest()
    return f"sha256={digest}"


def standard_signature(secret: str, message_id: str, timestamp: str, body: bytes) -> str:
    """Return ``v1,`` and the base64 HMAC-SHA-256 of ``id.timestamp.body``, as in the header webhook-signature.

    ``secret``: base64, with or without ``whsec_`` in front.
    """
    key = base64.b64decode(secret.removeprefix(SECRET_PREFIX))
    signed = f"{message_id}.{timestamp}.".encode() + body
    return f"v1,{base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()}"


def deliver(delivery: WebhookDelivery, *, allowed: Collection[str], now: datetime) -> bool:
    """Send one message; return whether it was accepted (2xx). A message may arrive twice, with the same id."""
    delivery.attempt_count += 1
    delivery.response_status, delivery.error = _send(delivery, allowed, now)
    delivery.tried_at = now
    is_accepted = delivery.response_status is not None and 200 <= delivery.response_status < 300
    if is_accepted:
        delivery.status, delivery.sent_at = WebhookDelivery.Status.SENT, now
    delivery.save(update_fields=["status", "attempt_count", "tried_at", "sent_at", "response_status", "error"])
    return is_accepted


def give_up(job: Job) -> None:
    """Mark a message as failed if its job ended without sending it."""
    rows = WebhookDelivery.objects.filter(job=job, status="")
    rows.update(status=WebhookDelivery.Status.FAILED)


def _send(delivery: WebhookDelivery, allowed: Collection[str], now: datetime) -> tuple[int | None, str]:
    audited = AuditRecord.objects.select_related("workspace").get(pk=delivery.record_id)
    body = json.dumps(message(audited), ensure_ascii=False).encode()
    headers = {"Content-Type": "application/json", "User-Agent": "MemoryHub", "X-MemoryHub-Event": audited.action}
    headers |= _signed(delivery, str(int(now.timestamp())), body)
    try:
        with open_client(allowed=allowed, deadline_seconds=TIMEOUT_SECONDS) as http:
            response = http.post(delivery.webhook.url, content=body, headers=headers)
    except (httpx2.HTTPError, MemoryHubError) as error:
        return None, str(error)[:300]
    return response.status_code, "" if response.is_success else f"it answered {response.status_code}"


def _signed(delivery: WebhookDelivery, timestamp: str, body: bytes) -> dict[str, str]:
    """Return the headers that sign a message: our own, and those of the Standard Webhooks specification."""
    hook, message_id = delivery.webhook, f"msg_{delivery.pk}"
    return {
        "X-MemoryHub-Delivery": str(delivery.pk),
        "X-MemoryHub-Timestamp": timestamp,
        "X-MemoryHub-Signature": signature(secret_of(hook), timestamp, body),
        "webhook-id": message_id,
        "webhook-timestamp": timestamp,
        "webhook-signature": standard_signature(standard_secret_of(hook), message_id, timestamp, body),
    }


def message(audited: AuditRecord) -> dict[str, object]:
    """Return the body of a message: what happened and where, never memory content."""
    return {
        "id": audited.pk,
        "event": audited.action,
        "workspace": audited.workspace.slug if audited.workspace else None,
        "session": audited.session_id,
        "text": audited.text,
        "detail": audited.detail,
        "actor": {"kind": audited.actor_kind, "name": audited.actor_name},
        "at": audited.at.isoformat(),
    }
