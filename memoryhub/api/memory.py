"""Memory documents, proposals and the history log over REST."""

from __future__ import annotations

import re
from typing import Annotated, Any

from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from ninja import Header, Query, Router, Status

from memoryhub.agents.operations import memory as flow
from memoryhub.api import requests as given
from memoryhub.api import responses as out
from memoryhub.api.auth import APPEND, EDIT, READ, caller_of
from memoryhub.api.parameters import Cursor, Limit, Name, RowId, Text
from memoryhub.lib.errors import Invalid

router = Router(tags=["Memory documents and history"])
_TAG = re.compile(r'"(\d{1,9})"')
IfMatch = Annotated[
    str | None, Header(alias="If-Match", description='The revision it was made from, as "12"; "0": it is new.')
]


class BaseMissing(Invalid):
    """A write without the revision that it was made from."""

    code = "base_missing"
    status = 428


@router.get("/documents", response=out.Listed[out.RevisionAnswer], auth=READ)
def list_documents(request: HttpRequest) -> Any:
    """The memory documents, each at its revision; MEMORY.md is what stands in every prompt."""
    return {"items": flow.list_documents(caller_of(request)), "next": None}


@router.get("/documents/{name}", response=out.DocumentAnswer, auth=READ)
def read_document(
    request: HttpRequest,
    response: HttpResponse,
    name: Name,
    revision: Annotated[int | None, Query(ge=1, lt=2**31)] = None,
) -> Any:
    """A document's text, as it is or as it stood. The ETag is its revision, for If-Match."""
    found = flow.read_document(caller_of(request), name, revision=revision, now=timezone.now())
    response["ETag"] = f'"{found["revision"]}"'
    return found


@router.get("/documents/{name}/revisions", response=out.Listed[out.RevisionAnswer], auth=READ)
def list_revisions(request: HttpRequest, name: Name, cursor: Cursor = "", limit: Limit = 50) -> Any:
    """Who changed the document, when and why, the latest first."""
    items, further = flow.list_revisions(caller_of(request), name, cursor=cursor, limit=limit)
    return {"items": items, "next": further}


@router.put("/documents/{name}", response={200: out.WriteAnswer, 202: out.WriteAnswer}, auth=EDIT)
def write_document(request: HttpRequest, name: Name, body: given.DocumentWrite, if_match: IfMatch = None) -> Any:
    """Write a document on the base of a revision. 202: a person looks at it first, since it takes much away.

    Needs If-Match (428 without). 412 where the document has moved on: read it again.
    """
    tag = _TAG.fullmatch(if_match.strip()) if if_match else None
    if tag is None:
        raise BaseMissing('Say which revision this was made from: If-Match: "12", or "0" for a new document.')
    written = flow.write_document(
        caller_of(request), name, body.content, base=int(tag[1]), reason=body.reason, now=timezone.now()
    )
    return Status(202 if written["status"] == "held" else 200, written)


@router.post("/documents/{name}/proposals", response={202: out.ProposalAnswer}, auth=APPEND)
def propose_document(request: HttpRequest, name: Name, body: given.DocumentProposal) -> Any:
    """Propose a document's new text: a person decides about it in the review inbox."""
    caller = caller_of(request)
    return Status(
        202,
        flow.propose_document(caller, name, body.content, base=body.base, reason=body.reason, now=timezone.now()),
    )


@router.get("/proposals", response=out.Listed[out.ProposalAnswer], auth=READ)
def list_proposals(request: HttpRequest, cursor: Cursor = "", limit: Limit = 50) -> Any:
    """What agents of this workspace proposed, the latest first."""
    items, further = flow.list_proposals(caller_of(request), cursor=cursor, limit=limit)
    return {"items": items, "next": further}


@router.get("/proposals/{pk}", response=out.ProposalAnswer, auth=READ)
def show_proposal(request: HttpRequest, pk: RowId) -> Any:
    """How a proposal stands: pending, approved, rejected or superseded."""
    return flow.show_proposal(caller_of(request), pk)


@router.get("/history", response=out.Listed[out.HistoryAnswer], auth=READ)
def list_history(request: HttpRequest, text: Text = "", cursor: Cursor = "", limit: Limit = 50) -> Any:
    """The history log, the latest first; with a text, the entries that contain it in any case."""
    items, further = flow.list_history(caller_of(request), text=text, cursor=cursor, limit=limit, now=timezone.now())
    return {"items": items, "next": further}


@router.post("/history", response={201: out.HistoryAnswer}, auth=APPEND)
def append_history(request: HttpRequest, body: given.HistoryNote) -> Any:
    """Append to the history log."""
    return Status(
        201, flow.append_history(caller_of(request), body.text, session_key=body.session, now=timezone.now())
    )
