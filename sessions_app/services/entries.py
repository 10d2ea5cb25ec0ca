"""Append entries: the only place that counts their tokens and assigns positions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from datetime import datetime
from functools import partial

from django.db import connection, transaction
from django.utils.translation import gettext

from memoryhub.lib.database import db_retry
from memoryhub.lib.database.prepared import PreparedRows, insert_row
from memoryhub.lib.errors import Conflict, NotFound
from memoryhub.lib.layouts.records import EntryRecord
from memoryhub.lib.metrics import count_appended
from memoryhub.lib.search.index_maintenance import bulk_indexing
from memoryhub.lib.tokens import TokenCounter, counter_for
from memoryhub.lib.validation import json_text
from sessions_app.models import AppendReceipt, Entry, Session, Summary, Workspace
from sessions_app.services.audit import By, record
from sessions_app.services.parsing import batch_hash
from sessions_app.services.totals import add_entries
from sessions_app.services.workspaces import share_workspace

Remember = Callable[[Sequence[EntryRecord]], Sequence[EntryRecord]]
BATCH_ROWS = 500
MANY = 50  # entries per batch from which they are indexed in bulk
MAX_KEY_LENGTH = 200
_BY_KEY = PreparedRows(2, lambda workspace, key: Session.objects.filter(workspace=workspace, key=key))
_LOCKED = PreparedRows(1, lambda pk: Session.objects.select_for_update().filter(pk=pk))


@dataclass(frozen=True)
class Appended:
    """The positions of a batch: ``first_position`` to ``first_position + entry_count - 1`` in ``epoch``."""

    session: Session
    epoch: int
    first_position: int
    entry_count: int
    is_repeat: bool = False


@db_retry.retried
@transaction.atomic
def append(
    session: Session,
    records: Sequence[EntryRecord],
    *,
    by: By,
    idempotency_key: str = "",
    remember: Remember = lambda records: records,
) -> Appended:
    """Append a batch to a session's current epoch, atomically and durably.

    Writers lock the session's row, so that positions have no gaps. Repeating a batch with the same idempotency key
    returns the first result and adds nothing. ``remember``: removes forgotten content. Raises Conflict, NotFound.
    """
    if len(idempotency_key) > MAX_KEY_LENGTH:
        raise Conflict(f"An idempotency key has at most {MAX_KEY_LENGTH} characters.", code="idempotency_key_reused")
    share_workspace(session.workspace_id)
    session = _locked(session)
    if idempotency_key and (known := _known(session, records, idempotency_key)):
        return known
    first = session.next_position
    entries = write_entries(session, remember(records), epoch=session.epoch, first_position=first, now=by.at)
    add_entries(session, entries, now=by.at)
    if idempotency_key:
        AppendReceipt.objects.create(
            session=session,
            idempotency_key=idempotency_key,
            body_hash=batch_hash(records),
            epoch=session.epoch,
            first_position=first,
            entry_count=len(entries),
            created_at=by.at,
        )
    _audit(session, entries, by)
    transaction.on_commit(partial(count_appended, len(entries)))
    return Appended(session, session.epoch, first, len(entries))


def _known(session: Session, records: Sequence[EntryRecord], idempotency_key: str) -> Appended | None:
    receipt = AppendReceipt.objects.filter(session=session, idempotency_key=idempotency_key).first()
    if receipt is None:
        return None
    if receipt.body_hash != batch_hash(records):
        raise Conflict(
            "This idempotency key was used with different entries. Send a new key.", code="idempotency_key_reused"
        )
    return Appended(session, receipt.epoch, receipt.first_position, receipt.entry_count, is_repeat=True)


def _audit(session: Session, entries: Sequence[Entry], by: By) -> None:
    first, last = entries[0], entries[-1]
    words = f"entry #{first.position}" if len(entries) == 1 else f"entries #{first.position} to #{last.position}"
    record(
        by,
        "entry.added",
        "session",
        session.pk,
        f"{session.key}: added {words}",
        workspace=session.workspace,
        session=session,
        detail={
            "epoch": session.epoch,
            "first": first.position,
            "last": last.position,
            "kinds": sorted({entry.kind for entry in entries}),
            "tokens": sum(entry.token_count for entry in entries),
        },
    )


def lock_session(pk: int) -> Session:
    """Lock a session until the end of the transaction. Raises NotFound."""
    locked = Session.objects.select_for_update(of=("self",)).select_related("workspace").filter(pk=pk).first()
    if locked is None:
        raise NotFound(gettext("The session was deleted."), code="session_gone")
    return locked


def _locked(session: Session) -> Session:
    """Lock a session as ``lock_session`` does, and keep its workspace, which was just read."""
    locked = _LOCKED.first(session.pk)
    if locked is None:
        raise NotFound(gettext("The session was deleted."), code="session_gone")
    locked.workspace = session.workspace
    return locked


def session_by_key(workspace: Workspace, key: str) -> Session | None:
    """Return the session of a workspace with this key, None if there is none."""
    found = _BY_KEY.first(workspace.pk, key)
    if found is not None:
        found.workspace = workspace
    return found


def write_entries(
    session: Session,
    records: Sequence[EntryRecord],
    *,
    epoch: int,
    first_position: int,
    now: datetime,
    summaries: Mapping[str, Summary] | None = None,
) -> list[Entry]:
    """Insert records as entries from ``first_position``. The caller updates the totals (see ``totals``).

    ``summaries``: by the agent's id, for records that belong to one. Raises IntegrityError if a position exists.
    """
    by_id = summaries or {}
    counter = counter_for(session.workspace.model)
    entries = [
        _entry(session, record, epoch, position, by_id.get(record.summary_source_id), now, counter)
        for position, record in enumerate(records, first_position)
    ]
    if len(entries) == 1:
        insert_row(entries[0])
        return entries
    many = bulk_indexing(connection, Entry._meta.db_table) if len(records) >= MANY else nullcontext()
    with many:
        return Entry.objects.bulk_create(entries, batch_size=BATCH_ROWS)


def count_entry_tokens(record: EntryRecord, counter: TokenCounter) -> int:
    """Return the tokens of an entry's content and of its tool calls."""
    calls = json_text([call["function"] for call in record.tool_calls]) if record.tool_calls else ""
    return counter.count(record.content) + (counter.count(calls) if calls else 0)


def hashes_in_order(session: Session, epoch: int) -> list[str]:
    rows: Iterable[str] = (
        Entry.objects.filter(session=session, epoch=epoch).order_by("position").values_list("source_hash", flat=True)
    )
    return list(rows)


def _entry(
    session: Session,
    record: EntryRecord,
    epoch: int,
    position: int,
    summary: Summary | None,
    now: datetime,
    counter: TokenCounter,
) -> Entry:
    counted = record.token_count
    return Entry(
        workspace_id=session.workspace_id,
        session=session,
        epoch=epoch,
        position=position,
        kind=record.kind,
        role=record.role,
        content=record.content,
        name=record.name,
        tool_call_id=record.tool_call_id,
        tool_calls=record.tool_calls,
        token_count=count_entry_tokens(record, counter) if counted is None else counted,
        token_method=counter.method if counted is None else "source",
        occurred_at=record.occurred_at,
        occurred_at_text=record.occurred_at_text,
        source_id=record.source_id,
        source_hash=record.source_hash,
        source_fields=record.source_fields,
        extra=record.extra,
        summary=summary,
        is_injected=record.is_injected,
        is_rewound=record.is_rewound,
        recorded_at=now,
    )
