"""Sessions: list, open, append, context, statistics, clear, import and export."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

from memoryhub.agents.api_tokens import Caller, require
from memoryhub.agents.operations.reading import record_access
from memoryhub.agents.operations.serving import served_key, served_record, served_run, served_session
from memoryhub.agents.operations.writing import writes
from memoryhub.conversations.appending import record_entries
from memoryhub.conversations.context import build_context, context_text, seen_in
from memoryhub.find_by_name import find_session
from memoryhub.forgetting.additions import kept_key, remembered_text
from memoryhub.forgetting.import_filter import remembered
from memoryhub.lib.content_check.stand_ins import pk_in
from memoryhub.lib.errors import NotFound
from memoryhub.lib.http.pagination import rows_after
from memoryhub.lib.message_shapes import ITEMS
from sessions_app.models import Entry, Run, Session, Summary
from sessions_app.querysets import IN_CONVERSATION
from sessions_app.services.access_log import Seen, seen_entries
from sessions_app.services.audit import By
from sessions_app.services.compressing import folding
from sessions_app.services.lifecycle import clear_session, open_session
from sessions_app.services.parsing import read_batch
from sessions_app.services.runs import request_run
from sessions_app.services.stats import figures_of
from sessions_app.services.transfer import export_session, import_session, problems_of

Document = dict[str, Any]
CHUNK = 100  # rows to parse at once; a row may become several entries
NAME_BYTES = 200  # of a file name; file systems allow 255


def list_sessions(
    caller: Caller, *, cursor: str = "", limit: int = 50, key: str = "", channel: str = ""
) -> tuple[list[Document], str | None]:
    """Return sessions, latest first, and the next cursor."""
    require(caller, "read")
    sessions = Session.objects.filter(workspace=caller.workspace)
    sessions = sessions.filter(key=kept_key(caller.workspace, _known_key(caller, key))) if key else sessions
    sessions = sessions.filter(channel=channel) if channel else sessions
    rows, next_cursor = rows_after(sessions, order=("-updated_at", "-id"), cursor=cursor, size=limit)
    return [served_session(row) for row in rows], next_cursor


@writes
def open_one(caller: Caller, key: str, *, title: str = "", now: datetime) -> tuple[Document, bool]:
    """Return the session of a key, created if missing, and whether it is new. Raises Invalid."""
    require(caller, "append")
    title = remembered_text(caller.workspace, title)
    known = kept_key(caller.workspace, _known_key(caller, key))
    session, is_new = open_session(caller.workspace, known, by=By(caller.actor, now), title=title)
    return served_session(session), is_new


def get_session(caller: Caller, pk: int) -> Session:
    """Return a session of the caller's workspace. Raises NotFound."""
    session = Session.objects.select_related("workspace").filter(workspace=caller.workspace, pk=pk).first()
    if session is None:
        raise NotFound(f"This workspace has no session {pk}.")
    return session


def show_session(caller: Caller, pk: int) -> Document:
    require(caller, "read")
    return served_session(get_session(caller, pk))


def append(caller: Caller, key: str, rows: Sequence[Any], *, now: datetime) -> Document:
    """Append entries to the session of a key, all or none. The session is created if missing.

    Forgotten content is left out, also in the key that is returned.
    ``rows``: see ``sessions_app.services.parsing.read_batch``. Raises Invalid.
    """
    require(caller, "append")
    records = read_batch(rows, now=now)
    appended = record_entries(caller.workspace, _known_key(caller, key), records, by=By(caller.actor, now))
    return {
        "session": appended.session.pk,
        "key": served_key(appended.session),
        "epoch": appended.epoch,
        "first": appended.first_position,
        "last": appended.first_position + appended.entry_count - 1,
        "added": 0 if appended.is_repeat else appended.entry_count,
    }


