"""Detect forged, changed and deleted audit records.

Each record has a MAC of its content with the hub's key, so a record that the hub didn't write is noticed. Seals cover
the ids of older records; each seal's MAC includes the previous one, so a deleted record or seal is noticed. Records
are sealed later and not in their own transaction, because on PostgreSQL that would make all writers wait for each
other.
"""

from __future__ import annotations

import hashlib
import json
import secrets
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from itertools import groupby
from typing import Any

from django.db import transaction
from django.utils.crypto import constant_time_compare, salted_hmac

from memoryhub.lib.database import db_retry
from sessions_app.models import AuditRecord, AuditSeal

SEAL_AFTER = timedelta(minutes=10)  # longer than a transaction may take
MAX_SEALED = 10_000  # records at a time
NONCE_LENGTH = 16
MAC_LENGTH = 64 - NONCE_LENGTH


def audit_mac(record: AuditRecord) -> str:
    """Return a new MAC of a record: a nonce, which makes it unique, and an HMAC of nonce and content."""
    return _mac(record, secrets.token_hex(NONCE_LENGTH // 2))


def _mac(record: AuditRecord, nonce: str) -> str:
    detail = json.loads(json.dumps(record.detail, default=str))  # as it is read from the database
    content = [
        nonce, record.workspace_id, record.session_id, record.actor_kind, record.actor_name, record.action,
        record.object_kind, record.object_id, str(record.text), record.before_hash, record.after_hash, detail,
        record.at.astimezone(UTC).isoformat(),
    ]  # fmt: skip
    text = json.dumps(content, sort_keys=True, default=str)
    return nonce + salted_hmac("memoryhub.audit_record", text, algorithm="sha256").hexdigest()[:MAC_LENGTH]


def has_valid_mac(record: AuditRecord) -> bool:
    return constant_time_compare(record.mac, _mac(record, record.mac[:NONCE_LENGTH]))


@db_retry.retried
@transaction.atomic
def seal_records(now: datetime) -> AuditSeal | None:
    """Seal the oldest records that aren't sealed yet; return the seal, or None if there was nothing to seal."""
    latest = AuditSeal.objects.select_for_update().order_by("-id").first()
    rows = AuditRecord.objects.filter(seal=None, at__lt=now - SEAL_AFTER).order_by("id")
    ids = list(rows.values_list("id", flat=True)[:MAX_SEALED])
    if not ids:
        return None
    mac = _seal_mac(latest.mac if latest else "", ids)
    seal = AuditSeal.objects.create(record_count=len(ids), mac=mac, key_check=key_check(), created_at=now)
    AuditRecord.objects.filter(id__in=ids).update(seal=seal)
    return seal


def _seal_mac(previous: str, ids: Iterable[int]) -> str:
    digest = hashlib.sha256()
    for pk in ids:
        digest.update(f"{pk}\n".encode())
    return salted_hmac("memoryhub.audit_seal", previous + digest.hexdigest(), algorithm="sha256").hexdigest()


def key_check() -> str:
    """Return a short hash that tells whether a seal was made with this hub's secret key."""
    return salted_hmac("memoryhub.audit_seal", "secret key", algorithm="sha256").hexdigest()[:8]


def audit_problems() -> Iterator[tuple[str, str]]:
    """Yield what is wrong, and where, with the audit log and its seals."""
    if AuditSeal.objects.exclude(key_check=key_check()).exists():
        yield "can't be verified: it was written with another secret key", "audit log"
        return
    for record in AuditRecord.objects.order_by("id").iterator(chunk_size=2_000):
        if not has_valid_mac(record):
            yield "wasn't written by this hub, or was changed", f"audit record {record.pk}"
    yield from _seal_problems()


def _seal_problems() -> Iterator[tuple[str, str]]:
    rows: Any = AuditRecord.objects.exclude(seal=None).order_by("seal", "id").values_list("seal", "id")
    sealed = ((seal, [pk for _, pk in group]) for seal, group in groupby(rows.iterator(), key=lambda row: row[0]))
    seal, ids = next(sealed, (None, []))
    previous = ""
    for expected in AuditSeal.objects.order_by("id").iterator():
        while seal is not None and seal < expected.pk:
            yield "its seal was deleted", f"audit record {ids[0]}"
            seal, ids = next(sealed, (None, []))
        own_ids = ids if seal == expected.pk else []
        if not constant_time_compare(expected.mac, _seal_mac(previous, own_ids)):
            yield "a record or an earlier seal was deleted or added", f"audit seal {expected.pk}"
        previous = expected.mac
        if seal == expected.pk:
            seal, ids = next(sealed, (None, []))
    if seal is not None:
        yield "its seal was deleted", f"audit record {ids[0]}"
