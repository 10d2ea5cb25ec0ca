"""Sessions over REST."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from ninja import Query, Router, Status

from memoryhub.agents.operations import conversations as operations
from memoryhub.api import requests, responses
from memoryhub.api.auth import APPEND, CONSOLIDATE, EDIT, READ, caller_of
from memoryhub.api.parameters import AsText, Cursor, Epoch, Limit, MaxMessages, MaxTokens, RowId
from memoryhub.lib.http.downloads import download
from sessions_app.models import Run

router = Router(tags=["Sessions"])
Layout = Literal["", "nanobot", "grip", "agterm"]


@router.get("/sessions", response=responses.Listed[responses.SessionAnswer], auth=READ)
def list_sessions(
    request: HttpRequest,
    cursor: Cursor = "",
    limit: Limit = 50,
    key: Annotated[str, Query(max_length=512)] = "",
    channel: Annotated[str, Query(max_length=512)] = "",
) -> Any:
    """List sessions, latest first. key: only the session with this key."""
    items, next_cursor = operations.list_sessions(
        caller_of(request), cursor=cursor, limit=limit, key=key, channel=channel
    )
    return {"items": items, "next": next_cursor}


@router.post("/sessions", response={200: responses.SessionAnswer, 201: responses.SessionAnswer}, auth=APPEND)
def open_session(request: HttpRequest, body: requests.NewSession) -> Any:
    """Open a session: 201 if it is new, 200 if its key exists."""
    session, is_new = operations.open_one(caller_of(request), body.key, title=body.title, now=timezone.now())
    return Status(201 if is_new else 200, session)


@router.post("/sessions/import", response=responses.ImportAnswer, auth=EDIT)
def import_session(request: HttpRequest, body: requests.SessionFile) -> Any:
    """Import a session file of nanobot, Grip or AgTerm. Importing it again adds only new entries."""
    return operations.import_one(caller_of(request), body.name, body.content, now=timezone.now())


@router.post("/entries", response={201: responses.AppendedAnswer}, auth=APPEND)
def append_to_key(request: HttpRequest, body: requests.NewEntriesOf) -> Any:
    """Append entries to a session by key, all or none. The session is created if it doesn't exist."""
    return Status(201, operations.append(caller_of(request), body.session, body.entries, now=timezone.now()))


@router.get("/context", response=responses.ContextAnswer, auth=READ)
def context_of_key(
    request: HttpRequest,
    session: Annotated[str, Query(min_length=1, max_length=512)],
    max_messages: MaxMessages = 500,
    max_tokens: MaxTokens = None,
    *,
    text: AsText = False,
) -> Any:
    """Return the context of a session by key: memory, summaries, then its entries."""
    limits = {"max_messages": max_messages, "max_tokens": max_tokens}
    return operations.context_of_key(caller_of(request), session, text=text, now=timezone.now(), **limits)


@router.get("/sessions/{pk}", response=responses.SessionAnswer, auth=READ)
def show_session(request: HttpRequest, pk: RowId) -> Any:
    return operations.show_session(caller_of(request), pk)


@router.get("/sessions/{pk}/entries", response=responses.Listed[responses.EntryAnswer], auth=READ)
def list_entries(
    request: HttpRequest,
    pk: RowId,
    cursor: Cursor = "",
    limit: Limit = 50,
    epoch: Epoch = None,
    *,
    active: Annotated[bool, Query(description="Only those in the context, not summarised or consolidated.")] = False,
) -> Any:
    """List a session's entries in order, from its current epoch or another."""
    items, next_cursor = operations.list_entries(
        caller_of(request), pk, cursor=cursor, limit=limit, epoch=epoch, active=active, now=timezone.now()
    )
    return {"items": items, "next": next_cursor}


@router.post("/sessions/{pk}/entries", response={201: responses.AppendedAnswer}, auth=APPEND)
def append_entries(request: HttpRequest, pk: RowId, body: requests.NewEntries) -> Any:
    """Append entries to a session, all or none."""
    caller = caller_of(request)
    session = operations.get_session(caller, pk)
    return Status(201, operations.append(caller, session.key, body.entries, now=timezone.now()))


@router.get("/sessions/{pk}/context", response=responses.ContextAnswer, auth=READ)
def session_context(
    request: HttpRequest,
    pk: RowId,
    max_messages: MaxMessages = 500,
    max_tokens: MaxTokens = None,
    *,
    text: AsText = False,
) -> Any:
    """Return a session's context: memory, summaries, then its entries."""
    caller = caller_of(request)
    session = operations.get_session(caller, pk)
    return operations.read_context(
        caller, session, max_messages=max_messages, max_tokens=max_tokens, text=text, now=timezone.now()
    )


@router.get("/sessions/{pk}/stats", response=responses.Figures, auth=READ)
def session_stats(request: HttpRequest, pk: RowId) -> Any:
    """Return a session's token counts before and after compression."""
    return operations.session_figures(caller_of(request), pk)


@router.post("/sessions/{pk}/compress", response={202: responses.RunAnswer}, auth=CONSOLIDATE)
def compress_session(request: HttpRequest, pk: RowId, body: requests.Compression | None = None) -> Any:
    """Request a compression: a worker summarises older entries."""
    options = {"prompt": body.prompt} if body and body.prompt.strip() else {}
    run = operations.ask_for_run(caller_of(request), pk, Run.Kind.COMPRESSION, options=options, now=timezone.now())
    return Status(202, run_answer(run))


@router.post("/sessions/{pk}/consolidate", response={202: responses.RunAnswer}, auth=CONSOLIDATE)
def consolidate_session(request: HttpRequest, pk: RowId) -> Any:
    """Request a consolidation: a worker lets a model update MEMORY.md from the session."""
    return Status(
        202, run_answer(operations.ask_for_run(caller_of(request), pk, Run.Kind.CONSOLIDATION, now=timezone.now()))
    )


@router.post("/sessions/{pk}/clear", response=responses.SessionAnswer, auth=EDIT)
def clear_session(request: HttpRequest, pk: RowId, body: requests.NewStart | None = None) -> Any:
    """Clear a session by starting a new epoch. Earlier entries stay readable under theirs.

    entries: what the new epoch starts with, so that entries are replaced in one call.
    """
    return operations.clear(caller_of(request), pk, body.entries if body else (), now=timezone.now())


@router.post("/sessions/{pk}/archive-and-clear", response={202: responses.RunAnswer}, auth=EDIT)
def archive_and_clear_session(request: HttpRequest, pk: RowId) -> Any:
    """Request a consolidation of all entries, after which the session is cleared.

    If the consolidation fails or is held, the session isn't cleared.
    """
    caller = caller_of(request)
    session = operations.get_session(caller, pk)
    return Status(202, run_answer(operations.archive_and_clear(caller, session, now=timezone.now())))


@router.get("/sessions/{pk}/export", auth=READ, openapi_extra={"x-answer": "file"})
def export_session(request: HttpRequest, pk: RowId, layout: Layout = "", epoch: Epoch = None) -> HttpResponse:
    """Export a session as a file of nanobot, Grip or AgTerm. Default: the workspace's program."""
    name, text = operations.export_one(caller_of(request), pk, layout=layout, epoch=epoch, now=timezone.now())
    return download(text, name)


def run_answer(document: dict[str, Any]) -> dict[str, Any]:
    """Return a run with its positions also as ``from_position`` and ``to_position``."""
    return document | {"from_position": document["from"], "to_position": document["to"]}
