"""Open, rename, restart and delete sessions."""

from __future__ import annotations

import hashlib
from datetime import datetime
from typing import Any

from django.db import IntegrityError, transaction
from django.db.models import Max
from django.utils.crypto import salted_hmac
from django.utils.translation import gettext

from memoryhub.lib.database import db_retry
from memoryhub.lib.errors import Busy, Invalid
from memoryhub.lib.tokens import count_tokens
from memoryhub.lib.validation import clean_text, is_visible_line
from sessions_app.models import DeletedSession, Entry, Run, Session, Summary, Workspace
from sessions_app.models.conversations import KEY_LENGTH, channel_of
from sessions_app.models.runs import UNSETTLED_STATUSES
from sessions_app.services.audit import By, open_guard, record
from sessions_app.services.entries import lock_session, session_by_key
from sessions_app.services.totals import forget_days, recount_session

MAX_TITLE = 500
DIGEST_BYTES = 8


class SessionBusy(Busy):
    """The session has a running run."""

    code = "session_busy"


def check_key(key: str) -> str:
    """Return a valid key: 1 to 512 characters on one line, with a visible one. Raises Invalid."""
    if not isinstance(key, str) or not key.strip():
        raise Invalid(gettext("A session needs a key, for example cli:main."), code="bad_session_key")
    if len(key) > KEY_LENGTH:
        words = gettext("A session key has at most %(most)s characters; this one has %(count)s.")
        raise Invalid(words % {"most": KEY_LENGTH, "count": f"{len(key):,}"}, code="bad_session_key")
    key = clean_text(key)
    if not is_visible_line(key):
        message = gettext("A session key can't have line breaks, control characters or direction overrides.")
        raise Invalid(message, code="bad_session_key")
    return key


def open_session(workspace: Workspace, key: str, *, by: By, title: str = "") -> tuple[Session, bool]:
    """Get or create the session with a key; return it and whether it is new. Raises Invalid."""
    key = check_key(key)
    if known := session_by_key(workspace, key):
        return known, False
    try:
        return _create(workspace, key, title, by), True
    except IntegrityError:  # opened concurrently
        return Session.objects.select_related("workspace").get(workspace=workspace, key=key), False


@db_retry.retried
@transaction.atomic
def _create(workspace: Workspace, key: str, title: str, by: By) -> Session:
    session = Session.objects.create(
        workspace=workspace,
        key=key,
        channel=channel_of(key),
        title=clean_text(title)[:MAX_TITLE],
        created_at=by.at,
        updated_at=by.at,
    )
    _audit(session, by, "session.opened", "opened")
    return session


@transaction.atomic
def rename_session(session: Session, title: str, *, by: By) -> None:
    """Set a session's title; an empty title removes it."""
    locked = lock_session(session.pk)
    locked.title = clean_text(" ".join(title.split()))[:MAX_TITLE]
    locked.save(update_fields=["title"])
    _audit(locked, by, "session.renamed", "renamed")


@db_retry.retried
@transaction.atomic
def clear_session(session: Session, *, by: By) -> Session:
    """Restart a session: the next entry starts a new epoch; earlier entries stay readable.

    Raises SessionBusy while a run is running on the session.
    """
    locked = lock_session(session.pk)
    running = Run.objects.filter(session=locked, status=Run.Status.RUNNING).first()
    if running:
        words = gettext("Run %(number)s is running on this session. Wait for it, or cancel it first.")
        raise SessionBusy(words % {"number": running.pk})
    restart_session(locked, by=by)
    return locked


def restart_session(session: Session, *, by: By) -> None:
    """Start a new epoch of a locked session and cancel queued runs; does nothing if the current epoch is empty.

    Call inside a transaction. The session's summary text becomes a summary of the old epoch.
    """
    if not session.next_position and not session.summary_text:
        return
    waiting = Run.objects.filter(session=session, status__in=(Run.Status.QUEUED, Run.Status.HELD, Run.Status.PARKED))
    waiting.update(status=Run.Status.CANCELLED, finished_at=by.at, error="The session was cleared.")
    if session.summary_text:
        _keep_summary_text(session, by.at)
    newest = Entry.objects.filter(session=session).aggregate(n=Max("epoch"))["n"]
    entries = session.next_position
    session.epoch = max(session.epoch, newest or 0) + 1
    session.last_consolidated = session.next_position = 0
    session.summary_text = ""
    session.updated_at = by.at
    session.save(update_fields=["epoch", "last_consolidated", "next_position", "summary_text", "updated_at"])
    recount_session(session)
    _audit(session, by, "session.cleared", "cleared", epoch=session.epoch, entries=entries)


