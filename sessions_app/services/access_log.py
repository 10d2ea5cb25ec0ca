"""The access log: who read what. Contains no memory content and is pruned as the settings say.

Changes are in the audit records; what a run read is in the run's positions.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import astuple, dataclass
from datetime import datetime, timedelta

from django.core.cache import cache
from django.db.models import F, Max, Q, QuerySet

from memoryhub.lib.database import db_retry
from memoryhub.lib.database.prepared import insert_row, insert_rows
from memoryhub.models import AccessedRow, AccessRecord, ApiToken
from sessions_app.models import Entry, Session, Workspace
from sessions_app.services.audit import By
from sessions_app.services.stored_settings import hub_settings

MOST_DROPPED = 2_000  # per sweep, so that other writers don't wait long
SAME_SECONDS = 60  # in which a repeated read isn't logged again
ENTRIES, DOCUMENTS = "entries", "documents"


@dataclass(frozen=True, order=True)
class Seen:
    """Rows that were read: by position or revision within ``parent`` (session or document), else by primary key."""

    table: str
    first: int
    last: int
    parent: int = 0
    epoch: int = 0


def seen_rows(table: str, pks: Iterable[int]) -> list[Seen]:
    """Return Seen rows of a table (named as in bulk edits) by primary key."""
    return [Seen(table, pk, pk) for pk in sorted(set(pks))]


def seen_entries(entries: Iterable[Entry]) -> list[Seen]:
    """Return entries as gap-free ranges of positions."""
    places = sorted({(entry.session_id, entry.epoch, entry.position) for entry in entries})
    found: list[Seen] = []
    for session, epoch, position in places:
        last = found[-1] if found else None
        if last and (last.parent, last.epoch, last.last + 1) == (session, epoch, position):
            found[-1] = Seen(ENTRIES, last.first, position, session, epoch)
        else:
            found.append(Seen(ENTRIES, position, position, session, epoch))
    return found


def seen_epoch(session: Session, epoch: int | None) -> list[Seen]:
    """Return all entries of a session's epoch, by default the current one."""
    chosen = session.epoch if epoch is None else epoch
    last = Entry.objects.filter(session=session, epoch=chosen).order_by("-position").first()
    return [Seen(ENTRIES, 0, last.position, session.pk, chosen)] if last else []


def seen_sessions(pks: Iterable[int]) -> list[Seen]:
    """Return all entries of the sessions' current epochs. One query."""
    entries = Entry.objects.filter(session__in=pks, epoch=F("session__epoch")).order_by()
    ends = entries.values_list("session", "epoch").annotate(end=Max("position"))
    return [Seen(ENTRIES, 0, end, session, epoch) for session, epoch, end in ends.order_by("session")]


def seen_revision(document: int, number: int) -> Seen:
    """Return a document at a revision, including its facts then."""
    return Seen(DOCUMENTS, number, number, document)


def reads_by_agents() -> QuerySet[AccessRecord]:
    """Return the reads by agents: what every page and chart counts as such, also if their token was deleted since."""
    return AccessRecord.objects.filter(actor_kind=AccessRecord.AGENT)


def log_access(
    workspace: Workspace, action: str, seen: Sequence[Seen], *, by: By, via: str, token: ApiToken | None = None
) -> None:
    """Log that someone read rows. Does nothing without rows.

    ``action``: ``noun.verb``. Repeated reads within a minute are logged once. If the database can't be written to,
    the read goes on and a warning is logged.
    """
    if not seen:
        return
    who = (workspace.pk, token.pk if token else 0, by.actor, via)
    fingerprint = hashlib.sha256(repr((who, action, [astuple(one) for one in seen])).encode())
    written = f"access:{fingerprint.hexdigest()}"
    if not cache.add(written, 1, SAME_SECONDS):
        return

    def write() -> None:
        access = AccessRecord(
            workspace=workspace,
            token=token,
            actor_kind=by.actor.kind,
            actor_name=by.actor.name[:200],
            via=via,
            action=action,
            row_count=sum(one.last - one.first + 1 for one in seen),
            at=by.at,
        )
        insert_row(access)
        rows = [
            AccessedRow(
                access=access, table=one.table, parent=one.parent, epoch=one.epoch, first=one.first, last=one.last
            )
            for one in seen
        ]
        insert_rows(rows)

    if not db_retry.try_write(write, "an access"):
        cache.delete(written)


def accesses_of_entry(entry: Entry) -> QuerySet[AccessRecord]:
    """Return who read an entry."""
    return _having(
        table=ENTRIES,
        parent=entry.session_id,
        epoch=entry.epoch,
        first__lte=entry.position,
        last__gte=entry.position,
    )


def accesses_of_row(table: str, pk: int) -> QuerySet[AccessRecord]:
    """Return who read a row, by primary key."""
    return _having(table=table, parent=0, first=pk)


def accesses_of_fact(fact: int, document: int, *, born: int, died: int | None) -> QuerySet[AccessRecord]:
    """Return who read a fact: itself, or its document at a revision that contained it."""
    rows = AccessedRow.objects.filter(Q(table="facts", parent=0, first=fact) | _at_revisions(document, born, died))
    return AccessRecord.objects.filter(pk__in=rows.values("access"))


def _at_revisions(document: int, born: int, died: int | None) -> Q:
    until = Q() if died is None else Q(first__lt=died)
    return Q(table=DOCUMENTS, parent=document, first__gte=born) & until


def _having(**conditions: object) -> QuerySet[AccessRecord]:
    return AccessRecord.objects.filter(pk__in=AccessedRow.objects.filter(**conditions).values("access"))


def old_accesses(days: int, now: datetime) -> QuerySet[AccessRecord]:
    return AccessRecord.objects.filter(at__lt=now - timedelta(days=days))


def forget_old_accesses(now: datetime) -> None:
    """Delete records older than the retention setting, a few thousand per call; 0 days keeps them."""
    if days := hub_settings().values["MEMORYHUB_ACCESS_DAYS"]:
        old = old_accesses(days, now).order_by("at").values_list("pk", flat=True)
        if pks := list(old[:MOST_DROPPED]):
            AccessRecord.objects.filter(pk__in=pks).delete()