def list_entries(
    caller: Caller,
    pk: int,
    *,
    now: datetime,
    cursor: str = "",
    limit: int = 50,
    epoch: int | None = None,
    active: bool = False,
) -> tuple[list[Document], str | None]:
    """Return a session's entries in order, from its current epoch or another."""
    require(caller, "read")
    session = get_session(caller, pk)
    entries = Entry.objects.filter(session=session, epoch=session.epoch if epoch is None else epoch)
    if active:
        entries = entries.in_conversation().filter(
            epoch=session.epoch, summary=None, position__gte=session.last_consolidated
        )
    rows, next_cursor = rows_after(entries, order=("position",), cursor=cursor, size=limit)
    record_access(caller, "entries.read", seen_entries(rows), now)
    return [_entry(row) for row in rows], next_cursor


def read_session(
    caller: Caller, key: str, *, cursor: str = "", limit: int = 30, now: datetime
) -> tuple[list[Document], str | None]:
    """Return the last entries of a session's current epoch in order, and the cursor of those before them.

    Entries that the program added itself, and those that were rewound, are left out. Raises NotFound.
    """
    require(caller, "read")
    session = find_session(caller.workspace, kept_key(caller.workspace, key))
    entries = Entry.objects.filter(IN_CONVERSATION, session=session, epoch=session.epoch)
    entries = entries.exclude(kind=Entry.Kind.CONTEXT)
    rows, next_cursor = rows_after(entries, order=("-position",), cursor=cursor, size=limit)
    record_access(caller, "entries.read", seen_entries(rows), now)
    return [_entry(row) for row in reversed(rows)], next_cursor


def read_context(
    caller: Caller,
    session: Session,
    *,
    now: datetime,
    max_messages: int = 500,
    max_tokens: int | None = None,
    text: bool = False,
) -> Document:
    """Return a session's context: ``messages``, their ``tokens``, and the entries ``dropped``, with the reason."""
    require(caller, "read")
    context = build_context(session, max_messages=max_messages, max_tokens=max_tokens)
    record_access(caller, "context.read", seen_in(context), now)
    return {
        "session": session.pk,
        "key": served_key(session),
        "messages": context.messages,
        "tokens": context.tokens,
        "dropped": [{"position": one.position, "why": one.why} for one in context.dropped],
        "text": context_text(context) if text else None,
    }


def context_of_key(caller: Caller, key: str, *, now: datetime, **limits: Any) -> Document:
    """Return the context of a session by key. Raises NotFound."""
    require(caller, "read")
    return read_context(caller, find_session(caller.workspace, kept_key(caller.workspace, key)), now=now, **limits)


def session_figures(caller: Caller, pk: int) -> Document:
    """Return a session's token counts before and after compression."""
    require(caller, "read")
    session = get_session(caller, pk)
    figures = figures_of(session)
    current = Entry.objects.filter(session=session, epoch=session.epoch)
    return {
        "session": session.pk,
        "entries": session.entry_count,
        "active_entries": session.active_entry_count,
        "compressed_entries": current.exclude(summary=None).count(),
        "summaries": Summary.objects.filter(session=session, epoch=session.epoch, parent=None).count(),
        "original_tokens": figures.original_tokens,
        "active_tokens": session.active_tokens,
        "summary_tokens": session.summary_tokens,
        "ratio": figures.ratio,
        "last_consolidated": session.last_consolidated,
    }


@writes
def ask_for_run(
    caller: Caller, pk: int, kind: str, *, options: dict[str, str] | None = None, now: datetime
) -> Document:
    """Request a compression or consolidation of a session, or return the one that is waiting."""
    require(caller, "consolidate")
    session = get_session(caller, pk)
    given = {name: remembered_text(caller.workspace, text) for name, text in (options or {}).items()}
    run, _ = request_run(session, kind, options=given, by=By(caller.actor, now))
    return served_run(Run.objects.select_related("workspace", "session").get(pk=run.pk))


