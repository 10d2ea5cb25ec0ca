"""Sessions over REST: parse, one call, answer."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from ninja import Query, Router, Status

from memoryhub.agents.operations import conversations as flow
from memoryhub.api import requests as given
from memoryhub.api import responses as out
from memoryhub.api.auth import APPEND, CONSOLIDATE, EDIT, READ, caller_of
from memoryhub.api.parameters import Cursor, Epoch, Limit, MaxMessages, MaxTokens, RowId
from memoryhub.lib.downloads import download
from sessions_app.models import Run

router = Router(tags=["Sessions"])
Layout = Literal["", "nanobot", "grip", "agterm"]


@router.get("/sessions", response=out.Listed[out.SessionAnswer], auth=READ)
def list_sessions(
    request: HttpRequest,
    cursor: Cursor = "",
    limit: Limit = 50,
    key: Annotated[str, Query(max_length=512)] = "",
    channel: Annotated[str, Query(max_length=512)] = "",
) -> Any:
    """The workspace's sessions, the latest first; with a key, that one."""
    items, further = flow.list_sessions(caller_of(request), cursor=cursor, limit=limit, key=key, channel=channel)
    return {"items": items, "next": further}


@router.post("/sessions", response={200: out.SessionAnswer, 201: out.SessionAnswer}, auth=APPEND)
def open_session(request: HttpRequest, body: given.NewSession) -> Any:
    """Open a session: 201 where it is new, 200 where its key is known."""
    session, is_new = flow.open_one(caller_of(request), body.key, title=body.title, now=timezone.now())
    return Status(201 if is_new else 200, session)


@router.post("/sessions/import", response=out.ImportAnswer, auth=EDIT)
def import_session(request: HttpRequest, body: given.SessionFile) -> Any:
    """Take the text of one session's file of nanobot, Grip or AgTerm; again, it adds what is new."""
    return flow.import_one(caller_of(request), body.name, body.content, now=timezone.now())


@router.post("/entries", response={201: out.AppendedAnswer}, auth=APPEND)
def append_to_key(request: HttpRequest, body: given.NewEntriesOf) -> Any:
    """Append entries to the session of a key, opened where it isn't there: all of them or none."""
    return Status(201, flow.append(caller_of(request), body.session, body.entries, now=timezone.now()))


@router.get("/context", response=out.ContextAnswer, auth=READ)
def context_of_key(
    request: HttpRequest,
    session: Annotated[str, Query(min_length=1, max_length=512)],
    max_messages: MaxMessages = 500,
    max_tokens: MaxTokens = None,
) -> Any:
    """What would be sent to a model for the session of a key: memory, summaries, then its entries."""
    return flow.context_of_key(
        caller_of(request), session, max_messages=max_messages, max_tokens=max_tokens, now=timezone.now()
    )


@router.get("/sessions/{pk}", response=out.SessionAnswer, auth=READ)
def show_session(request: HttpRequest, pk: RowId) -> Any:
    return flow.show_session(caller_of(request), pk)


@router.get("/sessions/{pk}/entries", response=out.Listed[out.EntryAnswer], auth=READ)
def list_entries(request: HttpRequest, pk: RowId, cursor: Cursor = "", limit: Limit = 50, epoch: Epoch = None) -> Any:
    """A session's entries in order, of its current epoch or of another."""
    items, further = flow.list_entries(
        caller_of(request), pk, cursor=cursor, limit=limit, epoch=epoch, now=timezone.now()
    )
    return {"items": items, "next": further}


@router.post("/sessions/{pk}/entries", response={201: out.AppendedAnswer}, auth=APPEND)
def append_entries(request: HttpRequest, pk: RowId, body: given.NewEntries) -> Any:
    """Append entries to a session: all of them or none."""
    caller = caller_of(request)
    session = flow.get_session(caller, pk)
    return Status(201, flow.append(caller, session.key, body.entries, now=timezone.now()))


@router.get("/sessions/{pk}/context", response=out.ContextAnswer, auth=READ)
def session_context(
    request: HttpRequest, pk: RowId, max_messages: MaxMessages = 500, max_tokens: MaxTokens = None
) -> Any:
    """What would be sent to a model: memory, summaries, then the session's entries."""
    caller = caller_of(request)
    session = flow.get_session(caller, pk)
    return flow.read_context(caller, session, max_messages=max_messages, max_tokens=max_tokens, now=timezone.now())


@router.get("/sessions/{pk}/stats", response=out.Figures, auth=READ)
def session_stats(request: HttpRequest, pk: RowId) -> Any:
    """How many tokens the entries had, and how many folding left."""
    return flow.session_figures(caller_of(request), pk)


@router.post("/sessions/{pk}/compress", response={202: out.RunAnswer}, auth=CONSOLIDATE)
def compress_session(request: HttpRequest, pk: RowId) -> Any:
    """Ask for a compression: a worker folds older entries into a summary."""
    return Status(202, run_answer(flow.ask_for_run(caller_of(request), pk, Run.Kind.COMPRESSION, now=timezone.now())))


@router.post("/sessions/{pk}/consolidate", response={202: out.RunAnswer}, auth=CONSOLIDATE)
def consolidate_session(request: HttpRequest, pk: RowId) -> Any:
    """Ask for a consolidation: a worker asks a model what of the session belongs into MEMORY.md."""
    return Status(
        202, run_answer(flow.ask_for_run(caller_of(request), pk, Run.Kind.CONSOLIDATION, now=timezone.now()))
    )


@router.post("/sessions/{pk}/clear", response=out.SessionAnswer, auth=EDIT)
def clear_session(request: HttpRequest, pk: RowId) -> Any:
    """Begin the session anew. What was said stays readable under its earlier epoch."""
    return flow.clear(caller_of(request), pk, now=timezone.now())


@router.get("/sessions/{pk}/export", auth=READ, openapi_extra={"x-answer": "file"})
def export_session(request: HttpRequest, pk: RowId, layout: Layout = "", epoch: Epoch = None) -> HttpResponse:
    """The session as one file of nanobot, Grip or AgTerm, by default of the workspace's own program."""
    name, text = flow.export_one(caller_of(request), pk, layout=layout, epoch=epoch, now=timezone.now())
    return download(text, name)


def run_answer(document: dict[str, Any]) -> dict[str, Any]:
    """Return a run with its positions under names that JSON programs can use as fields."""
    return document | {"from_position": document["from"], "to_position": document["to"]}
