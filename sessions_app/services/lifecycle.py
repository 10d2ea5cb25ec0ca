"""Sessions as a whole: opened, renamed, begun anew, deleted."""

from __future__ import annotations

import hashlib
from datetime import datetime
from typing import Any

from django.db import IntegrityError, transaction
from django.db.models import Max
from django.utils.crypto import salted_hmac
from django.utils.translation import gettext

from memoryhub.lib import db_retry
from memoryhub.lib.errors import MemoryHubError
from memoryhub.lib.tokens import count_tokens
from memoryhub.lib.validation import clean_text
from sessions_app.models import DeletedSession, Entry, Run, Session, Summary, Workspace
from sessions_app.models.conversations import KEY_LENGTH
from sessions_app.models.runs import UNSETTLED_STATUSES
from sessions_app.services.audit import By, open_guard, record
from sessions_app.services.entries import lock_session
from sessions_app.services.totals import forget_days, recount_session

MAX_TITLE = 500


class BadKey(MemoryHubError):
    """A session key that can't be one."""

    code = "bad_session_key"


class SessionBusy(MemoryHubError):
    """A run of the session is under way."""

    code = "session_busy"


class NotConfirmed(MemoryHubError):
    """What was typed to confirm a deletion isn't the session's key."""

    code = "not_confirmed"


def check_key(key: str) -> str:
    """Return a key as it is stored. Any text is one, 1 to 512 characters. Raises BadKey."""
    if not isinstance(key, str) or not key.strip():
        raise BadKey(gettext("A session needs a key, for example cli:main."))
    if len(key) > KEY_LENGTH:
        words = gettext("A session key has at most %(most)s characters; this one has %(count)s.")
        raise BadKey(words % {"most": KEY_LENGTH, "count": f"{len(key):,}"})
    return clean_text(key)


def open_session(workspace: Workspace, key: str, *, by: By, title: str = "") -> tuple[Session, bool]:
    """Return the session of a key, made where it isn't there, and whether it is new. Raises BadKey."""
    key = check_key(key)
    known = Session.objects.select_related("workspace").filter(workspace=workspace, key=key).first()
    if known:
        return known, False
    try:
        return _create(workspace, key, title, by), True
    except IntegrityError:  # someone else opened it at this very moment
        return Session.objects.select_related("workspace").get(workspace=workspace, key=key), False


@db_retry.retried
@transaction.atomic
def _create(workspace: Workspace, key: str, title: str, by: By) -> Session:
    channel, colon, _ = key.partition(":")
    session = Session.objects.create(
        workspace=workspace,
        key=key,
        channel=channel if colon else "",
        title=clean_text(title)[:MAX_TITLE],
        created_at=by.at,
        updated_at=by.at,
    )
    _tell(session, by, "session.opened", "opened")
    return session


@transaction.atomic
def rename_session(session: Session, title: str, *, by: By) -> None:
    """Give a session a title that pages show; its key stays. An empty title takes it away."""
    locked = lock_session(session.pk)
    locked.title = clean_text(" ".join(title.split()))[:MAX_TITLE]
    locked.save(update_fields=["title"])
    _tell(locked, by, "session.renamed", "renamed")


@db_retry.retried
@transaction.atomic
def clear_session(session: Session, *, by: By) -> Session:
    """Begin a session anew: the next entry opens an epoch, all earlier ones stay readable.

    Raises SessionBusy while a run is at work on it: its result belongs to what is about to be closed.
    """
    locked = lock_session(session.pk)
    running = Run.objects.filter(session=locked, status=Run.Status.RUNNING).first()
    if running:
        words = gettext("Run %(number)s is at work on this session: wait for it, or cancel it first.")
        raise SessionBusy(words % {"number": running.pk})
    restart_session(locked, by=by)
    return locked


def restart_session(session: Session, *, by: By) -> None:
    """Open the next epoch of a locked session and cancel what waits for the old one; an empty epoch stays.

    Call inside a transaction. The summary text of the old epoch becomes one of its summaries.
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
    _tell(session, by, "session.cleared", "cleared", epoch=session.epoch, entries=entries)


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
    """Remove a session with its entries and summaries, for ever; a tombstone tells of it. Runs keep their numbers.

    ``confirmation`` is the session's key, typed by the operator. A run under way is cancelled: its reply finds no
    session. Raises NotConfirmed.
    """
    if confirmation != session.key:
        raise NotConfirmed(gettext("That is not the session's key: type it exactly to delete the session."))
    with open_guard(f"session {session.pk} is deleted"):
        session = lock_session(session.pk)
        entries = Entry.objects.filter(session=session)
        digest = hashlib.sha256()
        for source_hash in entries.order_by("epoch", "position").values_list("source_hash", flat=True).iterator():
            digest.update(source_hash.encode())
        facts = {
            "entry_count": session.entry_count,
            "summary_count": Summary.objects.filter(session=session).count(),
            "total_tokens": session.total_tokens,
            "content_hash": digest.hexdigest(),
            "deleted_by": by.actor.name[:200],
            "reason": clean_text(reason),
            "deleted_at": by.at,
        }
        tombstone, _ = DeletedSession.objects.update_or_create(
            workspace=session.workspace, key=session.key, defaults=facts
        )
        _tell(
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


def _keep_run_numbers(session: Session, now: datetime) -> None:
    """Keep what runs did and cost, without a word of what was said: revisions of the memory name them."""
    runs = Run.objects.filter(session=session)
    runs.filter(status__in=UNSETTLED_STATUSES).update(status=Run.Status.CANCELLED, finished_at=now)
    runs.update(session=None, proposal={}, error="", stage="", lease_owner="", lease_expires_at=None)


def forgotten_key(workspace: Workspace, key: str) -> str:
    """Return what a tombstone has in the place of a key that is forgotten: a keyed hash of it, 64 hex digits."""
    return salted_hmac(f"memoryhub.key.{workspace.pk}", key, algorithm="sha256").hexdigest()


@transaction.atomic
def allow_again(tombstone: DeletedSession, *, by: By) -> None:
    """Take a tombstone away, so that the next import may bring the session back from its file."""
    record(
        by,
        "session.allowed",
        "tombstone",
        tombstone.pk,
        f"{tombstone.key} may be imported again",
        workspace=tombstone.workspace,
    )
    tombstone.delete()


def _tell(session: Session, by: By, action: str, words: str, *, before_hash: str = "", **detail: Any) -> None:
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