@writes
def clear(caller: Caller, pk: int, rows: Sequence[Any] = (), *, now: datetime) -> Document:
    """Clear a session by starting a new epoch, with ``rows`` as its entries; people can still read the earlier one.

    ``rows``: see ``append``. If they are invalid, nothing is cleared. Raises SessionBusy, Invalid.
    """
    require(caller, "edit")
    batches = [read_batch(rows[start : start + CHUNK], now=now) for start in range(0, len(rows), CHUNK)]
    by = By(caller.actor, now)
    session = clear_session(get_session(caller, pk), by=by)
    for records in batches:
        session = record_entries(caller.workspace, session.key, records, by=by).session
    return served_session(session)


def archive_and_clear(caller: Caller, session: Session, *, now: datetime) -> Document:
    """Request a run that consolidates all entries of a session and then clears it. Returns the run."""
    require(caller, "edit")
    run = folding.archive_and_clear(session, by=By(caller.actor, now))
    return served_run(Run.objects.select_related("workspace", "session").get(pk=run.pk))


def clear_session_of_key(caller: Caller, key: str, *, archive: bool, now: datetime) -> Document:
    """Clear the session with a key, or request a run that archives it first. Returns its key, epoch and run."""
    require(caller, "edit")
    session = find_session(caller.workspace, kept_key(caller.workspace, key))
    if archive:
        run = archive_and_clear(caller, session, now=now)
        return {"session": served_key(session), "epoch": session.epoch, "run": run["id"]}
    return {"session": served_key(session), "epoch": clear(caller, session.pk, now=now)["epoch"], "run": None}


def export_one(
    caller: Caller, pk: int, *, layout: str = "", epoch: int | None = None, now: datetime
) -> tuple[str, str]:
    """Return the name and text of a session's file in a program's format. Raises Invalid."""
    require(caller, "read")
    session = get_session(caller, pk)
    name, text = export_session(session, layout, epoch=epoch, serve=partial(served_record, session))
    chosen = session.epoch if epoch is None else epoch
    last = Entry.objects.filter(session=session, epoch=chosen).order_by("-position").first()
    seen = [Seen("entries", 0, last.position, session.pk, chosen)] if last else []
    record_access(caller, "session.exported", seen, now)
    return name, text


def import_one(caller: Caller, name: str, content: str, *, now: datetime) -> Document:
    """Import the text of a session file of nanobot, Grip or AgTerm. Raises Invalid."""
    require(caller, "edit")
    with tempfile.TemporaryDirectory(prefix="memoryhub-session-") as folder:
        safe = "".join(letter if letter.isalnum() or letter in "-._" else "_" for letter in name)
        short = safe.encode()[-NAME_BYTES:].decode(errors="ignore").lstrip(".")
        path = Path(folder) / (short or "session.json")
        path.write_bytes(content.encode(errors="surrogatepass"))
        counts = import_session(caller.workspace, path, by=By(caller.actor, now), remember=remembered)
    return {
        "added": dict(+counts.added),
        "updated": dict(+counts.updated),
        "unchanged": dict(+counts.unchanged),
        "problems": problems_of(counts),
    }


def _known_key(caller: Caller, key: str) -> str:
    """Return the key that a stand-in is for, else the key itself."""
    pk = pk_in(key, "session")
    known = Session.objects.filter(workspace=caller.workspace, pk=pk).first() if pk else None
    return known.key if known else key


def _entry(entry: Entry) -> Document:
    return {
        "id": entry.pk,
        "epoch": entry.epoch,
        "position": entry.position,
        "kind": entry.kind,
        "role": entry.role,
        "content": entry.content,
        "name": entry.name or None,
        "tool_call_id": entry.tool_call_id or None,
        "tool_calls": entry.tool_calls or [],
        "tokens": entry.token_count,
        "occurred_at": entry.occurred_at,
        "summary": entry.summary_id,
        "injected": entry.is_injected,
        "rewound": entry.is_rewound,
        "metadata": _stored(entry, "metadata", dict),
        "items": _stored(entry, ITEMS, list),
    }


def _stored(entry: Entry, name: str, kind: type) -> Any:
    """Return an extra field of an entry, None if it has another type."""
    value = entry.extra.get(name)
    return value if isinstance(value, kind) else None