def _keep_summary_text(session: Session, now: datetime) -> None:
    Summary.objects.create(
        workspace_id=session.workspace_id,
        session=session,
        epoch=session.epoch,
        content=session.summary_text,
        method=Summary.Method.IMPORTED,
        token_count=count_tokens(session.summary_text),
        original_token_count=0,
        entry_count=0,
        first_position=0,
        last_position=0,
        created_at=now,
    )


@db_retry.retried
def delete_session(session: Session, *, confirmation: str, reason: str, by: By) -> DeletedSession:
    """Permanently delete a session with its entries and summaries, leaving a tombstone. Its runs are kept, emptied.

    ``confirmation``: the session's key, typed by the operator. A running run is cancelled. Raises Invalid.
    """
    if confirmation != session.key:
        raise Invalid(
            gettext("That isn't the session's key. Type it exactly to delete the session."), code="not_confirmed"
        )
    with open_guard(f"session {session.pk} is deleted"):
        session = lock_session(session.pk)
        entries = Entry.objects.filter(session=session)
        digest, records = hashlib.sha256(), bytearray()
        in_order = entries.order_by("epoch", "position").values_list("source_id", "source_hash")
        for source_id, source_hash in in_order.iterator():
            digest.update(source_hash.encode())
            records += record_digest(source_id, source_hash) if source_id else b""
        facts = {
            "entry_count": session.entry_count,
            "summary_count": Summary.objects.filter(session=session).count(),
            "total_tokens": session.total_tokens,
            "content_hash": digest.hexdigest(),
            "digests": bytes(records),
            "deleted_by": by.actor.name[:200],
            "reason": clean_text(reason),
            "deleted_at": by.at,
        }
        tombstone, _ = DeletedSession.objects.update_or_create(
            workspace=session.workspace, key=session.key, defaults=facts
        )
        _audit(
            session,
            by,
            "session.deleted",
            f"deleted with {session.entry_count:,} entries",
            entries=session.entry_count,
            tokens=session.total_tokens,
            before_hash=digest.hexdigest(),
        )
        forget_days(session)
        _keep_run_numbers(session, by.at)
        entries.update(summary=None)
        session.delete()
    return tombstone


def record_digest(source_id: str, source_hash: str) -> bytes:
    """Return what identifies a record of a deleted session in ``DeletedSession.digests``."""
    return hashlib.sha256(f"{source_id}\0{source_hash}".encode()).digest()[:DIGEST_BYTES]


def _keep_run_numbers(session: Session, now: datetime) -> None:
    """Keep the runs of a deleted session without content, because revisions refer to them."""
    runs = Run.objects.filter(session=session)
    runs.filter(status__in=UNSETTLED_STATUSES).update(status=Run.Status.CANCELLED, finished_at=now)
    runs.update(session=None, proposal={}, error="", stage="", lease_owner="", lease_expires_at=None)


def forgotten_key(workspace: Workspace, key: str) -> str:
    """Return the keyed hash (64 hex digits) that replaces a forgotten key in a tombstone."""
    return salted_hmac(f"memoryhub.key.{workspace.pk}", key, algorithm="sha256").hexdigest()


def redacted_key(workspace: Workspace, key: str) -> str:
    """Return the key that a session has instead of one with forgotten words."""
    return f"forgotten:{forgotten_key(workspace, key)[:16]}"


@transaction.atomic
def allow_again(tombstone: DeletedSession, *, by: By) -> None:
    """Delete a tombstone, so that an import can bring the session back."""
    record(
        by,
        "session.allowed",
        "tombstone",
        tombstone.pk,
        f"{tombstone.key}: re-import allowed",
        workspace=tombstone.workspace,
    )
    tombstone.delete()


def _audit(session: Session, by: By, action: str, words: str, *, before_hash: str = "", **detail: Any) -> None:
    record(
        by,
        action,
        "session",
        session.pk,
        f"{session.key}: {words}",
        workspace=session.workspace,
        session=session,
        before_hash=before_hash,
        detail=detail,
    )
